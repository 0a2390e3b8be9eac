package controller

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// RegisterClientMetrics counts the calls to the API server, under the names that
// Kubernetes' own controllers use. client-go takes one registration a process.
func RegisterClientMetrics(r prometheus.Registerer) error {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Calls to the API server, by answer, method and host."}, []string{"code", "method", "host"})
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_request_duration_seconds", Help: "How long calls to the API server took, by verb and host.",
		Buckets: []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}}, []string{"verb", "host"})
	waiting := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_rate_limiter_duration_seconds", Help: "How long calls waited for the client's own rate limit, by verb and host.",
		Buckets: []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}}, []string{"verb", "host"})
	for _, c := range []prometheus.Collector{requests, latency, waiting} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	metrics.Register(metrics.RegisterOpts{
		RequestResult: resultMetric{requests}, RequestLatency: latencyMetric{latency}, RateLimiterLatency: latencyMetric{waiting},
	})
	return nil
}

type resultMetric struct{ v *prometheus.CounterVec }

func (m resultMetric) Increment(_ context.Context, code, method, host string) {
	m.v.WithLabelValues(code, method, host).Inc()
}

type latencyMetric struct{ v *prometheus.HistogramVec }

func (m latencyMetric) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	m.v.WithLabelValues(verb, u.Host).Observe(took.Seconds())
}
