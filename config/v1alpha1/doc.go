// Package v1alpha1 is the custom resource FencingCase: the record of one
// incident of one node, cluster-scoped.
//
// What lives here: the API types, their generated schema and deep copies, and
// the conversion to and from fencing.Case, which is what decisions work with.
// What must not: decisions, clients.
//
// +kubebuilder:object:generate=true
// +groupName=nodefence.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API group and version.
var (
	GroupVersion = schema.GroupVersion{Group: "nodefence.io", Version: "v1alpha1"}
	// FencingCases is the resource's name for REST clients.
	FencingCases = GroupVersion.WithResource("fencingcases")
)

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &FencingCase{}, &FencingCaseList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
