package redfish_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// BenchmarkRead is one whole reading of the in-process service, with TLS, log-in
// and log-out.
func BenchmarkRead(b *testing.B) { benchmarkRead(b, "") }

// BenchmarkReadBasicAuth is the same without a session.
func BenchmarkReadBasicAuth(b *testing.B) { benchmarkRead(b, `{"basicAuth":true}`) }

// BenchmarkReadConfigured is the same with the system's path configured and
// without its chassis: the fewest requests that there can be.
func BenchmarkReadConfigured(b *testing.B) {
	benchmarkRead(b, `{"basicAuth":true,"ignoreChassis":true,"system":"/redfish/v1/Systems/1"}`)
}

func benchmarkRead(b *testing.B, options string) {
	s := newBench(b, options)
	for b.Loop() {
		if r := s.read(); r.Power != fencing.On {
			b.Fatalf("%+v", r.Failure)
		}
	}
	b.ReportMetric(float64(len(s.Requests()))/float64(b.N), "requests/op")
}

// TestReadingCostsFewRequests: controllers are slow and crash when asked too
// much, so a reading that grows must be noticed.
func TestReadingCostsFewRequests(t *testing.T) {
	for options, want := range map[string][]string{
		"": {"POST Sessions", "GET Systems", "GET 1", "GET 1", "DELETE 2"},
		`{"basicAuth":true,"ignoreChassis":true,"system":"/redfish/v1/Systems/1"}`: {"GET 1"},
	} {
		s := newBench(t, options)
		wantPower(t, s.read(), fencing.On) // learns the root
		before := len(s.Requests())
		wantPower(t, s.read(), fencing.On)
		var got []string
		for _, r := range s.Requests()[before:] {
			got = append(got, r.Method+" "+r.Path[strings.LastIndexByte(r.Path, '/')+1:])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", options, got)
		}
	}
}

// TestReadingIsQuick: what a reading costs beyond the controller's own time.
func TestReadingIsQuick(t *testing.T) {
	const delay, requests, allowance = 20 * time.Millisecond, 5, 60 * time.Millisecond
	s := newBench(t, "")
	s.read()
	s.Set(rf.Slow(delay))
	var took []time.Duration
	for range 9 {
		began := time.Now()
		wantPower(t, s.read(), fencing.On)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if got := took[len(took)/2]; got > requests*delay+allowance {
		t.Errorf("a reading took %v where the controller's share is %v", got, requests*delay)
	}
}
