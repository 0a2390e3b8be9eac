package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/nodefence/nodefence/providers"
	"go.yaml.in/yaml/v3"
)

// Parse reads a configuration. It is accepted as a whole, with its drivers made
// and everything in it checked, or refused with an *Error that holds all that is
// wrong. The registry says which drivers there are.
func Parse(data []byte, registry providers.Registry) (*Configuration, error) {
	p := newProblems()
	root := document(data, p)
	if root == nil {
		return nil, p.err()
	}
	p.lines[""] = root.Line
	if !header(root, p) {
		return nil, p.err()
	}
	c := &Configuration{Budget: defaultBudget()}
	decoder{p}.value(root, "", reflect.ValueOf(c).Elem())
	p.decoded()
	validate(c, registry, p)
	if err := p.err(); err != nil {
		return nil, err
	}
	c.digest = digest(data, c.caFiles)
	return c, nil
}

// Load reads the configuration in a file.
func Load(path string, registry providers.Registry) (*Configuration, error) {
	data, err := readFile(path, MaxSize)
	if err != nil {
		return nil, err
	}
	c, err := Parse(data, registry)
	if err != nil {
		return nil, fmt.Errorf("%s is refused:\n%w", path, err)
	}
	return c, nil
}

// Digest tells configurations apart: it covers the file and the CA files that it
// names, so it changes whenever a reload would matter.
func (c *Configuration) Digest() string { return c.digest }

// header checks apiVersion and kind before everything else: in a file of another
// kind or version no other message would help.
func header(root *yaml.Node, p *problems) bool {
	if root.Kind != yaml.MappingNode {
		p.add("", "must be a mapping that begins with `apiVersion: %s` and `kind: %s`, but is %s", APIVersion, Kind, describe(root))
		return false
	}
	got := map[string]*yaml.Node{}
	for k, v := range fields(root, "", newProblems()) {
		got[k.Value] = v
		p.lines[join("", k.Value)] = k.Line
	}
	ok := true
	for _, h := range []struct{ field, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		switch v := got[h.field]; {
		case v == nil:
			p.add(h.field, "is missing, but must be %s", h.want)
		case v.Kind != yaml.ScalarNode:
			p.add(h.field, "is %s, but must be %s", describe(v), h.want)
		case v.Value != h.want:
			p.add(h.field, "is %q, but must be %s", clip(v.Value), h.want)
		default:
			continue
		}
		ok = false
	}
	return ok
}

// readFile reads a regular file of at most limit bytes. A pipe or a device could
// block or never end.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}

// digest covers a configuration file and the files that it names.
func digest(data []byte, files []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s", len(data), data) //nolint:errcheck // a hash takes everything
	for _, name := range slices.Sorted(slices.Values(files)) {
		// A file that cannot be read any more is a change, too: Parse says what is
		// wrong with it.
		content, err := readFile(name, MaxSize)
		fmt.Fprintf(h, "%q %t %d\n%s", name, err == nil, len(content), content) //nolint:errcheck // a hash takes everything
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// driverNames lists the registry for people.
func driverNames(r providers.Registry) []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
