package config

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"k8s.io/apimachinery/pkg/util/validation"
)

// validate checks a decoded configuration and makes what it stands for:
// drivers, selectors, templates, policies.
func validate(c *Configuration, registry providers.Registry, p *problems) {
	if len(c.Providers) == 0 {
		p.add("providers", "is missing or empty: at least one provider is needed")
	}
	if len(c.Groups) == 0 {
		p.add("groups", "is missing or empty: at least one group is needed")
	}
	names := map[string]string{}
	for i := range c.Providers {
		v := &c.Providers[i]
		v.path = index("providers", i)
		validateName(v.Name, v.path, names, p)
		validateProvider(c, v, registry, p)
	}
	validateBudget(c.Budget, p)
	names = map[string]string{}
	for i := range c.Groups {
		g := &c.Groups[i]
		g.path = index("groups", i)
		validateName(g.Name, g.path, names, p)
		validateGroup(c, g, p)
	}
	validateDistinct(c, p)
}

// validateName checks that a name is a DNS label and that nothing else has it.
func validateName(name, path string, taken map[string]string, p *problems) {
	at := join(path, "name")
	switch other, ok := taken[name]; {
	case name == "":
		p.add(at, "is missing")
		return
	case len(validation.IsDNS1123Label(name)) > 0:
		p.add(at, "is %q, but must have 1 to 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit", clip(name))
	case ok:
		p.add(at, "is %q, but %s has that name already (line %d)", name, other, p.at(join(other, "name")))
	}
	taken[name] = path
}

func validateProvider(c *Configuration, v *Provider, registry providers.Registry, p *problems) {
	validateSource(v.From, join(v.path, "credentials"), p)
	settings := providers.Settings{Name: v.Name, Options: []byte(v.Options), Now: time.Now}
	settings.TLS = validateTLS(c, v.TLS, join(v.path, "tls"), p)
	at := join(v.path, "driver")
	known := driverNames(registry)
	factory := registry[v.DriverName]
	switch {
	case v.DriverName == "":
		p.add(at, "is missing; the known drivers are %s", quoteAll(known))
	case factory == nil:
		p.add(at, "is %q, which is no known driver%s; the known ones are %s", clip(v.DriverName), suggest(v.DriverName, known), quoteAll(known))
	default:
		driver, err := factory(settings)
		if err != nil {
			at := join(v.path, "options")
			p.addLine(at, optionLine(p, at, err.Error()), "driver %s: %s", v.DriverName, providers.CleanRaw(withoutValues(err.Error(), v.Options)))
			return
		}
		v.driver = driver
	}
}

// optionLine finds the line of the option that a driver's message is about: the
// deepest one that it names.
func optionLine(p *problems, path, message string) int {
	line, depth := p.at(path), 0
	for at, l := range p.lines {
		name, ok := strings.CutPrefix(at, path+".")
		if !ok || len(name) < depth {
			continue
		}
		last := name[strings.LastIndexByte(name, '.')+1:]
		if strings.Contains(message, fmt.Sprintf("%q", last)) || strings.Contains(message, name+":") || strings.Contains(message, name+" ") {
			if len(name) > depth || l < line {
				line, depth = l, len(name)
			}
		}
	}
	return line
}

// withoutValues takes out of a driver's message what it repeats of its options,
// unless it is a word: a password may have been put there by mistake (S13).
func withoutValues(message string, options Options) string {
	var walk func(v any)
	hide := func(s string) {
		if len(s) > 3 && !plausibleName(s) {
			quoted := strconv.Quote(s)
			message = strings.NewReplacer(s, "…", quoted[1:len(quoted)-1], "…").Replace(message)
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			hide(v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for k, item := range v {
				hide(k)
				walk(item)
			}
		}
	}
	var values any
	if json.Unmarshal([]byte(options), &values) == nil {
		walk(values)
	}
	return message
}

func validateSource(s CredentialSource, path string, p *problems) {
	n := 0
	for _, set := range []bool{s.Secret != nil, s.File != "", s.Directory != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		p.add(path, "must have exactly one of %s, but has %d", quoteAll([]string{"secret", "file", "directory"}), n)
	}
	if s.Secret != nil {
		at := join(path, "secret")
		if len(validation.IsDNS1123Label(s.Secret.Namespace)) > 0 {
			p.add(join(at, "namespace"), "must be the name of a namespace")
		}
		if len(validation.IsDNS1123Subdomain(s.Secret.Name)) > 0 {
			p.add(join(at, "name"), "must be the name of a Secret")
		}
	}
	// Whether a file is there is asked when it is needed, as for a Secret: it may
	// come later, and its absence must not undo a good configuration. The values
	// are not quoted: a password may have been put here by mistake.
	for field, name := range map[string]string{"file": s.File, "directory": s.Directory} {
		if name != "" && !absolute(name) {
			p.add(join(path, field), "must be an absolute path")
		}
	}
}

func absolute(name string) bool { return filepath.IsAbs(name) && !strings.ContainsRune(name, 0) }

// validateTLS gives what the driver is made with. What is wrong is left out of
// it, so that the driver can say what is wrong with the rest.
func validateTLS(c *Configuration, t TLS, path string, p *problems) providers.TLS {
	before := len(p.found)
	n := 0
	for _, set := range []bool{t.CAFile != "", t.Fingerprint != "", t.InsecureSkipVerify} {
		if set {
			n++
		}
	}
	if n > 1 {
		p.add(path, "must have at most one of %s, but has %d", quoteAll(fieldNames(reflect.TypeFor[TLS]())), n)
	}
	out := providers.TLS{Fingerprint: t.Fingerprint, Insecure: t.InsecureSkipVerify}
	if t.Fingerprint != "" {
		if _, err := providers.ParseFingerprint(t.Fingerprint); err != nil {
			p.add(join(path, "fingerprint"), notFingerprint)
		}
	}
	if t.CAFile != "" {
		at := join(path, "caFile")
		ca, err := readCA(t.CAFile)
		if err != nil {
			p.add(at, "%v", err)
		}
		out.CA = ca
		c.caFiles = append(c.caFiles, t.CAFile)
	}
	if len(p.found) > before {
		return providers.TLS{}
	}
	return out
}

const notFingerprint = "must be the SHA-256 fingerprint of a certificate: 64 hexadecimal digits, colons allowed"

// readCA reads a PEM bundle: nothing but certificates, each of them readable. A
// private key in it is a mistake that must not go unnoticed.
func readCA(name string) ([]byte, error) {
	if !absolute(name) {
		return nil, errors.New("must be an absolute path")
	}
	data, err := readFile(name, MaxSize)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	n := 0
	for rest := data; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds a %s where only certificates belong", name, clip(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: certificate %d cannot be read: %w", name, n+1, err)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", name)
	}
	return data, nil
}

// validateBudget says what is wrong with the budget once for all groups.
func validateBudget(b Budget, p *problems) {
	group := defaultGroup()
	for _, e := range makePolicy(&group, b).Validate() {
		if at, ok := budgetPaths[e.Field]; ok {
			p.add(at, "%s", e.Problem)
		}
	}
}

// validatePolicy says what is wrong with a group's part of its policy.
func validatePolicy(policy fencing.Policy, path string, p *problems) {
	for _, e := range policy.Validate() {
		if _, ok := budgetPaths[e.Field]; ok {
			continue
		}
		at, ok := policyPaths[e.Field]
		if !ok {
			p.add(path, "%v", e)
			continue
		}
		p.add(path+"."+at, "%s", e.Problem)
	}
}
