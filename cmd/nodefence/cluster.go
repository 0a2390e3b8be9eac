package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedstoragev1 "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is what the commands speak to.
type cluster struct {
	api     groups
	dynamic dynamic.Interface
	server  *apiversion.Info
}

// groups are the parts of the API that are used; together they are a
// controller.API.
type groups struct {
	core         *typedcorev1.CoreV1Client
	coordination *typedcoordinationv1.CoordinationV1Client
	storage      *typedstoragev1.StorageV1Client
}

// CoreV1 gives nodes, pods, Secrets, Events and persistent volumes.
func (g groups) CoreV1() typedcorev1.CoreV1Interface { return g.core }

// CoordinationV1 gives Leases.
func (g groups) CoordinationV1() typedcoordinationv1.CoordinationV1Interface { return g.coordination }

// StorageV1 gives volume attachments.
func (g groups) StorageV1() typedstoragev1.StorageV1Interface { return g.storage }

// connect finds the cluster and asks for its version.
func connect(ctx context.Context, kubeconfig string) (*cluster, error) {
	cfg, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	// Smaller than JSON and cheaper to read. Custom resources have no such form,
	// and the dynamic client does not ask for it.
	typed := rest.CopyConfig(cfg)
	typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c := &cluster{}
	for _, build := range []func() error{
		func() (err error) { c.api.core, err = typedcorev1.NewForConfigAndClient(typed, client); return err },
		func() (err error) {
			c.api.coordination, err = typedcoordinationv1.NewForConfigAndClient(typed, client)
			return err
		},
		func() (err error) {
			c.api.storage, err = typedstoragev1.NewForConfigAndClient(typed, client)
			return err
		},
		func() (err error) { c.dynamic, err = dynamic.NewForConfigAndClient(cfg, client); return err },
	} {
		if err := build(); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	if c.server, err = askVersion(ctx, c.api.core); err != nil {
		return nil, fmt.Errorf("ask the API server at %s for its version: %w", cfg.Host, err)
	}
	return c, nil
}

func askVersion(ctx context.Context, core *typedcorev1.CoreV1Client) (*apiversion.Info, error) {
	body, err := core.RESTClient().Get().AbsPath("/version").SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	info := &apiversion.Info{}
	if err := json.Unmarshal(body, info); err != nil {
		return nil, fmt.Errorf("its answer is no version: %w", err)
	}
	return info, nil
}

// restConfig finds the cluster: the flag, KUBECONFIG, ~/.kube/config, or the
// service account of the pod.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (use --kubeconfig, or run in a pod): %w", err)
	}
	cfg.UserAgent = "nodefence/" + version
	// A storm of failures must not wait for our own rate limit; the API server
	// has its own fairness.
	cfg.QPS, cfg.Burst = 50, 100
	return cfg, nil
}
