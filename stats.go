package poundlock

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
)

// A Histogram is a distribution of durations. The zero Histogram is empty. Each bucket
// is twice as wide as the one before, so that the histograms of all processes can be
// added up.
type Histogram struct {
	Count  uint64   // durations
	Sum    float64  // of all of them, in seconds
	Counts []uint64 // by bucket: of at most 32µs, 64µs, 128µs, .. 4295s, and of longer ones, 29 in all; nil: all 0
}

// Mean is the mean, 0 without durations.
func (h Histogram) Mean() time.Duration { return histogram.Snapshot(h).Mean() }

// Quantile is a duration that at least the share q of the durations do not exceed, such
// as Quantile(0.99): at most twice the exact one between 32µs and 4295s. It is 0 without
// durations.
func (h Histogram) Quantile(q float64) time.Duration { return histogram.Snapshot(h).Quantile(q) }

// Stats is what a Client has counted since it began, and what there is now. Several
// names that are held together (Client.Locks) count one by one.
type Stats struct {
	Grants      uint64 // locks acquired
	NotAcquired uint64 // calls that ended with ErrNotAcquired
	NoQuorum    uint64 // calls that ended with ErrNoQuorum
	Losses      uint64 // locks lost while they were held, to Config.MaxHold and by Close too
	// SlowTokens counts the grants whose fencing token took one more round: those whose
	// request was older than a grant that came before.
	SlowTokens uint64

	Waits Histogram // from the call to the grant, of grants
	Holds Histogram // from the grant to its Unlock, or to the end of Config.Grace

	Held   int // locks held now, and not lost
	Wanted int // calls of Lock and TryLock that wait now

	Unaudited uint64 // records that Config.Audit was too slow for

	// ClockStep is by how much the wall clock was set since the client began, in all: 0 again
	// when it was set back. Locks take a round more while it is wrong.
	ClockStep time.Duration

	Servers []ServerStats // in the order of shards and ids
}

// ServerStats is about the sessions of a Client with one server.
type ServerStats struct {
	Name          string
	Connected     bool // there is a live session
	Resting       bool // there need not be one: of several shards, this client wants nothing of this one now
	BytesSent     uint64
	BytesReceived uint64
	RoundTrips    Histogram     // of heartbeats, ten in three leases
	RoundTrip     time.Duration // of the last heartbeat that was answered, 0: none yet
}

// counters are what a Client counts.
type counters struct {
	grants, notAcquired, noQuorum, losses, slowTokens atomic.Uint64
	waits, holds                                      histogram.Histogram
	held, wanted                                      atomic.Int64
}

// Stats returns what the client has counted. It is cheap, and waits for nothing.
func (c *Client) Stats() Stats {
	k := &c.counters
	s := Stats{
		Grants:      k.grants.Load(),
		NotAcquired: k.notAcquired.Load(),
		NoQuorum:    k.noQuorum.Load(),
		Losses:      k.losses.Load(),
		SlowTokens:  k.slowTokens.Load(),
		Waits:       Histogram(k.waits.Snapshot()),
		Holds:       Histogram(k.holds.Snapshot()),
		Held:        int(k.held.Load()),
		Wanted:      int(k.wanted.Load()),
		Unaudited:   c.audit.dropped.Load(),
	}
	for _, g := range c.shards {
		_, s.ClockStep, _ = g.node.Clock()
		for _, p := range g.node.PeerStats() {
			s.Servers = append(s.Servers, ServerStats{
				Name: p.Name, Connected: p.Connected, Resting: p.Resting, BytesSent: p.BytesSent, BytesReceived: p.BytesReceived,
				RoundTrips: Histogram(p.RoundTrips), RoundTrip: p.LastRoundTrip,
			})
		}
	}
	return s
}

// granted counts a lock that its user is about to be told of.
func (c *Client) granted(h *hold, wait time.Duration) {
	c.counters.grants.Add(1)
	c.counters.waits.Add(wait)
	c.mu.Lock()
	defer c.mu.Unlock()
	h.granted = true
	c.audit.note(h, "grant")
	if h.lost != nil {
		c.audit.note(h, "loss")
	}
}

// refused counts a lock that its user is told not to have.
func (c *Client) refused(err error) {
	switch {
	case errors.Is(err, ErrNoQuorum):
		c.counters.noQuorum.Add(1)
	case !errors.Is(err, ErrClosed):
		c.counters.notAcquired.Add(1)
	}
}

// noteLoss: h is inside, and was not lost before. Client.mu is held.
func (h *hold) noteLoss() {
	c := h.section.client
	c.counters.losses.Add(1)
	c.counters.held.Add(-1)
	if h.granted {
		c.audit.note(h, "loss")
	}
}

// noteLeave: the user of h leaves, for the first time. Client.mu is held.
func (h *hold) noteLeave() {
	c := h.section.client
	if h.isInside() && h.lost == nil {
		c.counters.held.Add(-1)
	}
	if h.granted {
		c.counters.holds.Add(time.Since(c.began) - h.entered)
		c.audit.note(h, "release")
	}
}
