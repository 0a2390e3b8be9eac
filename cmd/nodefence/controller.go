package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers/all"
)

type controllerFlags struct {
	config, kubeconfig, listen, logFormat, namespace, identity string
	logLevel                                                   string
	workers, maxReadings                                       int
	election                                                   controller.ElectionSettings
}

func newControllerCommand() *cobra.Command {
	f := controllerFlags{election: controller.DefaultElection()}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Watch the cluster and act as the configuration allows",
		Long: `Runs the fencing controller until it is stopped. Several may run: one leads, the
others wait. The configuration file is read again when it changes; a bad change is
refused and the old configuration stays in force.

Exit status: 0 after a stop by signal; 1 when it could not start or lost its lead.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runController(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "/etc/nodefence/config.yaml", "configuration file")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the pod's service account)")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:9469", "address of /metrics, /healthz and /readyz; empty for none")
	fl.StringVar(&f.logFormat, "log-format", "json", "json or console")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fl.StringVar(&f.namespace, "namespace", defaultNamespace(), "namespace of the leader's lease; in a pod its own")
	fl.StringVar(&f.identity, "identity", "", "name of this process among those that may lead (default: host name and process ID)")
	fl.IntVar(&f.workers, "workers", 4, "nodes that are decided at once")
	fl.IntVar(&f.maxReadings, "max-readings", 64, "machines that are asked at once")
	fl.DurationVar(&f.election.LeaseDuration, "leader-lease", f.election.LeaseDuration, "how long others wait before they take over from a silent leader")
	fl.DurationVar(&f.election.RenewDeadline, "leader-renew-deadline", f.election.RenewDeadline, "how long the leader tries to renew before it gives up; less than --leader-lease")
	fl.DurationVar(&f.election.RetryPeriod, "leader-retry", f.election.RetryPeriod, "time between two tries; less than --leader-renew-deadline")
	return cmd
}

func defaultNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err == nil && len(b) > 0 {
		return string(b)
	}
	return "nodefence"
}

func newLogger(format, level string) (*zap.Logger, error) {
	lvl, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	var cfg zap.Config
	switch format {
	case "json":
		cfg = zap.NewProductionConfig()
		cfg.EncoderConfig.EncodeTime = zapRFC3339
		cfg.EncoderConfig.TimeKey = "time"
	case "console":
		cfg = zap.NewDevelopmentConfig()
		cfg.DisableStacktrace = true
	default:
		return nil, fmt.Errorf("--log-format: %q is neither json nor console", format)
	}
	cfg.Level, cfg.DisableCaller, cfg.Sampling = lvl, true, nil
	return cfg.Build()
}

// runController loads everything, and starts nothing before all of it is valid.
func runController(ctx context.Context, f controllerFlags) error {
	log, err := newLogger(f.logFormat, f.logLevel)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }() // stderr cannot be synced everywhere
	if os.Getenv("GOGC") == "" {
		// The caches live long and little garbage is made: less headroom costs
		// hardly any time, and every node of a small cluster has to give it.
		debug.SetGCPercent(40)
	}
	klog.SetLogger(zapr.NewLogger(log.Named("client-go").WithOptions(zap.IncreaseLevel(zap.WarnLevel))))
	if f.identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("--identity is needed: the host has no name: %w", err)
		}
		f.identity = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	f.election.Namespace, f.election.Identity = f.namespace, f.identity

	registry := all.Registry()
	cfg, err := config.Load(f.config, registry)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", f.config, err)
	}
	cl, err := connect(ctx, f.kubeconfig)
	if err != nil {
		return err
	}
	accept := func(c *config.Configuration) error {
		return errors.Join(fitsElection(c, f.election), controller.ServerSuffices(cl.server, mostMode(c)))
	}
	if err := accept(cfg); err != nil {
		return fmt.Errorf("configuration %s: %w", f.config, err)
	}
	reg, m, err := newRegistry()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cl.api.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "nodefence"})

	store := config.NewStore(cfg)
	c, err := controller.New(controller.Settings{
		Client: cl.api, Dynamic: cl.dynamic, Events: events, Metrics: m, Log: log, Workers: f.workers, MaxReadings: f.maxReadings, Election: f.election,
		Fleet: controller.ConfiguredFleet{Store: store, Secrets: controller.SecretReader{Client: cl.api}},
	})
	if err != nil {
		return err
	}
	return serveAndRun(ctx, f, log, c, reg, reloader{path: f.config, store: store, m: m, log: log, events: events, namespace: f.namespace, watcher: config.Watcher{Path: f.config, Registry: registry, Current: cfg, Accept: accept}})
}

func newRegistry() (*prometheus.Registry, *controller.Metrics, error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := controller.RegisterClientMetrics(reg); err != nil {
		return nil, nil, err
	}
	m, err := controller.NewMetrics(reg)
	return reg, m, err
}

// fitsElection refuses a configuration with actions that would never begin, because
// no leader's lease lasts as long as they may take (S8).
func fitsElection(c *config.Configuration, e controller.ElectionSettings) error {
	for i := range c.Groups {
		if longest, asked := e.LongestAction(), c.Groups[i].Policy().PowerOffTimeout; asked > longest {
			return fmt.Errorf("groups[%d].powerOff.timeout: is %s, but with --leader-lease %s and --leader-retry %s an action may take %s at most: shorten it, or lengthen the leader's lease",
				i, asked, e.LeaseDuration, e.RetryPeriod, longest)
		}
	}
	return nil
}

// mostMode is the mode of the group that may do most.
func mostMode(c *config.Configuration) fencing.Mode {
	most := fencing.Observe
	for i := range c.Groups {
		most = max(most, c.Groups[i].Policy().Mode)
	}
	return most
}

// serveAndRun runs the parts until one of them ends.
func serveAndRun(ctx context.Context, f controllerFlags, log *zap.Logger, c *controller.Controller, reg *prometheus.Registry, r reloader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	if f.listen != "" {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		log.Info("serving", zap.Stringer("address", l.Addr()))
		g.Go(func() error { return controller.Serve(ctx, l, c.Handler(reg)) })
	}
	g.Go(func() error { r.run(ctx, c.Requeue); return nil })
	g.Go(func() error {
		defer cancel() // without the controller nothing else is of use
		return c.Run(ctx)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// reloader puts changes of the configuration file into force.
type reloader struct {
	path      string
	store     *config.Store
	watcher   config.Watcher
	m         *controller.Metrics
	log       *zap.Logger
	events    record.EventRecorder
	namespace string
}

func (r *reloader) run(ctx context.Context, changed func()) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: r.namespace, Namespace: metav1.NamespaceDefault}
	r.watcher.Run(ctx, func(c *config.Configuration) {
		r.store.Set(c)
		r.m.Reloaded(nil)
		r.log.Info("configuration changed", zap.String("file", r.path), zap.String("digest", c.Digest()))
		r.events.Event(ref, corev1.EventTypeNormal, "ConfigurationChanged", "the configuration "+r.path+" is in force as changed")
		changed()
	}, func(err error) {
		r.m.Reloaded(err)
		r.log.Error("configuration refused; the old one stays in force", zap.String("file", r.path), zap.Error(err))
		message := "the configuration " + r.path + " was refused; the old one stays in force: " + err.Error()
		r.events.Event(ref, corev1.EventTypeWarning, "ConfigurationRefused", eventText(message))
	})
}

// eventText keeps a message within what an Event may have (1024 bytes).
func eventText(s string) string {
	const most = 1000
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

func zapRFC3339(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
	enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}
