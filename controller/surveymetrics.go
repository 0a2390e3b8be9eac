package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodefence/nodefence/fencing"
)

// surveyGauges count the machines of healthy nodes by what the last reading of each
// says: that it could be fenced, or why not.
type surveyGauges struct {
	mu        sync.Mutex
	last      map[string]fencing.Reason
	fenceable prometheus.Gauge
	doubtful  *prometheus.GaugeVec
}

func newSurveyGauges() *surveyGauges {
	return &surveyGauges{
		last:      map[string]fencing.Reason{},
		fenceable: prometheus.NewGauge(prometheus.GaugeOpts{Name: "nodefence_fenceable_machines", Help: "Machines of healthy nodes that could be fenced if they failed now."}),
		doubtful:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nodefence_unfenceable_machines", Help: "Machines of healthy nodes that could not be fenced if they failed now, by reason."}, []string{"reason"}),
	}
}

func (g *surveyGauges) of(r fencing.Reason) prometheus.Gauge {
	if r == "" {
		return g.fenceable
	}
	return g.doubtful.WithLabelValues(string(r))
}

func (g *surveyGauges) set(node string, r fencing.Readiness) {
	g.forget(node)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[node] = r.Reason
	g.of(r.Reason).Inc()
}

func (g *surveyGauges) forget(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if reason, ok := g.last[node]; ok {
		delete(g.last, node)
		g.of(reason).Dec()
	}
}

// reset forgets everything, with the leader's term.
func (g *surveyGauges) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.last)
	g.fenceable.Set(0)
	g.doubtful.Reset()
}
