// Package lease keeps the books of leases, which are the failure detector
// that a network can have: a client renews a lease at each server, and a server
// suspects a client whose lease is over.
//
// The two ends measure the same length by their own clocks, from two different
// instants. The client counts from when it sent the renewal and a little less,
// the server from when it received it, so that the client always knows first.
// No clocks need to agree on the time; their rates must differ by less than the
// stated drift.
package lease

import "time"

// Terms are what the two ends of a lease agree on.
type Terms struct {
	Length time.Duration // how long the grantor keeps a silent holder
	Drift  float64       // the rates of two clocks differ by less than this share
	Margin time.Duration // what the holder gives up on top, to act in
}

// Held is how long after sending a renewal the holder may count on it:
// Length*(1-Drift) - Margin.
func (t Terms) Held() time.Duration {
	return t.Length - time.Duration(float64(t.Length)*t.Drift) - t.Margin
}

// Margin is the margin for a lease of length l: a twentieth of it, at most half
// a second. It pays for the time that a holder takes to notice and to act.
func Margin(l time.Duration) time.Duration { return min(l/20, 500*time.Millisecond) }

// A Holder is the client's end of one lease. Instants are readings of the
// holder's own clock.
type Holder struct {
	Terms
	end time.Duration
	set bool
}

// Renew notes that the renewal sent at sent was answered. An answer that comes
// late never shortens the lease.
func (h *Holder) Renew(sent time.Duration) {
	if end := sent + h.Held(); !h.set || end > h.end {
		h.end, h.set = end, true
	}
}

// End is when the lease ends, as far as the holder may know.
func (h *Holder) End() time.Duration { return h.end }

// Lapsed reports whether the lease may be over at now. A lease that was never
// renewed has lapsed.
func (h *Holder) Lapsed(now time.Duration) bool { return !h.set || now >= h.end }

// A Grantor is the server's end of one lease. Instants are readings of the
// grantor's own clock.
type Grantor struct {
	Length time.Duration
	end    time.Duration
}

// Hear notes that a renewal arrived at now.
func (g *Grantor) Hear(now time.Duration) { g.end = max(g.end, now+g.Length) }

// End is when the grantor will suspect a holder that stays silent.
func (g *Grantor) End() time.Duration { return g.end }

// Lapsed reports whether the holder is to be suspected at now.
func (g *Grantor) Lapsed(now time.Duration) bool { return now >= g.end }
