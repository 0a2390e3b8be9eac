package redfish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nodefence/nodefence/providers"
)

// options are a provider entry's options. Their names in the configuration are
// the tags.
type options struct {
	// System is the path of the ComputerSystem of machines that name none.
	System string `json:"system"`
	// BasicAuth sends name and password with each request instead of opening a
	// session, for endpoints whose sessions do not work.
	BasicAuth bool `json:"basicAuth"`
	// IgnoreChassis leaves the chassis' power state out, for devices whose
	// chassis is known to say something else than the machine.
	IgnoreChassis bool `json:"ignoreChassis"`
	// MaxBodyBytes bounds an answer.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
}

var optionNames = []string{"system", "basicAuth", "ignoreChassis", "maxBodyBytes"}

const (
	minBody = 16 << 10
	maxBody = 16 << 20
)

// parseOptions takes only what it knows, spelt as it is spelt in the docs.
func parseOptions(raw json.RawMessage) (options, error) {
	o := options{MaxBodyBytes: providers.DefaultMaxBody}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return o, nil
	}
	fields, err := object(raw)
	if err != nil {
		return o, fmt.Errorf("options: %w", err)
	}
	for name, value := range fields {
		if !slices.Contains(optionNames, name) { // encoding/json would take any case
			return o, fmt.Errorf("options.%s: no such option; there are %s", name, strings.Join(optionNames, ", "))
		}
		if string(value) == "null" {
			return o, fmt.Errorf("options.%s: is empty: give it a value or remove it", name)
		}
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return o, fmt.Errorf("options.%s: is a JSON %s, but must be a %s", t.Field, t.Value, t.Type)
		}
		return o, fmt.Errorf("options: %w", err)
	}
	if o.System != "" {
		if o.System, err = systemPath(o.System); err != nil {
			return o, fmt.Errorf("options.system: %w", err)
		}
	}
	if o.MaxBodyBytes < minBody || o.MaxBodyBytes > maxBody {
		return o, fmt.Errorf("options.maxBodyBytes: %d is not between %d and %d", o.MaxBodyBytes, minBody, maxBody)
	}
	return o, nil
}

// systemPath checks a configured path of a ComputerSystem.
func systemPath(s string) (string, error) {
	p, ok := localPath(s)
	if !ok || strings.Trim(p, "/") == "redfish/v1" {
		return "", fmt.Errorf("%q is no path of a ComputerSystem, such as /redfish/v1/Systems/1", s)
	}
	return p, nil
}

// localPath takes only the path of a resource on the same endpoint. What
// endpoints link to passes through here too: a link to another host would carry
// our token there.
func localPath(s string) (string, bool) {
	trimmed := strings.TrimSuffix(s, "/")
	switch {
	case len(s) > 512, !strings.HasPrefix(s, serviceRoot), trimmed != path.Clean(s):
		return "", false
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }), strings.ContainsAny(s, `?#\%`):
		return "", false
	}
	return s, true
}

// endpoint is where a machine's requests go.
type endpoint struct {
	// base is scheme and authority, without a path.
	base string
	// host is the authority, to tell redirects to elsewhere.
	host string
}

var errAddress = errors.New("give a host, host:port or https URL without path, such as bmc-1.example.com or https://[2001:db8::1]:8443")

// parseAddress reads Machine.Address. Its errors do not repeat the address: it
// may hold a password that somebody put there.
func parseAddress(address string, insecure bool) (endpoint, error) {
	scheme, host, port := "https", "", ""
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil {
			return endpoint{}, fmt.Errorf("the address is no URL: %w", errAddress)
		}
		switch {
		case u.User != nil:
			return endpoint{}, errors.New("the address holds credentials; put them into the Secret")
		case u.Scheme == "http" && !insecure:
			return endpoint{}, errors.New("the address is an http URL: the password would cross the network in clear; use https, or set tls.insecure if you accept that")
		case u.Scheme != "https" && u.Scheme != "http":
			return endpoint{}, fmt.Errorf("the address has a scheme other than https: %w", errAddress)
		case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "", u.Opaque != "":
			return endpoint{}, fmt.Errorf("the address has a path: services behind a path prefix are not supported; name the ComputerSystem in `system`: %w", errAddress)
		}
		scheme, host, port = u.Scheme, u.Hostname(), u.Port()
		if strings.HasSuffix(u.Host, ":") {
			return endpoint{}, fmt.Errorf("the address has an empty port: %w", errAddress)
		}
	} else {
		var ok bool
		if host, port, ok = splitHost(address); !ok {
			return endpoint{}, fmt.Errorf("the address cannot be read: %w", errAddress)
		}
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/@?#\`, r) }) {
		return endpoint{}, fmt.Errorf("the address has no usable host: %w", errAddress)
	}
	if strings.Contains(host, ":") {
		if net.ParseIP(withoutZone(host)) == nil {
			return endpoint{}, fmt.Errorf("the address has no usable host: %w", errAddress)
		}
		host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
	}
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return endpoint{}, fmt.Errorf("the address has no usable port: %w", errAddress)
		}
		host += ":" + port
	}
	e := endpoint{base: scheme + "://" + host, host: host}
	if _, err := url.Parse(e.base); err != nil {
		return endpoint{}, fmt.Errorf("the address has no usable host: %w", errAddress)
	}
	return e, nil
}

// splitHost takes host, host:port, an IPv6 address bare or in brackets.
func splitHost(s string) (host, port string, ok bool) {
	switch {
	case net.ParseIP(withoutZone(s)) != nil:
		return s, "", true
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
		return host, "", net.ParseIP(withoutZone(host)) != nil
	case strings.Contains(s, ":"):
		host, port, err := net.SplitHostPort(s)
		return host, port, err == nil && port != ""
	}
	return s, "", true
}

func withoutZone(host string) string { h, _, _ := strings.Cut(host, "%"); return h }

// decodeObject: see object.
var errDuplicate = errors.New("a name is given twice")

// object splits a JSON object into its members, by exact name. A name that is
// there twice is an error: parsers disagree about which one counts.
func object(b []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	first, err := d.Token()
	if err != nil {
		return nil, notJSON(b, err)
	}
	if first != json.Delim('{') {
		return nil, fmt.Errorf("is JSON, but no object: %s", clip(string(bytes.TrimSpace(b)), 40))
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, notJSON(b, err)
		}
		name, _ := key.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, notJSON(b, err)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%w: %q", errDuplicate, clip(name, 40))
		}
		out[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, notJSON(b, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows after the JSON object")
	}
	return out, nil
}

// notJSON says what an answer looks like instead.
func notJSON(b []byte, err error) error {
	switch head := strings.ToLower(clip(string(bytes.TrimSpace(b)), 200)); {
	case head == "":
		return errors.New("is empty")
	case strings.HasPrefix(head, "<"):
		return errors.New("is a web page and no JSON: a log-in page, a proxy, or no Redfish service")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("is JSON that ends half-way")
	}
	return fmt.Errorf("is no JSON: %w", err)
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
