package providers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Setenv(name, "http://127.0.0.1:1")
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		_ = os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m)
}

// TestCredentialsAreNotShown: however somebody prints them, or what holds them.
func TestCredentialsAreNotShown(t *testing.T) {
	const secret = "cAnArY"
	c := providers.Credentials{Username: "fencer", Password: secret}
	m := providers.Machine{Node: "node-1", Credentials: c}
	var texts []string
	for _, v := range []any{c, &c, m, &m, []providers.Credentials{c}, map[string]providers.Credentials{"x": c}, struct{ C any }{c}} {
		texts = append(texts, fmt.Sprint(v), fmt.Sprintf("%v %+v %#v %s %q", v, v, v, v, v))
		inJSON, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
		}
		var slogText, slogJSON, zapJSON, zapConsole bytes.Buffer
		slog.New(slog.NewTextHandler(&slogText, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&slogJSON, nil)).Info("x", "v", v)
		for out, enc := range map[*bytes.Buffer]zapcore.Encoder{
			&zapJSON:    zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
			&zapConsole: zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
		} {
			log := zap.New(zapcore.NewCore(enc, zapcore.AddSync(out), zap.InfoLevel))
			log.Info("x", zap.Any("v", v), zap.Reflect("r", v))
			log.Sugar().Infow("x", "v", v)
			log.Sugar().Infof("%v %+v", v, v)
		}
		texts = append(texts, string(inJSON), slogText.String(), slogJSON.String(), zapJSON.String(), zapConsole.String())
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("the password is shown: %s", text)
		}
		if !strings.Contains(text, "fencer") && !strings.Contains(text, "0x") && text != "" {
			t.Errorf("the name is not shown, so this proves nothing: %s", text)
		}
	}
}

func TestErrorSaysWhereAndWhy(t *testing.T) {
	cause := errors.New("the cause\nin two lines")
	e := &providers.Error{Kind: fencing.Busy, Op: "read power state", Node: "node-1", Address: "bmc-1", RetryAfter: time.Second, Err: cause}
	for _, part := range []string{"node-1", "bmc-1", "read power state", fencing.Busy.String(), "the cause"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q lacks %q", e.Error(), part)
		}
	}
	if !errors.Is(e, cause) {
		t.Error("the cause is lost")
	}
	want := fencing.Failure{Kind: fencing.Busy, Message: "read power state: the cause in two lines", RetryAfter: time.Second}
	for _, err := range []error{e, fmt.Errorf("wrapped: %w", e)} {
		if got := providers.FailureOf(err); got != want {
			t.Errorf("%+v", got)
		}
	}
	if got := providers.FailureOf(context.DeadlineExceeded); got.Kind != fencing.TimedOut || got.Message == "" {
		t.Errorf("%+v", got)
	}
}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestClassifyNetwork(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		want fencing.FailureKind
	}{
		{nil, fencing.NoFailure},
		{context.DeadlineExceeded, fencing.TimedOut},
		{context.Canceled, fencing.TimedOut},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), fencing.TimedOut},
		{os.ErrDeadlineExceeded, fencing.TimedOut},
		{timeout{}, fencing.TimedOut},
		{dial(timeout{}), fencing.TimedOut},
		{&net.DNSError{Err: "no such host", Name: "bmc-1"}, fencing.Unreachable},
		{&net.DNSError{Err: "timeout", Name: "bmc-1", IsTimeout: true}, fencing.Unreachable}, // names are not the endpoint's slowness
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), fencing.Unreachable},
		{os.NewSyscallError("connect", syscall.EHOSTUNREACH), fencing.Unreachable},
		{os.NewSyscallError("connect", syscall.ENETUNREACH), fencing.Unreachable},
		{dial(errors.New("anything")), fencing.Unreachable},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, fencing.Failed},
		{io.EOF, fencing.Failed},
		{errors.New("off"), fencing.Failed},
	} {
		if got := providers.ClassifyNetwork(c.err); got != c.want {
			t.Errorf("%v: %v where %v is expected", c.err, got, c.want)
		}
	}
}

func TestCleanRaw(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain": "plain", "  two\t\n words \r\n": "two words", "a\x00b": "a?b", "\x1b[31mred": "?[31mred",
		"bad\xff\xfeutf8": "bad??utf8", "ümläut": "ümläut", "\u202eright to left": "?right to left", "\u200bzero": "?zero", " \n ": "",
		strings.Repeat("x", 600): strings.Repeat("x", fencing.MaxRawLength),
	} {
		if got := providers.CleanRaw(in); got != want {
			t.Errorf("%q: %q where %q is expected", in, got, want)
		}
	}
	if got := providers.CleanRaw(strings.Repeat("x", fencing.MaxRawLength-1) + "ü"); got != strings.Repeat("x", fencing.MaxRawLength-1) {
		t.Errorf("a letter is cut in two: %q", got[fencing.MaxRawLength-4:])
	}
}

// FuzzCleanRaw: whatever comes, it is one printable line of bounded length, and
// cleaning twice changes nothing.
func FuzzCleanRaw(f *testing.F) {
	for _, s := range []string{"", "a b", "\xff", strings.Repeat("ü ", 400), "a\u2028b", "\x00\x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := providers.CleanRaw(in)
		if len(got) > fencing.MaxRawLength || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", in, got)
		}
		if again := providers.CleanRaw(got); again != strings.TrimRight(got, " ") && again != got {
			t.Errorf("%q, and then %q", got, again)
		}
	})
}
