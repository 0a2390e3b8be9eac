package bmc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stmcginnis/gofish/common"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// TestParseState: the whole mapping, for every driver that may be configured.
func TestParseState(t *testing.T) {
	for _, driver := range driverNames() {
		for word, want := range map[string]fencing.PowerState{
			"On": fencing.On, "Off": fencing.Off, "PoweringOn": fencing.PoweringOn, "PoweringOff": fencing.PoweringOff, "Paused": fencing.Suspended,
			"": 0, "off": 0, "OFF": 0, " Off": 0, "Off\n": 0, "Powering Off": 0, "SoftOff": 0, "Reset": 0, "Unknown": 0, "Standby": 0, "null": 0, "0": 0,
			"Chassis Power is off": 0,
		} {
			if got := parseState(driver, word); got != want {
				t.Errorf("%s: %q is %v", driver, word, got)
			}
		}
		if refusedDrivers[driver] != "" {
			t.Errorf("%s has states and is refused", driver)
		}
	}
	for _, driver := range []string{"", "ipmitool", "asrockrack", "supermicro", "IntelAMT"} {
		if got := parseState(driver, "Off"); got != fencing.Unknown {
			t.Errorf("%s, which is not supported: %v", driver, got)
		}
	}
}

// FuzzParseState: Off comes of one word alone.
func FuzzParseState(f *testing.F) {
	for _, s := range []string{"Off", "off", "PoweringOff", "", "On"} {
		f.Add("gofish", s)
	}
	f.Fuzz(func(t *testing.T, driver, word string) {
		if parseState(driver, word) == fencing.Off && word != "Off" {
			t.Errorf("%s: %q is Off", driver, word)
		}
	})
}

// FuzzParseRefusal: an answer that is no success has a kind and words.
func FuzzParseRefusal(f *testing.F) {
	f.Add(503, []byte(`{"error":{"code":"x","@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.RAC0218"}]}}`))
	f.Add(0, []byte(`null`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		var e *common.Error
		if !errors.As(common.ConstructError(status, body), &e) {
			return
		}
		if kind, _ := parseRefusal(e); kind == fencing.NoFailure {
			t.Errorf("%d %s is no failure", status, body)
		}
	})
}

// TestScrub: the password in the forms in which an endpoint could send it back.
func TestScrub(t *testing.T) {
	const pass = `s3cret/&+"x`
	s := &session{creds: providers.Credentials{Username: "fencer", Password: pass}}
	quoted, _ := json.Marshal(pass)
	for _, text := range []string{pass, string(quoted), "a%2Fs3cret%2F%26%2B%22xb", "czNjcmV0LyYrIng=", "ZmVuY2VyOnMzY3JldC8mKyJ4"} {
		if got := s.scrub("before " + text + " after"); strings.Contains(got, "s3cret") || strings.Contains(got, "czNjcmV0") || strings.Contains(got, "ZmVuY2Vy") || !strings.Contains(got, "after") {
			t.Errorf("%s: %s", text, got)
		}
	}
}
