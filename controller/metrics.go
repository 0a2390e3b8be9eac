package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodefence/nodefence/fencing"
)

// Metrics are the controller's. docs/metrics.md explains each.
type Metrics struct {
	cases        *caseGauges
	decisions    *prometheus.CounterVec
	actions      *prometheus.CounterVec
	alerts       *prometheus.CounterVec
	refused      *prometheus.CounterVec
	readings     *prometheus.CounterVec
	readSeconds  *prometheus.HistogramVec
	powerOffs    *prometheus.CounterVec
	storeSeconds prometheus.Histogram
	turnErrors   prometheus.Counter
	unusable     prometheus.Counter
	reloads      *prometheus.CounterVec
	queue        *queueMetrics
	survey       *surveyGauges
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nodefence_" + name, Help: help}, labels)
	}
	m := &Metrics{
		cases:     newCaseGauges(),
		decisions: counter("decisions_total", "Timeline entries of all cases, by reason.", "reason"),
		actions:   counter("actions_total", "Actions that decisions asked for, by kind.", "action"),
		alerts:    counter("alerts_total", "Alerts, by reason and severity.", "reason", "severity"),
		refused:   counter("last_look_refusals_total", "Actions that the last look forbade, by action and rule.", "action", "rule"),
		readings:  counter("readings_total", "Readings of machines, by provider and outcome: the power state, or the kind of failure.", "provider", "outcome"),
		readSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nodefence_reading_duration_seconds", Help: "How long readings took, by provider and outcome.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"provider", "outcome"}),
		powerOffs: counter("power_offs_total", "Power-off commands, by provider and outcome: Accepted, or the kind of failure.", "provider", "outcome"),
		storeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nodefence_case_store_duration_seconds", Help: "How long the storing of a case took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		turnErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "nodefence_turn_errors_total", Help: "Turns of the loop that ended with an error and are tried again."}),
		unusable:   prometheus.NewCounter(prometheus.CounterOpts{Name: "nodefence_unusable_cases_total", Help: "FencingCases that could not be read at the start of a term."}),
		reloads:    counter("configuration_reloads_total", "Changes of the configuration file, by outcome: accepted or refused.", "outcome"),
		queue:      newQueueMetrics(),
		survey:     newSurveyGauges(),
	}
	collectors := []prometheus.Collector{m.cases.byState, m.cases.held, m.decisions, m.actions, m.alerts, m.refused, m.readings, m.readSeconds,
		m.powerOffs, m.storeSeconds, m.turnErrors, m.unusable, m.reloads, m.survey.fenceable, m.survey.doubtful}
	for _, c := range append(collectors, m.queue.collectors()...) {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	for _, outcome := range []string{"accepted", "refused"} {
		m.reloads.WithLabelValues(outcome)
	}
	return m, nil
}

// Reloaded counts a change of the configuration file.
func (m *Metrics) Reloaded(err error) {
	if err != nil {
		m.reloads.WithLabelValues("refused").Inc()
		return
	}
	m.reloads.WithLabelValues("accepted").Inc()
}

// observeReading counts a reading. It took longer than from its question to its
// answer: the log-in comes before.
func (m *Metrics) observeReading(r fencing.Reading, took time.Duration) {
	outcome := r.Power.String()
	if r.Failed() {
		outcome = r.Failure.Kind.String()
	}
	m.readings.WithLabelValues(r.Provider, outcome).Inc()
	m.readSeconds.WithLabelValues(r.Provider, outcome).Observe(took.Seconds())
}

func (m *Metrics) observePowerOff(provider string, r fencing.PowerOffResult) {
	outcome := "Accepted"
	if r.Failure.Kind != fencing.NoFailure {
		outcome = r.Failure.Kind.String()
	}
	m.powerOffs.WithLabelValues(provider, outcome).Inc()
}

// caseGauges count the open cases by state, and the held ones by reason.
type caseGauges struct {
	mu            sync.Mutex
	last          map[string]caseLabels
	byState, held *prometheus.GaugeVec
}

type caseLabels struct{ state, hold string }

func newCaseGauges() *caseGauges {
	g := &caseGauges{
		last:    map[string]caseLabels{},
		byState: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nodefence_cases", Help: "Open cases, by state."}, []string{"state"}),
		held:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nodefence_held_cases", Help: "Open cases that may not go on, by reason."}, []string{"reason"}),
	}
	for s := fencing.Suspected; s < fencing.Closed; s++ {
		g.byState.WithLabelValues(s.String())
	}
	return g
}

func (g *caseGauges) update(kase fencing.Case) {
	g.remove(kase.Node)
	if !kase.Open() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := caseLabels{kase.State.String(), string(kase.Hold.Reason)}
	g.last[kase.Node] = l
	g.byState.WithLabelValues(l.state).Inc()
	if l.hold != "" {
		g.held.WithLabelValues(l.hold).Inc()
	}
}

func (g *caseGauges) remove(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.last[node]
	if !ok {
		return
	}
	delete(g.last, node)
	g.byState.WithLabelValues(l.state).Dec()
	if l.hold != "" {
		g.held.WithLabelValues(l.hold).Dec()
	}
}
