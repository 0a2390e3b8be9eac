package config

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// stubDriver does nothing; its options are decoded as strictly as a real
// driver's.
type stubDriver struct {
	settings providers.Settings
}

func (stubDriver) Read(context.Context, providers.Machine) fencing.Reading { return fencing.Reading{} }
func (stubDriver) PowerOff(context.Context, providers.Machine) error       { return nil }

func newStub(s providers.Settings) (providers.Driver, error) {
	var options struct {
		Port    int  `json:"port"`
		Retries int  `json:"retries"`
		Session bool `json:"session"`
	}
	if s.Options != nil {
		dec := json.NewDecoder(bytes.NewReader(s.Options))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&options); err != nil {
			return nil, err
		}
	}
	if options.Port < 0 || options.Port > 65535 {
		return nil, fmt.Errorf("port: is %d, but must be between 0 and 65535", options.Port)
	}
	return stubDriver{s}, nil
}

func stubRegistry() providers.Registry {
	return providers.Registry{"redfish": newStub, "ipmi": newStub, "bmc": newStub}
}

// good is a configuration that sets nothing it need not set.
const good = `apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- name: bmcs
  driver: redfish
  credentials:
    secret: {namespace: nodefence, name: bmc}
groups:
- name: workers
  selector: {matchLabels: {role: worker}}
  provider: bmcs
  machine: {annotation: nodefence.io/bmc-address}
`

func mustParse(t *testing.T, text string) *Configuration {
	t.Helper()
	c, err := Parse([]byte(text), stubRegistry())
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}

// with gives good with one text in place of another.
func with(t testing.TB, old, replacement string) string {
	t.Helper()
	if strings.Count(good, old) != 1 {
		t.Fatalf("%q is not in the good configuration exactly once", old)
	}
	return strings.Replace(good, old, replacement, 1)
}
