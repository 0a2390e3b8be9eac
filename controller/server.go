package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/nodefence/nodefence/fencing"
)

// oldestServer is the first Kubernetes in which the out-of-service taint does
// anything by default: the feature gate NodeOutOfServiceVolumeDetach is beta, and
// on, from there (KEP-2268).
var oldestServer = version.MustParseGeneric("1.26")

// ServerSuffices tells whether the API server's Kubernetes does what nodefence
// relies on, for the most that any group may do. Where it does not, a taint would
// be set and nothing would follow, and people would believe that it had: only mode
// Observe may run there. A version that cannot be read suffices for no more either.
func ServerSuffices(info *apiversion.Info, most fencing.Mode) error {
	if most == fencing.Observe {
		return nil
	}
	have, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("the API server calls its version %q, which is none: only mode Observe can be used: %w", info.GitVersion, err)
	}
	if have.LessThan(oldestServer) {
		return fmt.Errorf("the API server is Kubernetes %s; the out-of-service taint works from %s on: use mode Observe, or upgrade", info.GitVersion, oldestServer)
	}
	return nil
}
