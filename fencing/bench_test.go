package fencing_test

import (
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// BenchmarkDecide is the decision that comes most often: another Off reading of a
// case that is held, with all the readings that a case keeps.
func BenchmarkDecide(b *testing.B) {
	p := policy()
	p.Mode = fencing.Observe
	c := feed(p, fencing.Case{}, offReadings(15, 200)...)
	r := reading(205, fencing.Off)
	o := silent(205.1)
	o.Reading = &r
	b.ReportAllocs()
	for b.Loop() {
		if d := fencing.Decide(p, c, o); d.Case.Verdict.Kind != fencing.VerdictOff {
			b.Fatal(d.Case.Verdict.Message)
		}
	}
}

// BenchmarkCheck is the last look before a taint.
func BenchmarkCheck(b *testing.B) {
	p := policy()
	c := feed(p, fencing.Case{}, offReadings(15, 50)...)
	o := silent(50.2)
	b.ReportAllocs()
	for b.Loop() {
		if v := fencing.Check(p, c, o, fencing.ActionTaint); len(v) != 0 {
			b.Fatal(v)
		}
	}
}
