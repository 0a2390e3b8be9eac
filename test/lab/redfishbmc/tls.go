package redfishbmc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// Certificate is a kind of certificate that the service can show.
type Certificate int

const (
	// CertGood is for 127.0.0.1, by the lab's own CA.
	CertGood Certificate = iota
	// CertExpired was good until yesterday: a controller that nobody renewed.
	CertExpired
	// CertSelfSigned is what controllers are delivered with: by itself, for
	// another name.
	CertSelfSigned
	// CertOtherName is by the lab's CA for another controller.
	CertOtherName
)

// certificates are made when the service starts, and exist nowhere else.
type certificates struct {
	caPEM []byte
	pool  *x509.CertPool
	all   map[Certificate]*tls.Certificate

	mu   sync.Mutex
	kind Certificate
}

func newCertificates() (*certificates, error) {
	now := time.Now()
	caKey, err := newKey()
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nodefence lab CA"},
		NotBefore: now.AddDate(0, 0, -30), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, fmt.Errorf("redfishbmc: CA: %w", err)
	}
	c := &certificates{
		caPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pool:  x509.NewCertPool(), all: map[Certificate]*tls.Certificate{},
	}
	c.pool.AppendCertsFromPEM(c.caPEM)
	good := x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "bmc"},
		NotBefore: now.AddDate(0, 0, -10), NotAfter: now.AddDate(0, 6, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	expired, other := good, good
	expired.SerialNumber, expired.NotAfter = big.NewInt(3), now.AddDate(0, 0, -1)
	other.SerialNumber, other.IPAddresses, other.DNSNames = big.NewInt(4), nil, []string{"other-bmc.invalid"}
	self := other
	self.SerialNumber, self.Subject = big.NewInt(5), pkix.Name{CommonName: "other-bmc.invalid"}
	for kind, leaf := range map[Certificate]*x509.Certificate{
		CertGood: &good, CertExpired: &expired, CertOtherName: &other, CertSelfSigned: &self,
	} {
		parent, signer := ca, caKey
		key, err := newKey()
		if err != nil {
			return nil, err
		}
		if kind == CertSelfSigned {
			parent, signer = leaf, key
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, parent, &key.PublicKey, signer)
		if err != nil {
			return nil, fmt.Errorf("redfishbmc: certificate: %w", err)
		}
		c.all[kind] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	return c, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("redfishbmc: key: %w", err)
	}
	return key, nil
}

func (c *certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[c.kind]
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil }

func (c *certificates) use(kind Certificate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[kind] == nil {
		return fmt.Errorf("redfishbmc: no certificate of kind %d", kind)
	}
	c.kind = kind
	return nil
}

// CAPool trusts the lab's CA.
func (b *BMC) CAPool() *x509.CertPool { return b.certs.pool.Clone() }

// CAPEM is the lab's CA certificate.
func (b *BMC) CAPEM() []byte { return append([]byte(nil), b.certs.caPEM...) }

// Fingerprint is the SHA-256 of the certificate that is shown now, in
// lower-case hexadecimal.
func (b *BMC) Fingerprint() string {
	sum := sha256.Sum256(b.certs.current().Certificate[0])
	return hex.EncodeToString(sum[:])
}
