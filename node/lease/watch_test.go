package lease

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// A life is one process that sends heartbeats, as it is heard of at another: at any time before
// it is stable, at most gap apart from then on, and no more once it crashed.
type life struct {
	r           *rand.Rand
	stable, gap time.Duration
	crash       time.Duration // 0: never
}

// next is when it is heard of after an instant; never: it crashed.
func (l *life) next(after time.Duration) time.Duration {
	at := after + time.Duration(l.r.Int64N(int64(20*l.gap)))
	if at > l.stable {
		at = max(after, l.stable) + time.Duration(l.r.Int64N(int64(l.gap))) + 1
	}
	if l.crash > 0 && at >= l.crash {
		return never
	}
	return at
}

const never = time.Duration(1<<63 - 1)

// watch runs a Watch of a life until an instant. It returns when the last suspicion began, how many
// began after the life was stable, and the watch.
func watch(p Patience, l *life, until time.Duration) (last time.Duration, late int, w *Watch) {
	w = NewWatch(p, 0)
	heard := l.next(0)
	for {
		now := heard
		if !w.Suspects() {
			now = min(now, w.End())
		}
		if now > until {
			return last, late, w
		}
		if now == heard {
			w.Hear(now)
			heard = l.next(now)
		} else if w.Look(now) {
			last = now
			if now > l.stable {
				late++
			}
		}
	}
}

// Accuracy: who is alive is suspected at most as often, once it is stable, as the time-out takes
// to exceed the gap.
func TestWatchTrusts(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := &life{r: r, stable: time.Duration(r.Int64N(int64(time.Minute))), gap: 1 + time.Duration(r.Int64N(int64(time.Second)))}
		p := Patience{First: 1 + time.Duration(r.Int64N(int64(100*ms))), Step: 10 * ms, Most: 2 * time.Second}
		_, late, w := watch(p, l, l.stable+10*time.Minute)
		if most := int((l.gap-p.First)/p.Step) + 2; late > max(most, 1) || w.Suspects() {
			t.Fatalf("seed %d: %d suspicions after it was stable, at most %d are due; suspected at the end: %v", seed, late, most, w.Suspects())
		}
	}
}

// Completeness: who crashed is suspected, within a time-out, and for ever.
func TestWatchSuspects(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := &life{r: r, stable: time.Duration(r.Int64N(int64(time.Minute))), gap: 1 + time.Duration(r.Int64N(int64(time.Second)))}
		l.crash = 1 + time.Duration(r.Int64N(int64(2*time.Minute)))
		p := Patience{First: 100 * ms, Step: 10 * ms, Most: 2 * time.Second}
		last, _, w := watch(p, l, time.Hour)
		if !w.Suspects() || last > l.crash+w.timeout {
			t.Fatalf("seed %d: it crashed at %v, and is suspected: %v, from %v on", seed, l.crash, w.Suspects(), last)
		}
	}
}

// A time-out that does not grow suspects who is alive again and again, and TestWatchTrusts would
// see it.
func TestWatchHasToGrow(t *testing.T) {
	l := &life{r: rand.New(rand.NewPCG(1, 0)), gap: 200 * ms}
	if _, late, _ := watch(Patience{First: 100 * ms, Most: time.Second}, l, 10*time.Minute); late < 1000 {
		t.Errorf("%d suspicions with a time-out of half the gap", late)
	}
}

func TestWatch(t *testing.T) {
	w := NewWatch(Patience{First: 100 * ms, Step: 50 * ms, Most: 180 * ms}, time.Second)
	if w.End() != 1100*ms || w.Look(1099*ms) || !w.Look(1100*ms) || w.Look(1100*ms) {
		t.Error("it is suspected once, after the first time-out")
	}
	if !w.Hear(1200*ms) || w.timeout != 150*ms || w.End() != 1350*ms || w.Hear(1250*ms) || w.End() != 1400*ms {
		t.Errorf("after a wrong suspicion: time-out %v, end %v", w.timeout, w.End())
	}
	if !w.Force() || w.Force() || !w.Suspects() || !w.Hear(1300*ms) || w.timeout != 150*ms {
		t.Errorf("after a forced suspicion: time-out %v", w.timeout)
	}
	w.Look(time.Hour)
	if w.Force() || !w.Hear(time.Hour) || w.timeout != 180*ms {
		t.Errorf("after a wrong suspicion that is forced, too: time-out %v, want the most", w.timeout)
	}
	if w.Hear(time.Second); w.End() != time.Hour+180*ms {
		t.Errorf("what was heard earlier moved the end to %v", w.End())
	}
}

// A watcher that was away waits for a whole time-out once more, and its mistakes are its own: the
// time-out stays as it is.
func TestPardon(t *testing.T) {
	w := NewWatch(Patience{First: 100, Step: 50, Most: 1000}, 0)
	w.Restart(1000)
	if w.Look(1099) || !w.Look(1100) {
		t.Errorf("it is suspected at %d", w.End())
	}
	w.Restart(2000)
	if !w.Suspects() || w.timeout != 100 {
		t.Errorf("suspected %v, time-out %d", w.Suspects(), w.timeout)
	}
}

// A suspicion that is forced lengthens no time-out, whenever it comes, and ends when the process is heard
// of: so both properties hold as without it. Taken for one of the watch's own it would lengthen it.
func TestWatchForced(t *testing.T) {
	lengthened := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := &life{r: r, stable: time.Duration(r.Int64N(int64(time.Minute))), gap: 1 + time.Duration(r.Int64N(int64(200*ms)))}
		p := Patience{First: 1 + time.Duration(r.Int64N(int64(100*ms))), Step: 10 * ms, Most: time.Second}
		w, heard, wrong, forced := NewWatch(p, 0), l.next(0), 0, 0
		own := false // it is suspected, and the watch began with that
		for heard < l.stable+time.Minute {
			if !w.Suspects() && w.End() < heard {
				own = w.Look(w.End())
			}
			if r.IntN(10) == 0 && w.Force() {
				forced++
			}
			if w.Hear(heard) && own {
				wrong++
			}
			own = false
			heard = l.next(heard)
		}
		if want := min(p.First+time.Duration(wrong)*p.Step, p.Most); w.timeout != want || w.Suspects() {
			t.Fatalf("seed %d: after %d wrong suspicions and %d forced ones the time-out is %v, want %v; suspected: %v",
				seed, wrong, forced, w.timeout, want, w.Suspects())
		}
		if min(p.First+time.Duration(wrong+forced)*p.Step, p.Most) != w.timeout {
			lengthened++
		}
	}
	if lengthened == 0 {
		t.Error("it makes no difference whether a suspicion was forced: this shows nothing")
	}
}
