package bmc_test

import (
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// BenchmarkRead is one whole reading of the in-process service, with the
// inventory that has the serial number.
func BenchmarkRead(b *testing.B) { benchmarkRead(b, gofish) }

// BenchmarkReadWithoutInventory is the same without identity.
func BenchmarkReadWithoutInventory(b *testing.B) {
	benchmarkRead(b, `{"drivers":["gofish"],"inventory":"never"}`)
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
