package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is what the commands speak to.
type cluster struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	server  *apiversion.Info
}

// connect finds the cluster and asks for its version.
func connect(kubeconfig string) (*cluster, error) {
	cfg, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	// Smaller than JSON and cheaper to read. Custom resources have no such form,
	// and the dynamic client does not ask for it.
	typed := rest.CopyConfig(cfg)
	typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c := &cluster{}
	if c.typed, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if c.server, err = c.typed.Discovery().ServerVersion(); err != nil {
		return nil, fmt.Errorf("ask the API server at %s for its version: %w", cfg.Host, err)
	}
	return c, nil
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
