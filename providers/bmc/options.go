package bmc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// options are a provider entry's options.
type options struct {
	// Drivers are bmclib's drivers to use, in this order. The next one is tried
	// only when one finds that the controller is not of its kind.
	Drivers []string `json:"drivers"`
	// Port is used where the address has none.
	Port int `json:"port"`
	// Inventory says when the serial number is read: it takes some dozens of
	// requests. "expected": when the machine's serial number is known and can be
	// compared; "always"; "never".
	Inventory string `json:"inventory"`
	// BasicAuth makes no Redfish session, for controllers whose sessions do not
	// work.
	BasicAuth bool `json:"basicAuth"`
	// DisableEtagMatch leaves out If-Match, for controllers that answer 412.
	DisableEtagMatch bool `json:"disableEtagMatch"`
}

// refusedDrivers are those of bmclib that cannot be used, with the reason.
var refusedDrivers = map[string]string{
	"ipmitool": "it starts a process for each question and takes any output for an answer; use the driver ipmi",
	"IntelAMT": "it reports sleep and hibernation as off, keeps no deadline, and speaks plain HTTP",
	// An absent number is 0 to it, and 0 is off.
	"asrockrack": "it takes an answer without a power state, even {} or null, for off; use the driver redfish or ipmi",
	// It drops the HTTP client that it is given.
	"supermicro": "it sends the password to any certificate, and a wrong one twice; use the driver redfish or ipmi",
}

func parseOptions(raw json.RawMessage) (options, error) {
	o := options{Port: 443, Inventory: "expected"}
	if len(bytes.TrimSpace(raw)) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return o, fmt.Errorf("options: %w", err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return o, errors.New("options: more than one JSON value")
		}
	}
	if len(o.Drivers) == 0 {
		return o, fmt.Errorf("options.drivers: name at least one of %q; bmclib would otherwise log in with all of them at once", driverNames())
	}
	for i, name := range o.Drivers {
		if reason, ok := refusedDrivers[name]; ok {
			return o, fmt.Errorf("options.drivers[%d]: %s is not supported: %s", i, name, reason)
		}
		if _, ok := states[name]; !ok {
			return o, fmt.Errorf("options.drivers[%d]: %q is none of %q", i, name, driverNames())
		}
		if slices.Contains(o.Drivers[:i], name) {
			return o, fmt.Errorf("options.drivers[%d]: %s is there twice", i, name)
		}
	}
	if o.Port < 1 || o.Port > 65535 {
		return o, fmt.Errorf("options.port: %d is no port", o.Port)
	}
	if !slices.Contains([]string{"expected", "always", "never"}, o.Inventory) {
		return o, fmt.Errorf(`options.inventory: %q is none of "expected", "always", "never"`, o.Inventory)
	}
	return o, nil
}

// wantsSerial tells whether the inventory is to be read for this machine.
func (o options) wantsSerial(m providers.Machine) bool {
	return o.Inventory == "always" || o.Inventory == "expected" && m.Expected.Serial != ""
}

// endpoint gives host and port of a machine: a name or an address, IPv6
// bracketed or, without a port, bare.
func (o options) endpoint(address string) (host, port string, err error) {
	host, port = strings.TrimPrefix(address, "https://"), strconv.Itoa(o.Port)
	switch {
	case net.ParseIP(host) != nil:
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		host = host[1 : len(host)-1]
	case strings.Contains(host, ":"):
		if host, port, err = net.SplitHostPort(host); err != nil {
			return "", "", fmt.Errorf("%q is no host or host:port", address)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", "", fmt.Errorf("%q has no usable port", address)
	}
	if host == "" || strings.ContainsAny(host, "/@ \t\r\n") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return "", "", fmt.Errorf("%q is no host or host:port", address)
	}
	return host, port, nil
}

// checkMachine finds what cannot work before anything is sent.
func checkMachine(m providers.Machine) error {
	switch {
	case m.Credentials.Username == "" || m.Credentials.Password == "":
		return problemf(fencing.Misconfigured, "the Secret has no user name or no password")
	case m.System != "":
		// bmclib chooses by the system's Name, which vendors give to all alike,
		// and anew for each question: serial number and power state could be those
		// of two machines.
		return problemf(fencing.Misconfigured, "system is set, and bmclib cannot tell systems behind one address apart; use the driver redfish")
	}
	return nil
}
