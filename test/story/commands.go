package story

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
)

// Check runs `nodefence check` as a person would before anything fails: every
// machine can be reached, is the right one, and is on.
func Check(ctx context.Context, w *World) error {
	w.Timeline.Title("nodefence check", "Before anything fails: can every machine be reached, is it the right one, is it on?")
	table, err := w.check(ctx, "table")
	if err != nil {
		return err
	}
	w.Timeline.Text(table)
	out, err := w.check(ctx, "json")
	if err != nil {
		return err
	}
	var rows []struct {
		Node, Identity, Power string
		Fenceable             bool
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return wrong("nodefence check -o json: %v in %s", err, out)
	}
	if len(rows) != len(w.Nodes) {
		return wrong("nodefence check has %d rows for %d nodes", len(rows), len(w.Nodes))
	}
	for _, r := range rows {
		if w.Nodes[r.Node] == nil || r.Identity != "Proved" || r.Power != "On" || !r.Fenceable {
			return wrong("nodefence check says %+v", r)
		}
	}
	return nil
}

func (w *World) check(ctx context.Context, format string) (string, error) {
	return output(ctx, w.binary, "check", "--config", w.configFile(), "--kubeconfig", filepath.Join(w.Cluster.Dir, "nodefence.kubeconfig"), "-o", format)
}

// ShowCases shows what `kubectl get fencingcases` prints.
func (w *World) ShowCases(ctx context.Context) error {
	out, err := output(ctx, w.Cluster.Binaries().Kubectl, "--kubeconfig", w.Cluster.Kubeconfig(), "get", "fencingcases")
	if err != nil {
		return err
	}
	w.Timeline.Text("\n$ kubectl get fencingcases\n" + out)
	return nil
}

// output runs a command to its end and gives what it prints.
func output(ctx context.Context, path string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", wrong("%s %v: %v\n%s%s", filepath.Base(path), args, err, out.String(), errs.String())
	}
	return out.String(), nil
}
