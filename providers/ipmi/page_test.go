package ipmi

import (
	"testing"

	"github.com/nodefence/nodefence/providers/providertest"
)

func TestPage(t *testing.T) {
	defaults, err := parseOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	providertest.Page(t, name, defaults)
}
