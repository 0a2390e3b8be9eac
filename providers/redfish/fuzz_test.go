package redfish

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// FuzzParsePower: Off comes of one word alone.
func FuzzParsePower(f *testing.F) {
	for _, s := range []string{`"Off"`, `"PoweringOff"`, `"off"`, `null`, `""`, `0`, `"Off" `, `"\u004fff"`, `["Off"]`, `"Off`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, why := parsePower(raw)
		if (got == fencing.Unknown) != (why != "") {
			t.Errorf("%s: %v because %q", raw, got, why)
		}
		if got == fencing.Off && strings.TrimSpace(string(raw)) != `"Off"` && !strings.Contains(string(raw), `\u`) {
			t.Errorf("%s is Off", raw)
		}
	})
}

// FuzzParseFault: whatever comes with another status is a failure with a kind and
// words, never a success.
func FuzzParseFault(f *testing.F) {
	f.Add(401, []byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.NoValidSession","Message":"no"}]}}`), "30")
	f.Add(503, []byte(`<html>`), "soon")
	f.Add(200, []byte(`null`), "")
	f.Add(-1, []byte(`{"error":[[[`), "\x00")
	f.Fuzz(func(t *testing.T, status int, body []byte, retryAfter string) {
		p := parseFault("GET x", providers.Answer{Status: status, Body: body, Header: http.Header{"Retry-After": {retryAfter}}}, time.Unix(0, 0))
		if p == nil || p.kind == fencing.NoFailure || p.text == "" || p.retryAfter < 0 || p.retryAfter != 0 && p.kind != fencing.Busy {
			t.Errorf("%d %q: %+v", status, body, p)
		}
	})
}

// FuzzRedirectTarget: a redirect leads to a path of the same endpoint, or nowhere.
func FuzzRedirectTarget(f *testing.F) {
	for _, s := range []string{"", "/redfish/v1/Systems/1/", "https://bmc-1/redfish/v1/", "//other/redfish/v1/", "https://bmc-1@other/redfish/v1/", "/redfish/v1/../../x", "https://bmc-1:444/redfish/v1/x", `\\host\redfish`} {
		f.Add(302, s)
	}
	e := endpoint{base: "https://bmc-1", host: "bmc-1"}
	f.Fuzz(func(t *testing.T, status int, location string) {
		path, host, redirected := redirectTarget(e, providers.Answer{Status: status, Header: http.Header{"Location": {location}}})
		if redirected != (status >= 300 && status < 400) || path != "" && !redirected || redirected && host == "" {
			t.Errorf("%d %q: %q %q %t", status, location, path, host, redirected)
		}
		if path == "" {
			return
		}
		u, err := url.Parse(e.base + path)
		if err != nil || u.Host != e.host || u.Path != path || !strings.HasPrefix(path, serviceRoot) || strings.Contains(path+"/", "/../") {
			t.Errorf("%q leads to %q", location, path)
		}
	})
}

// FuzzParseAddress: an address that is taken leads to one host, over https, with
// nothing hidden in it; a refusal does not repeat the address.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"bmc-1", "bmc-1:8443", "https://bmc-1", "[2001:db8::1]:443", "fe80::1%eth0", "https://user:s3cretpass@bmc-1", "http://bmc-1", "bmc-1/x", "bmc-1:0", "", "[::1", "https://[::1]:99999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		e, err := parseAddress(address, false)
		if err != nil {
			if len(address) > 8 && !strings.Contains(errAddress.Error(), address) && strings.Contains(err.Error(), address) {
				t.Errorf("the refusal repeats the address: %v", err)
			}
			return
		}
		u, err := url.Parse(e.base + "/redfish/v1/")
		if err != nil || u.Scheme != "https" || u.User != nil || u.Path != "/redfish/v1/" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q: %q, %v", address, e.base, err)
		}
	})
}
