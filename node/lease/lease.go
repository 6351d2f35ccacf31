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

// A Lease is what one of the two ends knows of a lease. Instants are readings of its own clock, which is above 0. The
// zero Lease was never renewed, and has lapsed.
type Lease struct {
	Length time.Duration // of each renewal at this end: Terms.Held at the holder, Terms.Length at the grantor
	end    time.Duration
}

// Renew notes a renewal: the holder, when it sent the one that was answered, and the grantor, when it
// arrived. One that comes late never shortens the lease.
func (l *Lease) Renew(at time.Duration) { l.end = max(l.end, at+l.Length) }

// End is when the lease ends: as far as the holder may know, or when the grantor will suspect a holder that stays silent.
func (l *Lease) End() time.Duration { return l.end }

// Lapsed reports whether the lease is over at now.
func (l *Lease) Lapsed(now time.Duration) bool { return l.end == 0 || now >= l.end }
