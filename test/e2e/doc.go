// Package e2e holds nodefence against reality: the stories of package story on
// the real control plane, and what else only shows there.
package e2e
