package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"unicode"

	"github.com/nodefence/nodefence/providers"
	"go.yaml.in/yaml/v3"
)

// SecretGetter reads Secrets from the API server, or from a cache of it.
type SecretGetter interface {
	// Secret gives the data of a Secret. The error says what is wrong with it and
	// holds none of its values.
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

const (
	usernameKey = "username"
	passwordKey = "password"
	// maxCredentials bounds a credentials file.
	maxCredentials = 64 << 10
)

// Credentials reads the provider's credentials, each time anew, so that a
// rotation counts from the next call. Errors say what is missing and where, and
// never a value (S13). The getter may be nil for a provider without a Secret.
func (p *Provider) Credentials(ctx context.Context, secrets SecretGetter) (providers.Credentials, error) {
	values, where, err := p.From.read(ctx, secrets)
	if err != nil {
		return providers.Credentials{}, fmt.Errorf("provider %s: %s: %w", p.Name, where, err)
	}
	var c providers.Credentials
	for _, v := range []struct {
		key string
		to  *string
	}{{usernameKey, &c.Username}, {passwordKey, &c.Password}} {
		if *v.to, err = clean(values, v.key); err != nil {
			return providers.Credentials{}, fmt.Errorf("provider %s: %s: %w", p.Name, where, err)
		}
	}
	return c, nil
}

// String names the source.
func (s CredentialSource) String() string {
	switch {
	case s.Secret != nil:
		return fmt.Sprintf("the Secret %s/%s", s.Secret.Namespace, s.Secret.Name)
	case s.File != "":
		return "the file " + s.File
	}
	return "the directory " + s.Directory
}

func (s CredentialSource) read(ctx context.Context, secrets SecretGetter) (map[string][]byte, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.String(), err
	}
	switch {
	case s.Secret != nil && secrets == nil:
		return nil, s.String(), errors.New("there is no access to Secrets here")
	case s.Secret != nil:
		values, err := secrets.Secret(ctx, s.Secret.Namespace, s.Secret.Name)
		return values, s.String(), err
	case s.File != "":
		data, err := readFile(s.File, maxCredentials)
		if err != nil {
			return nil, s.String(), err
		}
		values, err := parseCredentials(data)
		return values, s.String(), err
	}
	values := map[string][]byte{}
	for _, k := range []string{usernameKey, passwordKey} {
		data, err := readFile(filepath.Join(s.Directory, k), maxCredentials)
		if err != nil {
			return nil, s.String(), err
		}
		values[k] = data
	}
	return values, s.String(), nil
}

// parseCredentials reads a YAML file with the two keys. Its messages hold
// nothing of the file, not even keys or the parser's own words: in a file that
// is not understood, anything may be the password.
func parseCredentials(data []byte) (map[string][]byte, error) {
	root, line, err := parseYAML(data)
	if err != nil {
		return nil, fmt.Errorf("line %d: is no YAML with the keys %s and %s", line, usernameKey, passwordKey)
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: must be a mapping with the keys %s and %s", root.Line, usernameKey, passwordKey)
	}
	values := map[string][]byte{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		switch _, twice := values[k.Value]; {
		case k.Value != usernameKey && k.Value != passwordKey:
			return nil, fmt.Errorf("line %d: unknown key; the known ones are %s and %s", k.Line, usernameKey, passwordKey)
		case twice:
			return nil, fmt.Errorf("line %d: the key %s is given twice", k.Line, k.Value)
		case v.Kind != yaml.ScalarNode || v.Style&yaml.TaggedStyle != 0 || isNull(v):
			return nil, fmt.Errorf("line %d: the key %s must have text as its value; put it in quotes", k.Line, k.Value)
		}
		// The text as written: a password of digits need not be quoted, and 0123
		// stays 0123.
		values[k.Value] = []byte(v.Value)
	}
	return values, nil
}

// clean gives one value without its trailing line break, which editors and
// `echo` leave behind.
func clean(values map[string][]byte, k string) (string, error) {
	v, ok := values[k]
	if !ok {
		return "", fmt.Errorf("the key %s is missing", k)
	}
	v = bytes.TrimSuffix(bytes.TrimSuffix(v, []byte("\n")), []byte("\r"))
	switch {
	case len(v) == 0:
		return "", fmt.Errorf("the key %s is empty", k)
	case bytes.ContainsFunc(v, unicode.IsControl):
		return "", fmt.Errorf("the key %s holds a line break or another control character", k)
	}
	return string(v), nil
}
