package config

import (
	"time"

	"github.com/nodefence/nodefence/fencing"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultGroup is a group that sets nothing. The values are those of
// fencing.DefaultPolicy and of nobody else.
func defaultGroup() Group {
	p := fencing.DefaultPolicy()
	d := func(v time.Duration) metav1.Duration { return metav1.Duration{Duration: v} }
	return Group{
		Mode: p.Mode,
		Proof: Proof{
			Readings: p.Readings, Hold: d(p.Hold), HoldAfterPowerOff: d(p.HoldAfterPowerOff), Freshness: d(p.Freshness),
			Interval: d(p.ReadInterval), Timeout: d(p.ReadTimeout), SuspectAfter: d(p.SuspectAfter),
		},
		Identity: Identity{AllowUnproved: p.AllowUnproved},
		Alerts:   Alerts{HoldAfter: d(p.HoldAfter), Every: d(p.AlertEvery)},
		Survey:   Survey{Every: d(p.SurveyEvery)},
		PowerOff: PowerOff{
			After: d(p.PowerOffAfter), Timeout: d(p.PowerOffTimeout), RetryAfter: d(p.PowerOffRetry), Attempts: p.PowerOffAttempts,
		},
		Untaint: Untaint{StableFor: d(p.StableFor), MaxWait: d(p.MaxWait)},
	}
}

func defaultBudget() Budget {
	b := fencing.DefaultPolicy().Budget
	return Budget{MaxConcurrent: b.MaxConcurrent, MaxUnhealthy: Amount{Value: b.MaxUnhealthy, Percent: b.MaxUnhealthyPercent}}
}

// makePolicy gives what may be done for the group's nodes.
func makePolicy(g *Group, b Budget) fencing.Policy {
	return fencing.Policy{
		Group:             g.Name,
		Mode:              g.Mode,
		SuspectAfter:      g.Proof.SuspectAfter.Duration,
		Readings:          g.Proof.Readings,
		Hold:              g.Proof.Hold.Duration,
		HoldAfterPowerOff: g.Proof.HoldAfterPowerOff.Duration,
		Freshness:         g.Proof.Freshness.Duration,
		ReadInterval:      g.Proof.Interval.Duration,
		ReadTimeout:       g.Proof.Timeout.Duration,
		AllowUnproved:     g.Identity.AllowUnproved,
		HoldAfter:         g.Alerts.HoldAfter.Duration,
		AlertEvery:        g.Alerts.Every.Duration,
		SurveyEvery:       g.Survey.Every.Duration,
		PowerOffAfter:     g.PowerOff.After.Duration,
		PowerOffTimeout:   g.PowerOff.Timeout.Duration,
		PowerOffRetry:     g.PowerOff.RetryAfter.Duration,
		PowerOffAttempts:  g.PowerOff.Attempts,
		StableFor:         g.Untaint.StableFor.Duration,
		MaxWait:           g.Untaint.MaxWait.Duration,
		Budget: fencing.Budget{
			MaxConcurrent: b.MaxConcurrent, MaxUnhealthy: b.MaxUnhealthy.Value, MaxUnhealthyPercent: b.MaxUnhealthy.Percent,
		},
	}
}

// policyPaths are where the fields of fencing.Policy are set, below the group's
// path; those of the budget are set once for all groups.
var policyPaths = map[string]string{
	"Mode":              "mode",
	"SuspectAfter":      "proof.suspectAfter",
	"Readings":          "proof.readings",
	"Hold":              "proof.hold",
	"HoldAfterPowerOff": "proof.holdAfterPowerOff",
	"Freshness":         "proof.freshness",
	"ReadInterval":      "proof.interval",
	"ReadTimeout":       "proof.timeout",
	"AllowUnproved":     "identity.allowUnproved",
	"HoldAfter":         "alerts.holdAfter",
	"AlertEvery":        "alerts.every",
	"SurveyEvery":       "survey.every",
	"PowerOffAfter":     "powerOff.after",
	"PowerOffTimeout":   "powerOff.timeout",
	"PowerOffRetry":     "powerOff.retryAfter",
	"PowerOffAttempts":  "powerOff.attempts",
	"StableFor":         "untaint.stableFor",
	"MaxWait":           "untaint.maxWait",
}

var budgetPaths = map[string]string{
	"Budget.MaxConcurrent": "budget.maxConcurrent",
	"Budget.MaxUnhealthy":  "budget.maxUnhealthy",
}
