package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodefence/nodefence/providers"
)

// secrets is an API server with one Secret, or with a failure.
type secrets struct {
	data map[string][]byte
	err  error
}

func (s secrets) Secret(context.Context, string, string) (map[string][]byte, error) {
	return s.data, s.err
}

func keys(pairs ...string) map[string][]byte {
	out := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = []byte(pairs[i+1])
	}
	return out
}

// TestSecretThatCannotBeUsed: the message names the Secret and the key, and shows
// no value, whatever is wrong (S13).
func TestSecretThatCannotBeUsed(t *testing.T) {
	p := Provider{Name: "bmcs", From: CredentialSource{Secret: &SecretReference{Namespace: "fence", Name: "rack-a"}}}
	const where = "provider bmcs: the Secret fence/rack-a: "
	for name, c := range map[string]struct {
		secrets SecretGetter
		want    string
	}{
		"no access":        {nil, where + "there is no access to Secrets here"},
		"missing":          {secrets{err: errors.New(`secrets "rack-a" not found`)}, where + `secrets "rack-a" not found`},
		"no data":          {secrets{}, where + "the key username is missing"},
		"no user name":     {secrets{data: keys("password", canary)}, where + "the key username is missing"},
		"no password":      {secrets{data: keys("username", "root")}, where + "the key password is missing"},
		"misspelt":         {secrets{data: keys("username", "root", "passwd", canary)}, where + "the key password is missing"},
		"other case":       {secrets{data: keys("username", "root", "Password", canary)}, where + "the key password is missing"},
		"password as key":  {secrets{data: keys("username", "root", canary, "")}, where + "the key password is missing"},
		"empty password":   {secrets{data: keys("username", "root", "password", "")}, where + "the key password is empty"},
		"only a newline":   {secrets{data: keys("username", "root", "password", "\r\n")}, where + "the key password is empty"},
		"empty user name":  {secrets{data: keys("username", "", "password", canary)}, where + "the key username is empty"},
		"two lines":        {secrets{data: keys("username", "root", "password", canary+"\nx")}, where + "the key password holds a line break or another control character"},
		"password as name": {secrets{data: keys("username", canary+"\x00", "password", canary)}, where + "the key username holds a line break or another control character"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Credentials(t.Context(), c.secrets)
			if err == nil || err.Error() != c.want || got != (providers.Credentials{}) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestCredentialsAreReadAnew(t *testing.T) {
	p := Provider{Name: "bmcs", From: CredentialSource{Secret: &SecretReference{Namespace: "fence", Name: "rack-a"}}}
	for _, password := range []string{"one", "two ", " três ", "p@ss:w0rd\"'"} {
		// The line break that `echo` leaves behind is none of the password.
		got, err := p.Credentials(t.Context(), secrets{data: keys("username", "root\n", "password", password+"\r\n", "other", "x")})
		if want := (providers.Credentials{Username: "root", Password: password}); err != nil || got != want {
			t.Errorf("got %q %q, %v", got.Username, got.Password, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Credentials(ctx, secrets{data: keys("username", "a", "password", "b")}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestCredentialsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bmc.yaml")
	p := Provider{Name: "bmcs", From: CredentialSource{File: name}}
	where := "provider bmcs: the file " + name + ": "
	if _, err := p.Credentials(t.Context(), nil); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), where) {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]providers.Credentials{
		"username: root\npassword: " + canary + "\n":        {Username: "root", Password: canary},
		"{username: 0123, password: true}":                  {Username: "0123", Password: "true"},
		"username: 'a b'\npassword: \"x#y\"\n":              {Username: "a b", Password: "x#y"},
		"# a comment\npassword: |\n  secret\nusername: u\n": {Username: "u", Password: "secret"},
	} {
		write(t, name, text)
		if got, err := p.Credentials(t.Context(), nil); err != nil || got != want {
			t.Errorf("%q: got %q %q, %v", text, got.Username, got.Password, err)
		}
	}
	for text, want := range map[string]string{
		"":                             "line 1: is no YAML with the keys username and password",
		canary:                         "line 1: must be a mapping with the keys username and password",
		"- " + canary:                  "line 1: must be a mapping with the keys username and password",
		"username: root\npassword:\n":  "line 2: the key password must have text as its value; put it in quotes",
		"username: root":               "the key password is missing",
		"username: root\n" + canary:    "line 2: is no YAML with the keys username and password",
		canary + ": " + canary:         "line 1: unknown key; the known ones are username and password",
		"password: *" + canary:         "line 1: is no YAML with the keys username and password",
		"password: !" + canary + " x":  "line 1: the key password must have text as its value; put it in quotes",
		"password: [" + canary + "]":   "line 1: the key password must have text as its value; put it in quotes",
		"password: " + canary + ": x":  "line 1: is no YAML with the keys username and password",
		"password: a\npassword: b\n":   "line 2: the key password is given twice",
		"username: ''\npassword: a\n":  "the key username is empty",
		"username: a\n---\nx: y\n":     "line 2: is no YAML with the keys username and password",
		"username: a\n\tpassword: b\n": "line 2: is no YAML with the keys username and password",
	} {
		write(t, name, text)
		if _, err := p.Credentials(t.Context(), nil); err == nil || err.Error() != where+want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, where+want)
		}
	}
}

func TestCredentialsDirectory(t *testing.T) {
	dir := t.TempDir()
	p := Provider{Name: "bmcs", From: CredentialSource{Directory: dir}}
	where := "provider bmcs: the directory " + dir + ": "
	write(t, filepath.Join(dir, "username"), "root\n")
	if _, err := p.Credentials(t.Context(), nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "password")) {
		t.Errorf("no password: %v", err)
	}
	write(t, filepath.Join(dir, "password"), "")
	if _, err := p.Credentials(t.Context(), nil); err == nil || err.Error() != where+"the key password is empty" {
		t.Errorf("empty password: %v", err)
	}
	write(t, filepath.Join(dir, "password"), canary+"\n")
	if got, err := p.Credentials(t.Context(), nil); err != nil || got != (providers.Credentials{Username: "root", Password: canary}) {
		t.Errorf("got %q, %v", got, err)
	}
	write(t, filepath.Join(dir, "password"), strings.Repeat(canary, maxCredentials))
	if _, err := p.Credentials(t.Context(), nil); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("huge password: %v", err)
	}
}

// TestConfigurationPrintsNoOptions: options may hold what does not belong there.
func TestConfigurationPrintsNoOptions(t *testing.T) {
	o := Options(`{"token":"` + canary + `"}`)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, Provider{Options: o}); strings.Contains(s, canary) {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}
