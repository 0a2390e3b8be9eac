package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// canary is a password that somebody put where it does not belong.
const canary = "CANARY-Pa55word"

// everything is a configuration with every field in it.
const everything = `
apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- name: bmcs
  driver: redfish
  credentials:
    secret: {namespace: nodefence, name: bmc}
    file: /etc/bmc.yaml
    directory: /etc/bmc
  tls: {caFile: /etc/ca.pem, fingerprint: "00", insecureSkipVerify: false}
  options: {port: 443, retries: 3, session: true}
groups:
- name: workers
  selector:
    matchLabels: {role: worker}
    matchExpressions:
    - {key: pool, operator: In, values: [a]}
  provider: bmcs
  mode: Fence
  machine:
    annotation: nodefence.io/bmc-address
    template: "{{ .Name }}"
    system: "{{ .Name }}"
    allowedHosts: [10.0.0.0/8]
    nodes:
      node-1: {address: 10.0.0.1, system: "1", fingerprint: "00", serial: A1, uuid: "0", instanceID: i-1}
  proof: {readings: 3, hold: 30s, holdAfterPowerOff: 10s, freshness: 10s, interval: 5s, timeout: 8s, suspectAfter: 15s}
  identity: {allowUnproved: true}
  alerts: {holdAfter: 15s, every: 5m}
  powerOff: {after: 60s, timeout: 15s, retryAfter: 30s, attempts: 3}
  untaint: {stableFor: 30s, maxWait: 5m}
budget: {maxConcurrent: 1, maxUnhealthy: 40%}
`

// quoted are the only places whose text a message repeats, because that helps with
// a typing mistake: names, words and numbers, which nobody takes for the place of
// a password. All of credentials, options and TLS is missing here, but for the
// path of the CA file.
var quoted = set(`
	apiVersion  kind
	providers[].name  providers[].driver  providers[].tls.caFile
	groups[].name  groups[].provider  groups[].mode
	groups[].selector.matchLabels  groups[].selector.matchLabels.role  groups[].selector.matchLabels/key  groups[].selector.matchLabels/password
	groups[].selector.matchExpressions[].key  groups[].selector.matchExpressions[].operator  groups[].selector.matchExpressions[].values[]
	groups[].machine.annotation  groups[].machine.allowedHosts[]
	groups[].machine.nodes  groups[].machine.nodes/key  groups[].machine.nodes.node-1.address  groups[].machine.nodes.node-1.uuid
	groups[].proof.hold  groups[].proof.holdAfterPowerOff  groups[].proof.freshness  groups[].proof.interval  groups[].proof.timeout
	groups[].proof.suspectAfter  groups[].alerts.holdAfter  groups[].alerts.every
	groups[].powerOff.after  groups[].powerOff.timeout  groups[].powerOff.retryAfter  groups[].untaint.stableFor  groups[].untaint.maxWait
	budget.maxUnhealthy
`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// TestNoSecretInProblems puts a password in every place of the file, in every
// form: where a password may end up by mistake, no message may show it (S13).
func TestNoSecretInProblems(t *testing.T) {
	forms := []string{"%s", "'%s'", "[%s]", "{%s}", "{password: %s}", "{%s: x}", "{%s: x, %s: y}", "*%s", "&%s", "&%s x", "!%s", "!%s x", "!!str %s", "@%s", "%%%s", "`%s",
		`"%s`, "'%s", "{%s", "[%s", "%s: %s", "- %s", "| %s", "> %s", "? %s", "%s #", "root:%s@10.0.0.1", "https://root:%s@10.0.0.1/", "10.0.0.1/%s", "/%s", "{{ %s }}", "'{{ .%s }}'", "'{{ \"%s\" }}'", "'{{ %s'", "'%s{{'"}
	shown := map[string]bool{}
	for path, text := range places(t) {
		for _, form := range forms {
			value := strings.ReplaceAll(strings.ReplaceAll(form, "%s", canary), "%%", "%")
			_, err := Parse([]byte(strings.ReplaceAll(text, placeholder, value)), stubRegistry())
			if err == nil {
				continue
			}
			checkProblems(t, text, err)
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), canary[7:]) {
				shown[path] = true
				if !quoted[path] {
					t.Errorf("%s: %s\n%v", path, value, err)
				}
			}
		}
	}
	for path := range quoted {
		if !shown[path] {
			t.Errorf("%s is in the list of fields that are quoted, and is not", path)
		}
	}
}

const placeholder = "PLACEHOLDER"

// places gives the file with a placeholder for each value, each key, and a field
// more in each mapping.
func places(t *testing.T) map[string]string {
	t.Helper()
	var root any
	if err := yaml.Unmarshal([]byte(everything), &root); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	add := func(path string) {
		data, err := yaml.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(data)
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(path+"."+k, "."), v[k], func(x any) { v[k] = x })
			}
			v[placeholder] = "x"
			add(path + "/key")
			delete(v, placeholder)
			v["password"] = placeholder
			add(path + "/password")
			delete(v, "password")
		case []any:
			for i := range v {
				walk(path+"[]", v[i], func(x any) { v[i] = x })
			}
		}
		set(placeholder)
		add(path)
		set(v)
	}
	walk("", root, func(any) {})
	if len(out) < 80 {
		t.Fatalf("only %d places", len(out))
	}
	delete(out, "")
	return out
}
