package controller

import (
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/nodefence/nodefence/fencing"
)

func TestServerSuffices(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.25.16": false, "v1.9.0": false, "v1.26.0": true, "v1.26.0-rc.1": true, "v1.37.2": true, "v2.0.0": true,
		"v1.33.1-gke.1584000": true, "v1.30.4+k3s1": true, "v1.25.9-eks-0a21954": false, "v1.32.0-eks-5ca49cb": true,
		"": false, "nonsense": false, "v0.0.0-master+$Format:%H$": false,
	} {
		info := &apiversion.Info{GitVersion: version}
		for _, mode := range []fencing.Mode{fencing.Confirm, fencing.Fence} {
			if err := ServerSuffices(info, mode); (err == nil) != want {
				t.Errorf("%q, mode %s: %v", version, mode, err)
			}
		}
		if err := ServerSuffices(info, fencing.Observe); err != nil {
			t.Errorf("%q, mode Observe: %v", version, err)
		}
	}
}
