package ipmisim

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
)

// The files of a simulator, beneath its folder.
const (
	lanConf    = "lan.conf"
	emuConf    = "emu.cmd"
	stateDir   = "state"
	scriptFile = "chassis"
	askFIFO    = "ask"
	answerFIFO = "answer"
)

// emulator is one management controller at the usual address.
const emulator = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

// script passes its arguments on and waits for the answer that bears its own
// process ID: an answer to a script that was killed may lie before it. The
// FIFOs are opened for both directions, because opening for one blocks.
const script = `#!/bin/sh
exec 3<>"${0%/*}/ask" 4<>"${0%/*}/answer"
echo "$$ $*" >&3
while read -r id status text <&4; do
	if [ "$id" = "$$" ]; then
		printf '%b' "$text"
		exit "$status"
	fi
done
exit 1
`

func writeConfig(cfg Config, port int, uuid lab.UUID) error {
	// The simulator sends these bytes as they are written.
	guid := uuid.Swapped()
	var b strings.Builder
	fmt.Fprintf(&b, "name \"lab\"\nset_working_mc 0x20\nstartlan 1\n")
	fmt.Fprintf(&b, "  addr 127.0.0.1 %d\n  priv_limit admin\n", port)
	for _, level := range []string{"callback", "user", "operator", "admin"} {
		fmt.Fprintf(&b, "  allowed_auths_%s none md2 md5 straight\n", level)
	}
	fmt.Fprintf(&b, "  guid %s\nendlan\n", hex.EncodeToString(guid[:]))
	fmt.Fprintf(&b, "chassis_control %q\n", filepath.Join(cfg.Dir, scriptFile))
	for i, u := range cfg.Users {
		if !isPlain(u.Name) || !isPlain(u.Password) || len(u.Name) > 16 || len(u.Password) > 20 {
			return fmt.Errorf("ipmisim: user %q: the simulator takes names up to 16 and passwords up to 20 visible bytes without quotes", u.Name)
		}
		fmt.Fprintf(&b, "user %d true \"%s\" \"%s\" %s 10 none md2 md5 straight\n", i+2, u.Name, u.Password, level(u.Privilege))
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, stateDir), 0o700); err != nil {
		return fmt.Errorf("ipmisim: %w", err)
	}
	for _, f := range []struct {
		name, text string
		mode       os.FileMode
	}{
		{lanConf, b.String(), 0o600}, {emuConf, emulator, 0o600}, {scriptFile, script, 0o700},
	} {
		if err := os.WriteFile(filepath.Join(cfg.Dir, f.name), []byte(f.text), f.mode); err != nil {
			return fmt.Errorf("ipmisim: %w", err)
		}
	}
	return nil
}

// isPlain: the simulator's configuration has quotes and no escapes.
func isPlain(s string) bool {
	for _, r := range s {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return false
		}
	}
	return s != ""
}

func level(p ipmibmc.Privilege) string {
	switch p {
	case ipmibmc.Administrator:
		return "admin"
	case ipmibmc.Operator:
		return "operator"
	}
	return "user"
}
