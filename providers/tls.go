package providers

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// TLS says how an endpoint proves that it is the right one. The zero value
// verifies against the system's roots.
type TLS struct {
	// CA is a PEM bundle that is used instead of the system's roots.
	CA []byte
	// Fingerprint pins the certificate instead (see Machine.Fingerprint).
	Fingerprint string
	// Insecure turns verification off. Only an explicit setting of the operator
	// may set it.
	Insecure bool
}

// ErrFingerprint is the cause when an endpoint shows another certificate than
// the pinned one.
var ErrFingerprint = errors.New("the certificate is not the pinned one")

// Config gives the client configuration for one machine: TLS 1.2 or newer, and
// the machine's own pin before the provider's settings.
func (t TLS) Config(m Machine) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	pin := t.Fingerprint
	if m.Fingerprint != "" {
		pin = m.Fingerprint
	}
	switch {
	case pin != "":
		want, err := ParseFingerprint(pin)
		if err != nil {
			return nil, err
		}
		// Verification by the roots is replaced by the comparison with the pin,
		// which is stricter: exactly one certificate passes.
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(s tls.ConnectionState) error { return checkPin(s, want) }
	case t.Insecure:
		cfg.InsecureSkipVerify = true
	case len(t.CA) > 0:
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("the CA bundle holds no certificate in PEM form")
		}
	}
	return cfg, nil
}

func checkPin(s tls.ConnectionState, want []byte) error {
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("%w: the endpoint shows none", ErrFingerprint)
	}
	got := sha256.Sum256(s.PeerCertificates[0].Raw)
	if !bytes.Equal(got[:], want) {
		return fmt.Errorf("%w: it has SHA-256 %x", ErrFingerprint, got)
	}
	return nil
}

// ParseFingerprint reads the SHA-256 of a certificate: 64 hexadecimal digits,
// colons allowed, in any case.
func ParseFingerprint(s string) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
	if err != nil || len(b) != sha256.Size {
		return nil, fmt.Errorf("%q is no SHA-256 fingerprint: 64 hexadecimal digits are expected, colons allowed", s)
	}
	return b, nil
}
