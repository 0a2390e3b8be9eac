package providers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/nodefence/nodefence/fencing"
)

// ExplainTLS tells whether an error is a refusal of trust, and puts it in words
// that say what to do.
func ExplainTLS(err error) (string, bool) {
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		roots    x509.SystemRootsError
		verify   *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, ErrFingerprint):
		return fmt.Sprintf("%s. If the certificate was renewed, pin the new one; if not, somebody stands between", pinWords(err)), true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet; renew it, or set the clock right: " + invalid.Error(), true
	case errors.As(err, &invalid):
		return "the certificate is not valid: " + invalid.Error(), true
	case errors.As(err, &hostname):
		return "the certificate is for another name; use a name that it has, renew it, or pin its fingerprint: " + hostname.Error(), true
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority; give its CA, or pin its fingerprint", true
	case errors.As(err, &roots):
		return "there are no system roots to verify the certificate against; give a CA, or pin the fingerprint", true
	case isAlert(err):
		return "the endpoint broke off the TLS handshake (" + err.Error() + "); it may know no TLS 1.2 or no cipher that is still considered safe", true
	case errors.As(err, &verify):
		return "the certificate could not be verified: " + verify.Err.Error(), true
	}
	return "", false
}

// isAlert tells whether one end sent a TLS alert. Package crypto/tls has no public
// type for it over TCP, only these operations.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}

// pinWords is the part of the error that names the certificate which was shown.
func pinWords(err error) string {
	text := err.Error()
	if i := strings.Index(text, ErrFingerprint.Error()); i >= 0 {
		return text[i:]
	}
	return ErrFingerprint.Error()
}

// ExplainHTTP classifies an error of HTTP.Do, and puts it in words. The words
// may quote the endpoint: callers remove secrets from them.
func ExplainHTTP(err error) (fencing.FailureKind, string) {
	if words, ok := ExplainTLS(err); ok {
		return fencing.Untrusted, words
	}
	var noTLS tls.RecordHeaderError
	switch kind := ClassifyNetwork(err); {
	case kind == fencing.TimedOut:
		return kind, "no complete answer within the deadline"
	case kind == fencing.Unreachable:
		return kind, "no connection: " + err.Error()
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &noTLS):
		return fencing.Malformed, "the endpoint does not speak TLS on this port"
	case errors.Is(err, ErrBodyTooLong):
		return fencing.Malformed, err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fencing.Failed, "the endpoint closed the connection before its answer was complete"
	case isMalformed(err):
		return fencing.Malformed, "the endpoint does not speak HTTP as it should: " + err.Error()
	}
	return fencing.Failed, err.Error()
}

// isMalformed: package net/http has no type for this, only its words. They
// change the kind of a failure, never whether it is one.
func isMalformed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed") || strings.Contains(text, "server response headers exceeded")
}
