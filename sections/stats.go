package sections

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/node"
)

// A Histogram is a distribution of durations, as node.Stats has them.
type Histogram = histogram.Snapshot

// Stats is what a Member has counted since it was opened, and what there is now. Package metrics has a collector of
// it for Prometheus.
type Stats struct {
	Objects []ObjectStats // in the order of their names
	Node    node.Stats    // messages, and the sessions with the other members
}

// ObjectStats is about one object at one member.
type ObjectStats struct {
	Name string
	// Executed is how many operations have made the copy here what it is, those of all members, with empty ones. It tells how far a
	// member lags.
	Executed uint64
	// Of users of this member.
	Entered uint64    // sections
	Ejected uint64    // sections that were lost
	Waits   Histogram // from the call of Enter to the section
	Done    Histogram // from Do or DoAll to a result
	Busy    bool      // somebody is inside, or the first that waits
}

// counters are what is counted of an object.
type counters struct {
	entered, ejected atomic.Uint64
	waits, done      histogram.Histogram
}

// Stats returns what this member has counted.
func (m *Member) Stats() Stats {
	s := Stats{Node: m.n.Stats()}
	for _, name := range slices.Sorted(maps.Keys(m.replicas)) {
		r := m.replicas[name]
		r.mu.RLock()
		executed := r.executed
		name = cmp.Or(r.title, name)
		r.mu.RUnlock()
		if isOwn(name) {
			continue // it is not made yet
		}
		s.Objects = append(s.Objects, ObjectStats{
			Name: name, Executed: executed, Entered: r.entered.Load(), Ejected: r.ejected.Load(),
			Waits: r.waits.Snapshot(), Done: r.done.Snapshot(), Busy: len(r.turn) > 0,
		})
	}
	slices.SortFunc(s.Objects, func(a, b ObjectStats) int { return strings.Compare(a.Name, b.Name) })
	return s
}
