package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/nodefence/nodefence/config/v1alpha1"
)

// caseClient reads and writes FencingCases as typed objects.
type caseClient struct{ resource dynamic.ResourceInterface }

func newCaseClient(d dynamic.Interface) caseClient {
	return caseClient{d.Resource(v1alpha1.FencingCases)}
}

func (c caseClient) create(ctx context.Context, fc *v1alpha1.FencingCase) (*v1alpha1.FencingCase, error) {
	u, err := toUnstructured(fc)
	if err != nil {
		return nil, err
	}
	return typed(c.resource.Create(ctx, u, metav1.CreateOptions{}))
}

func (c caseClient) updateStatus(ctx context.Context, fc *v1alpha1.FencingCase) (*v1alpha1.FencingCase, error) {
	u, err := toUnstructured(fc)
	if err != nil {
		return nil, err
	}
	return typed(c.resource.UpdateStatus(ctx, u, metav1.UpdateOptions{}))
}

func (c caseClient) get(ctx context.Context, name string) (*v1alpha1.FencingCase, error) {
	return typed(c.resource.Get(ctx, name, metav1.GetOptions{}))
}

// list gives all cases, read page by page from the API server itself.
func (c caseClient) list(ctx context.Context) ([]*v1alpha1.FencingCase, error) {
	var all []*v1alpha1.FencingCase
	opts := metav1.ListOptions{Limit: 500}
	for {
		page, err := c.resource.List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("list fencing cases: %w", err)
		}
		for i := range page.Items {
			fc, err := fromUnstructured(&page.Items[i])
			if err != nil {
				return nil, err
			}
			all = append(all, fc)
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return all, nil
		}
	}
}

func typed(u *unstructured.Unstructured, err error) (*v1alpha1.FencingCase, error) {
	if err != nil {
		return nil, err
	}
	return fromUnstructured(u)
}

func toUnstructured(fc *v1alpha1.FencingCase) (*unstructured.Unstructured, error) {
	fc.APIVersion, fc.Kind = v1alpha1.GroupVersion.String(), "FencingCase"
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fc)
	if err != nil {
		return nil, fmt.Errorf("encode fencing case %s: %w", fc.Name, err)
	}
	return &unstructured.Unstructured{Object: m}, nil
}

func fromUnstructured(u *unstructured.Unstructured) (*v1alpha1.FencingCase, error) {
	var fc v1alpha1.FencingCase
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &fc); err != nil {
		return nil, fmt.Errorf("decode fencing case %s: %w", u.GetName(), err)
	}
	return &fc, nil
}
