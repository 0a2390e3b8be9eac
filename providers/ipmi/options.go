package ipmi

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

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// options are a provider entry's options.
type options struct {
	// Port is used where the address has none.
	Port int `json:"port"`
	// CipherSuites are tried in this order.
	CipherSuites []int `json:"cipherSuites"`
	// Privilege is the level of sessions that read.
	Privilege string `json:"privilege"`
	// PowerOffPrivilege is the level of sessions that power off.
	PowerOffPrivilege string `json:"powerOffPrivilege"`
	// IgnoreACPIPowerState leaves out the question whether a machine that reads
	// off is suspended, for controllers that answer it wrongly.
	IgnoreACPIPowerState bool `json:"ignoreACPIPowerState"`
}

var levels = map[string]types.PrivilegeLevel{
	"User": types.PrivilegeLevelUser, "Operator": types.PrivilegeLevelOperator, "Administrator": types.PrivilegeLevelAdministrator,
}

// parseOptions takes only what it knows.
func parseOptions(raw json.RawMessage) (options, error) {
	o := options{Port: 623, CipherSuites: []int{17, 3}, Privilege: "User", PowerOffPrivilege: "Operator"}
	if len(bytes.TrimSpace(raw)) == 0 {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("options: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("options: more than one JSON value")
	}
	if o.Port < 1 || o.Port > 65535 {
		return o, fmt.Errorf("options.port: %d is no port", o.Port)
	}
	if len(o.CipherSuites) == 0 {
		return o, errors.New("options.cipherSuites: give at least one of 17 and 3")
	}
	for i, id := range o.CipherSuites {
		if _, ok := suites[id]; !ok {
			return o, fmt.Errorf("options.cipherSuites[%d]: %d is not supported; 17 and 3 are (others lack integrity or encryption)", i, id)
		}
		if slices.Contains(o.CipherSuites[:i], id) {
			return o, fmt.Errorf("options.cipherSuites[%d]: %d is there twice", i, id)
		}
	}
	if _, ok := levels[o.Privilege]; !ok {
		return o, fmt.Errorf("options.privilege: %q is none of User, Operator, Administrator", o.Privilege)
	}
	if o.PowerOffPrivilege != "Operator" && o.PowerOffPrivilege != "Administrator" {
		return o, fmt.Errorf("options.powerOffPrivilege: %q is none of Operator, Administrator", o.PowerOffPrivilege)
	}
	return o, nil
}

// endpoint gives host:port of a machine: a name or an address, IPv6 bracketed
// or, without a port, bare.
func (o options) endpoint(address string) (string, error) {
	host, port := address, strconv.Itoa(o.Port)
	switch {
	case address == "":
		return "", errors.New("the address is empty")
	case net.ParseIP(address) != nil:
	case strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]"):
		if host = address[1 : len(address)-1]; net.ParseIP(zoneless(host)) == nil {
			return "", fmt.Errorf("%q is no IPv6 address in brackets", address)
		}
	case strings.Contains(address, ":") && net.ParseIP(zoneless(address)) == nil:
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "", fmt.Errorf("%q is no host or host:port", address)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%q has no usable port", address)
	}
	if host == "" || strings.ContainsAny(host, "/@ \t\r\n") {
		return "", fmt.Errorf("%q is no host or host:port (no URL)", address)
	}
	return net.JoinHostPort(host, port), nil
}

func zoneless(host string) string { h, _, _ := strings.Cut(host, "%"); return h }

// checkMachine finds what cannot work before anything is sent. The limits are
// those of IPMI 2.0 (sections 13.20 and 22.30); a longer password would be cut
// silently, by us or by the controller, and then be wrong.
func checkMachine(m providers.Machine) error {
	const maxName, maxPassword = 16, 20
	c := m.Credentials
	switch {
	case len(c.Username) > maxName:
		return problemf(fencing.Misconfigured, "the user name has %d bytes; IPMI allows %d", len(c.Username), maxName)
	case len(c.Password) > maxPassword:
		return problemf(fencing.Misconfigured, "the password is longer than the %d bytes that IPMI 2.0 allows (IPMI 1.5 accounts: 16)", maxPassword)
	case strings.ContainsRune(c.Username, 0), strings.ContainsRune(c.Password, 0):
		return problemf(fencing.Misconfigured, "user name and password may not contain a NUL byte")
	case c.Username == "" && c.Password == "":
		return problemf(fencing.Misconfigured, "the Secret has neither user name nor password; anonymous IPMI is not supported")
	case m.System != "":
		return problemf(fencing.Misconfigured, "system is set to %q, and an IPMI controller has one machine only; remove it", providers.CleanRaw(m.System))
	case m.Fingerprint != "":
		return problemf(fencing.Misconfigured, "a certificate fingerprint is set, and IPMI has no certificates; remove it")
	}
	return nil
}
