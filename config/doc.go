// Package config is the configuration API: one YAML file, its Go types, their
// defaults, validation, reload and the questions that the controller asks of it
// (which group a node belongs to, where its machine is, what to log in with).
//
// What lives here: everything between the bytes of that file and the values that
// the other packages take (fencing.Policy, providers.Driver, providers.Machine,
// providers.Credentials). A file is accepted as a whole or refused as a whole,
// with all its problems at once, each with its path and its line. What must not:
// decisions, bounds of a policy (fencing.Policy.Validate holds them), knowledge
// of a vendor (a driver checks its own options), Kubernetes clients (the caller
// passes Nodes as NodeView and Secrets through SecretGetter).
//
// Read it in this order: types.go (what can be said), parse.go (from bytes to a
// Configuration), yaml.go and decode.go (strictness), validate*.go (what must
// hold), machine.go and credentials.go (the questions), watch.go (reload).
//
// docs/configuration.md describes every field for operators; a test compares it
// with the types.
package config
