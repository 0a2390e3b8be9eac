package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// ConfiguredFleet is the Fleet that the configuration in force describes.
type ConfiguredFleet struct {
	// Store holds the configuration in force.
	Store *config.Store
	// Secrets reads Secrets on demand, so that a rotated one counts at once.
	Secrets config.SecretGetter
}

// View is the part of a Node that the configuration looks at.
func View(n *corev1.Node) config.NodeView {
	return config.NodeView{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations, ProviderID: n.Spec.ProviderID, SystemUUID: n.Status.NodeInfo.SystemUUID}
}

// Assign says how the node is to be handled.
func (f ConfiguredFleet) Assign(n *corev1.Node) Assignment {
	view := View(n)
	group, err := f.Store.Load().Group(view)
	if err != nil {
		// Two groups claim it: neither's policy is taken, and people are told.
		p := fencing.DefaultPolicy()
		p.Mode = fencing.Observe
		return Assignment{Managed: true, Policy: p, Problem: err.Error()}
	}
	if group == nil {
		return Assignment{}
	}
	provider := group.Provider()
	a := Assignment{Managed: true, Policy: group.Policy(), Provider: provider.Name}
	m, err := group.Machine(view)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	a.Expected, a.Driver = m.Expected, provider.Driver()
	a.Machine = func(ctx context.Context) (providers.Machine, error) {
		var err error
		m := m
		m.Credentials, err = provider.Credentials(ctx, f.Secrets)
		return m, err
	}
	return a
}

// SecretReader reads Secrets from the API server, on demand.
type SecretReader struct{ Client API }

// Secret gives the Secret's data.
func (s SecretReader) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := s.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}
