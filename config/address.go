package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

const maxAddress = 1024

// checkAddress tells what is wrong with an address. Its form is the driver's
// affair; here it must be one word, hold no credentials, and have an allowed
// host. An address may come from a Node's annotation, which its kubelet writes.
func checkAddress(address string, allowed []hostRule) error {
	switch {
	case strings.TrimSpace(address) == "":
		return errors.New("the address is empty")
	case len(address) > maxAddress:
		return fmt.Errorf("the address has more than %d bytes", maxAddress)
	case strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return errors.New("the address holds white space or characters that cannot be printed")
	case strings.Contains(address, "@"):
		return errors.New("the address must not hold a user name or a password")
	case len(allowed) == 0:
		return nil
	}
	host, err := hostOf(address)
	if err != nil {
		return err
	}
	for _, rule := range allowed {
		if rule.allows(host) {
			return nil
		}
	}
	return fmt.Errorf("the host %s is not in machine.allowedHosts", host)
}

// hostOf gives the host of an address: a host, host:port or URL.
func hostOf(address string) (string, error) {
	authority := address
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			return "", errors.New("the address is no URL with a host")
		}
		return u.Hostname(), nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(authority, "[]")); err == nil {
		return ip.String(), nil
	}
	if strings.Contains(authority, ":") {
		host, _, err := net.SplitHostPort(authority)
		if err != nil {
			return "", errors.New("the address is no host and no host:port")
		}
		authority = host
	}
	if authority == "" || strings.ContainsAny(authority, "/?#%[]") {
		return "", errors.New("the address has no host")
	}
	return authority, nil
}

// hostRule is one entry of machine.allowedHosts: a network, a name, or all names
// below a domain.
type hostRule struct {
	network netip.Prefix
	name    string
	below   string
}

func parseHostRule(s string) (hostRule, error) {
	if network, err := netip.ParsePrefix(s); err == nil {
		return hostRule{network: network.Masked()}, nil
	}
	if ip, err := netip.ParseAddr(s); err == nil && ip.Zone() == "" {
		return hostRule{network: netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())}, nil
	}
	name, wild := strings.CutPrefix(strings.ToLower(s), "*.")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return hostRule{}, fmt.Errorf("is %q, but must be a network (10.0.0.0/24), an address, a name, or a domain (*.bmc.example.com)", clip(s))
	}
	if wild {
		return hostRule{below: "." + name}, nil
	}
	return hostRule{name: name}, nil
}

// allows compares addresses as addresses and names as names: no name is looked
// up, because who answers for it may change between the look and the use.
func (r hostRule) allows(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.network.IsValid() && ip.Zone() == "" && r.network.Contains(ip.Unmap())
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host != "" && (host == r.name || r.below != "" && strings.HasSuffix(host, r.below) && len(host) > len(r.below))
}
