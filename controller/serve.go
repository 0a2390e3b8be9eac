package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readiness is what /readyz tells.
type readiness struct{ synced, leading atomic.Bool }

// Handler serves /metrics, /healthz and /readyz. A controller that waits for the
// lead is healthy and ready: it watches and can take over.
func (c *Controller) Handler(g prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !c.ready.synced.Load() {
			http.Error(w, "the caches are not filled yet", http.StatusServiceUnavailable)
			return
		}
		if c.ready.leading.Load() {
			fmt.Fprintln(w, "ok, leading")
			return
		}
		fmt.Fprintln(w, "ok, waiting for the lead")
	})
	return mux
}

// Serve answers HTTP on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(grace) // what is still open then is closed with the process
	}()
	err := s.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve on %s: %w", l.Addr(), err)
}
