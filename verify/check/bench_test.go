package check_test

import (
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/verify/check"
)

// The search by itself: one worker, n = 4, three of which try.
func BenchmarkSearch(b *testing.B) {
	for _, form := range []struct {
		name   string
		change func(*check.Config)
	}{
		{"one worker", func(c *check.Config) { c.Workers = 1 }},
		{"two workers", func(c *check.Config) { c.Workers = 2 }},
		{"exact", func(c *check.Config) { c.Workers, c.Exact = 1, true }},
		{"FIFO", func(c *check.Config) { c.Workers, c.FIFO = 1, true }},
	} {
		b.Run(form.name, func(b *testing.B) {
			states := int64(0)
			for b.Loop() {
				c := config(4)
				c.Entries = []int{1, 1, 1, 0}
				form.change(&c)
				v, err := check.Run(ricartagrawala.Algorithm, c)
				if err != nil || v.Verdict != check.Holds {
					b.Fatalf("%+v, %v", v, err)
				}
				states += v.States
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
