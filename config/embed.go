package config

import "embed"

// Manifests are the files that an operator applies before nodefence runs: the
// custom resource, the namespace and the permissions. Tests and the demonstration
// apply the same ones.
//
//go:embed crd/*.yaml rbac/*.yaml
var Manifests embed.FS
