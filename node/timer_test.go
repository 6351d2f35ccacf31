package node

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Timers that run for long end together, and never early; others end when they are to.
func TestTimersTogether(t *testing.T) {
	const after = 2 * time.Minute
	ends := map[time.Duration]bool{}
	for k := range 1000 {
		at := after + time.Duration(k)*time.Millisecond
		end := together(at, after)
		if ends[end] = true; end < at || end > at+after/256 {
			t.Errorf("%v, and not %v", end, at)
		}
		if short := long - time.Duration(k+1); together(at, short) != at {
			t.Errorf("a timer of %v ends at %v, and not at %v", short, together(at, short), at)
		}
	}
	if len(ends) > 4 {
		t.Errorf("timers that begin within a second end at %d instants", len(ends))
	}
}

// The first timer is the earliest one, in whichever way the others were set, set again and stopped.
func TestFirstTimer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h timers
	var armed []*instance // that have one
	var now time.Duration
	inLines, durations := 0, []time.Duration{0, time.Second, long, long, 2 * long, 12 * long}
	for step := range 20_000 {
		now += time.Duration(r.IntN(100)) * time.Millisecond
		switch k := r.IntN(10); {
		case k < 5:
			i, after := &instance{}, durations[r.IntN(len(durations))]
			if step%1000 > 500 { // more than there are lines for
				after += time.Duration(r.IntN(40)) * time.Second
			}
			h.set(i, 1, now+after, after)
			armed = append(armed, i)
		case k < 7 && len(armed) > 0:
			after := durations[r.IntN(len(durations))]
			h.set(armed[r.IntN(len(armed))], 1, now+after-time.Duration(r.IntN(2)*r.IntN(5000))*time.Millisecond, after) // or by another clock
		case k < 8 && len(armed) > 0:
			h.stop(armed[r.IntN(len(armed))].timers)
		default:
			if first := h.first(); first != nil {
				h.stop(first)
			}
		}
		armed = slices.DeleteFunc(armed, func(i *instance) bool { return i.timers == nil })
		first := h.first()
		if len(armed) == 0 {
			if first != nil {
				t.Fatalf("step %d: %v is armed", step, first)
			}
			continue
		}
		earliest := slices.MinFunc(armed, func(a, b *instance) int { return cmp.Compare(a.timers.at, b.timers.at) }).timers
		if first == nil || first.at != earliest.at {
			t.Fatalf("step %d: the first one is %v, want %v", step, first, earliest)
		}
		if earliest.before != nil {
			inLines++
		}
	}
	if inLines < 1000 || len(h.lines) > mostLines {
		t.Errorf("%d times the first one was in one of %d lines", inLines, len(h.lines))
	}
}
