package node

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Nodes that share a clock are told of a nap soon after it, and one goroutine looks for all of them, as long as there are any.
func TestNaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asleep, reads atomic.Int64
		p := &naps{boot: func() time.Duration {
			reads.Add(1)
			return time.Since(began) + time.Duration(asleep.Load())
		}}
		all := make([]*sessions, 100)
		for k := range all {
			all[k] = &sessions{watch: make(chan struct{}, 1)}
			p.add(all[k])
		}
		told := func() (k int) {
			for _, ss := range all {
				select {
				case <-ss.watch:
					k++
				default:
				}
			}
			return k
		}
		time.Sleep(time.Minute + time.Millisecond)
		if k := reads.Load(); k > 601 || told() > 0 {
			t.Errorf("%d reads of the clock in a minute", k)
		}
		asleep.Add(int64(time.Hour))
		time.Sleep(resumed)
		if k := told(); k != len(all) {
			t.Errorf("%d of %d are told of a nap", k, len(all))
		}
		for range 3 {
			asleep.Add(int64(leastNap) / 2)
			time.Sleep(resumed)
		}
		if k := told(); k != len(all) {
			t.Errorf("%d of %d are told of short naps", k, len(all))
		}
		for _, ss := range all {
			p.remove(ss)
		}
		p.add(all[0]) // another goroutine
		p.remove(all[0])
		asleep.Add(int64(time.Hour))
		time.Sleep(resumed)
		if told() > 0 {
			t.Error("nodes that are closed are told")
		}
	})
}
