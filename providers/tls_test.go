package providers_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// certificate is self-signed for 127.0.0.1, changed by change.
func certificate(t *testing.T, change func(*x509.Certificate)) (tls.Certificate, []byte, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bmc"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), hex.EncodeToString(sum[:])
}

// serveTLS answers 200 with this certificate.
func serveTLS(t *testing.T, cfg *tls.Config) (url string, asked func() int) {
	t.Helper()
	n := make(chan struct{}, 100)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n <- struct{}{}
		_, _ = io.WriteString(w, "ok")
	}))
	srv.TLS = cfg
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL, func() int { return len(n) }
}

func get(t *testing.T, cfg *tls.Config, url string) error {
	t.Helper()
	h := providers.NewHTTP(cfg, 0, time.Now)
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := h.Do(ctx, providers.Request{Method: http.MethodGet, URL: url})
	return err
}

// TestTrust: each way in which an endpoint may prove itself, and each refusal,
// which comes before anything is sent and says what to do.
func TestTrust(t *testing.T) {
	good, goodPEM, goodPin := certificate(t, nil)
	old, oldPEM, oldPin := certificate(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	other, otherPEM, _ := certificate(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.invalid"} })
	for _, c := range []struct {
		name    string
		cert    tls.Certificate
		tls     providers.TLS
		machine string // the machine's own pin
		says    string // empty: trusted
	}{
		{"CA bundle", good, providers.TLS{CA: goodPEM}, "", ""},
		{"CA bundle of several", good, providers.TLS{CA: append(append([]byte("# rack 1\n"), otherPEM...), goodPEM...)}, "", ""},
		{"another CA", good, providers.TLS{CA: otherPEM}, "", "unknown authority"},
		{"none: the system's roots", good, providers.TLS{}, "", "unknown authority"},
		{"expired", old, providers.TLS{CA: oldPEM}, "", "expired"},
		{"another name", other, providers.TLS{CA: otherPEM}, "", "another name"},
		{"pinned", good, providers.TLS{Fingerprint: goodPin}, "", ""},
		{"pinned, expired: exactly this one is trusted", old, providers.TLS{Fingerprint: oldPin}, "", ""},
		{"pinned, another name", other, providers.TLS{Fingerprint: goodPin}, "", "If the certificate was renewed"},
		{"the machine's pin comes first", good, providers.TLS{Fingerprint: oldPin}, goodPin, ""},
		{"the machine's pin before a CA that would do", good, providers.TLS{CA: goodPEM}, oldPin, "If the certificate was renewed"},
		{"the machine's pin before insecure", good, providers.TLS{Insecure: true}, oldPin, "If the certificate was renewed"},
		{"insecure", old, providers.TLS{Insecure: true}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, asked := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{c.cert}})
			cfg, err := c.tls.Config(providers.Machine{Fingerprint: c.machine})
			if err != nil {
				t.Fatal(err)
			}
			err = get(t, cfg, url)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			kind, words := providers.ExplainHTTP(err)
			if kind != fencing.Untrusted || !strings.Contains(words, c.says) || asked() != 0 {
				t.Errorf("%v, %d requests: %s (%v)", kind, asked(), words, err)
			}
		})
	}
}

// TestPinSurvivesResumption: VerifyConnection runs for resumed sessions too.
func TestPinSurvivesResumption(t *testing.T) {
	good, _, _ := certificate(t, nil)
	_, _, pin := certificate(t, nil)
	url, _ := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{good}})
	cfg, err := providers.TLS{Fingerprint: pin}.Config(providers.Machine{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for range 2 {
		if err := get(t, cfg, url); !errors.Is(err, providers.ErrFingerprint) {
			t.Errorf("%v", err)
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	good, goodPEM, _ := certificate(t, nil)
	url, asked := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	for _, s := range []providers.TLS{{CA: goodPEM}, {Insecure: true}} {
		cfg, err := s.Config(providers.Machine{})
		if err != nil {
			t.Fatal(err)
		}
		kind, words := providers.ExplainHTTP(get(t, cfg, url))
		if kind != fencing.Untrusted || !strings.Contains(words, "TLS 1.2") || asked() != 0 {
			t.Errorf("%v: %s", kind, words)
		}
	}
}

func TestTLSSettingsThatAreWrong(t *testing.T) {
	for _, s := range []providers.TLS{{CA: []byte("no PEM")}, {Fingerprint: "00"}, {Fingerprint: strings.Repeat("zz", 32)}} {
		if _, err := s.Config(providers.Machine{}); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	if _, err := (providers.TLS{}).Config(providers.Machine{Fingerprint: "x"}); err == nil {
		t.Error("a machine's fingerprint that is none is taken")
	}
}

func TestParseFingerprint(t *testing.T) {
	plain := strings.Repeat("0a", 32)
	for in, ok := range map[string]bool{
		plain: true, strings.ToUpper(plain): true, " " + plain + "\n": true, strings.TrimSuffix(strings.Repeat("0A:", 32), ":"): true,
		"": false, plain[:62]: false, plain + "00": false, "SHA256:" + plain: false, strings.Repeat("0g", 32): false,
	} {
		b, err := providers.ParseFingerprint(in)
		if (err == nil) != ok || ok && fmt.Sprintf("%x", b) != plain {
			t.Errorf("%q: %x, %v", in, b, err)
		}
	}
}
