package lease

import "time"

// Patience is how long a Watch waits for a process to be heard of.
type Patience struct {
	First time.Duration // at the beginning
	Step  time.Duration // added with each suspicion that was wrong
	Most  time.Duration // never exceeded
}

// A Watch suspects a process that sends heartbeats and is not heard of for a time-out, which grows
// with each suspicion that was wrong. If heartbeats come at most some time apart from some time
// on, it suspects who is alive at last no more, provided that Most exceeds this, and who crashed
// for ever: with one Watch for each other process this is an eventually perfect failure detector
// in the model of partial synchrony (T. D. Chandra, S. Toueg, "Unreliable Failure Detectors for
// Reliable Distributed Systems", Journal of the ACM 43(2), 1996, section 9.1).
//
// Instants are readings of the watcher's own clock.
type Watch struct {
	patience Patience
	timeout  time.Duration
	end      time.Duration
	suspects bool
	forced   bool
}

// NewWatch returns a Watch that trusts the process, from now on.
func NewWatch(p Patience, now time.Duration) *Watch {
	w := &Watch{patience: p, timeout: min(p.First, p.Most)}
	w.end = now + w.timeout
	return w
}

// Hear notes that the process was heard of. It reports whether this ends a suspicion, which was
// wrong then.
func (w *Watch) Hear(now time.Duration) (restored bool) {
	restored = w.suspects
	if restored && !w.forced {
		w.timeout = min(w.timeout+w.patience.Step, w.patience.Most)
	}
	w.suspects, w.forced = false, false
	w.end = max(w.end, now+w.timeout)
	return restored
}

// Look reports whether the process is suspected from now on.
func (w *Watch) Look(now time.Duration) (suspected bool) {
	if w.suspects || now < w.end {
		return false
	}
	w.suspects = true
	return true
}

// Restart waits for a whole time-out once more: the watcher itself was away, and what the process has
// sent meanwhile may not have been looked at yet.
func (w *Watch) Restart(now time.Duration) { w.end = max(w.end, now+w.timeout) }

// Force makes the process suspected, until it is heard of. The time-out does not grow by that. It
// reports whether it was trusted.
func (w *Watch) Force() (suspected bool) {
	suspected = !w.suspects
	w.suspects, w.forced = true, w.forced || suspected
	return suspected
}

// Suspects reports whether the process is suspected.
func (w *Watch) Suspects() bool { return w.suspects }

// End is when Look is to be called next, unless the process is heard of before; it is suspected
// then.
func (w *Watch) End() time.Duration { return w.end }
