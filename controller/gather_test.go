package controller_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// metric gives the sum of a metric over the series that have the labels, given as
// names and values in turn. Of a histogram it is the number of observations.
func (p *process) metric(name string, labels ...string) float64 {
	p.w.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.w.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			matches := true
			for pair := range slices.Chunk(labels, 2) {
				matches = matches && has[pair[0]] == pair[1]
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// logged counts the lines of all processes' logs that contain the text, in the
// message or in a field.
func (w *world) logged(text string) int {
	n := 0
	for _, p := range w.processes {
		for _, e := range p.logs.All() {
			if strings.Contains(e.Message, text) || strings.Contains(fmt.Sprint(e.ContextMap()), text) {
				n++
			}
		}
	}
	return n
}

// goroutines gives the stacks of the caller's bubble that name one of the parts.
func goroutines(parts ...string) string {
	buf := make([]byte, 8<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	_, bubble, _ := strings.Cut(strings.Split(stacks[0], "\n")[0], "synctest bubble ")
	var left []string
	for _, s := range stacks[1:] {
		head, _, _ := strings.Cut(s, "\n")
		if _, in, _ := strings.Cut(head, "synctest bubble "); in != bubble {
			continue // another test that runs beside this one
		}
		if slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) }) {
			left = append(left, s)
		}
	}
	return strings.Join(left, "\n\n")
}
