package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/all"
)

type checkFlags struct {
	config, kubeconfig, output string
	fileOnly                   bool
	parallel                   int
}

func newCheckCommand() *cobra.Command {
	f := checkFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration and read every machine once",
		Long: `Validates the configuration file. Then, unless --file-only is given, it lists the
cluster's nodes and asks each node's machine once, in parallel, exactly as the
controller would: is it reachable, is it the right machine, is it on. Nothing is
changed, on nodes or on machines.

Exit status: 0 when every managed node could be fenced if it failed now; 2 when
one could not, or the configuration is not valid; 1 when the check itself failed.`,
		Example: `  nodefence check --config nodefence.yaml --file-only
  nodefence check --config nodefence.yaml --kubeconfig ~/.kube/config -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runCheck(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "/etc/nodefence/config.yaml", "configuration file")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the pod's service account)")
	fl.BoolVar(&f.fileOnly, "file-only", false, "only validate the file; ask no cluster and no machine")
	fl.StringVarP(&f.output, "output", "o", "table", "table or json")
	fl.IntVar(&f.parallel, "parallel", 16, "machines that are asked at once")
	return cmd
}

// checkResult is one node's row.
type checkResult struct {
	Node     string `json:"node"`
	Group    string `json:"group,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Provider string `json:"provider,omitempty"`
	Driver   string `json:"driver,omitempty"`
	Address  string `json:"address,omitempty"`
	// Fenceable: reachable, the right machine, and a power state that is known.
	Fenceable bool   `json:"fenceable"`
	Reachable bool   `json:"reachable"`
	Identity  string `json:"identity,omitempty"`
	Power     string `json:"power,omitempty"`
	// Milliseconds is how long the reading took.
	Milliseconds int64  `json:"milliseconds,omitempty"`
	Failure      string `json:"failure,omitempty"`
	Message      string `json:"message,omitempty"`
}

func runCheck(ctx context.Context, f checkFlags, out, errs io.Writer) error {
	if f.output != "table" && f.output != "json" {
		return fmt.Errorf("--output: %q is neither table nor json", f.output)
	}
	cfg, err := config.Load(f.config, all.Registry())
	if err != nil {
		var invalid *config.Error
		if !errors.As(err, &invalid) {
			return err
		}
		fmt.Fprintf(errs, "configuration %s is not valid:\n%v\n", f.config, err)
		return exitStatus(exitFindings)
	}
	fmt.Fprintf(errs, "configuration %s is valid\n", f.config)
	if f.fileOnly {
		return nil
	}
	cl, err := connect(ctx, f.kubeconfig)
	if err != nil {
		return err
	}
	if err := controller.ServerSuffices(cl.server, mostMode(cfg)); err != nil {
		fmt.Fprintln(errs, err)
		return exitStatus(exitFindings)
	}
	nodes, err := cl.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	views := make([]config.NodeView, 0, len(nodes.Items))
	for i := range nodes.Items {
		views = append(views, controller.View(&nodes.Items[i]))
	}
	for _, group := range cfg.SelectsNothing(views) {
		fmt.Fprintf(errs, "warning: group %s selects no node\n", group)
	}
	fleet := controller.ConfiguredFleet{Store: config.NewStore(cfg), Secrets: controller.SecretReader{Client: cl.api}}
	results, unmanaged := checkNodes(ctx, f, fleet, nodes.Items, errs)
	if n := len(unmanaged); n > 0 {
		fmt.Fprintf(errs, "%d of %d nodes belong to no group and are left alone: %s\n", n, len(nodes.Items), someOf(unmanaged))
	}
	if err := printResults(out, f.output, results); err != nil {
		return err
	}
	for _, r := range results {
		if !r.Fenceable {
			return exitStatus(exitFindings)
		}
	}
	return nil
}

// checkNodes asks every managed node's machine once.
func checkNodes(ctx context.Context, f checkFlags, fleet controller.Fleet, nodes []corev1.Node, progress io.Writer) (results []checkResult, unmanaged []string) {
	shared := map[string]int{}
	for i := range nodes {
		shared[fencing.UUIDKey(nodes[i].Status.NodeInfo.SystemUUID)]++
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(1, f.parallel))
	begin := time.Now()
	for i := range nodes {
		n := &nodes[i]
		a := fleet.Assign(n)
		if !a.Managed {
			unmanaged = append(unmanaged, n.Name)
			continue
		}
		a.Expected.SharedUUID = shared[fencing.UUIDKey(a.Expected.UUID)] > 1
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := checkNode(ctx, n.Name, a)
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
			if time.Since(begin) > time.Second {
				fmt.Fprintf(progress, "asked %d machines\n", len(results))
			}
		})
	}
	wg.Wait()
	sort.Slice(results, func(i, j int) bool { return results[i].Node < results[j].Node })
	return results, unmanaged
}

func checkNode(ctx context.Context, node string, a controller.Assignment) checkResult {
	r := checkResult{Node: node, Group: a.Policy.Group, Mode: a.Policy.Mode.String(), Provider: a.Provider}
	if a.Problem != "" {
		r.Message = a.Problem
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, a.Policy.ReadTimeout)
	defer cancel()
	m, err := a.Machine(ctx)
	r.Address = m.Address
	if err != nil {
		r.Message = providers.CleanRaw(err.Error())
		return r
	}
	m.Expected = a.Expected
	begin := time.Now()
	reading := a.Driver.Read(ctx, m)
	r.Milliseconds = time.Since(begin).Milliseconds()
	r.Driver, r.Power = reading.Driver, reading.Power.String()
	if reading.Failed() {
		r.Failure, r.Message = reading.Failure.Kind.String(), reading.Failure.Message
		r.Reachable = reading.Failure.Kind != fencing.Unreachable && reading.Failure.Kind != fencing.TimedOut
		return r
	}
	match, why := a.Expected.Match(reading.Identity)
	r.Reachable, r.Identity, r.Message = true, match.String(), why
	if reading.Hints.Conflict != "" {
		r.Message = reading.Hints.Conflict
	}
	r.Fenceable = (match == fencing.IdentityProved || match == fencing.IdentityUnproved && a.Policy.AllowUnproved) &&
		reading.Power != fencing.Unknown && reading.Hints.Conflict == ""
	return r
}

func printResults(out io.Writer, format string, results []checkResult) error {
	if format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if results == nil {
			results = []checkResult{}
		}
		return enc.Encode(results)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tGROUP\tMODE\tADDRESS\tDRIVER\tREACHABLE\tIDENTITY\tPOWER\tTIME\tFENCEABLE\tMESSAGE")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d ms\t%s\t%s\n", r.Node, r.Group, r.Mode, dash(r.Address), dash(r.Driver), yesNo(r.Reachable),
			dash(r.Identity), dash(r.Power), r.Milliseconds, yesNo(r.Fenceable), r.Message)
	}
	return w.Flush()
}

// someOf lists names, as many as a line holds.
func someOf(names []string) string {
	const most = 20
	sort.Strings(names)
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
