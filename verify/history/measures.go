package history

import (
	"cmp"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// measures are what several monitors count together.
type measures struct {
	entries, gaveUp, ejected, bypass uint64

	first int64 // time of the first try, -1 before it
	last  int64 // time of the last exit

	wait, response, sync Histogram

	grouped  bool // somebody entered a group
	sessions uint64
	inside   float64 // ns that users were inside, summed over users
	busy     int64   // ns that somebody was inside
	most     int     // inside together
}

// reset forgets all, and keeps the memory.
func (s *measures) reset() {
	*s = measures{first: -1, wait: s.wait.reset(), response: s.response.reset(), sync: s.sync.reset()}
}

func (s *measures) tried(at int64) {
	if s.first < 0 {
		s.first = at
	}
}

// Measures are the costs that users see. Times are in milliseconds.
type Measures struct {
	Entries    uint64  `json:"entries"`          // crits
	GaveUp     uint64  `json:"gave_up"`          // tries that ended without crit
	Ejected    uint64  `json:"ejected"`          // critical sections that were lost
	Waiting    Summary `json:"waiting_ms"`       // crit - try
	Response   Summary `json:"response_ms"`      // rem - try, of the tries that entered
	SyncDelay  Summary `json:"sync_delay_ms"`    // last exit of a session to the first crit of the next, where somebody waited at that exit
	Throughput float64 `json:"throughput_per_s"` // entries a second from the first try to the last exit
	Jain       float64 `json:"jain"`             // fairness of the users' rates: 1 when equal, 1/users when one has all
	MaxBypass  uint64  `json:"max_bypass"`       // most entries of others between one user's try and its crit

	// Of groups, and nothing where there are none. A session is a time in which all who are
	// inside share one group: it begins with an entry that does not share with the last one.
	Sessions    uint64      `json:"sessions,omitempty"`
	Concurrency Concurrency `json:"concurrency,omitzero"`
}

// Concurrency is how many users are inside together.
type Concurrency struct {
	Mean float64 `json:"mean"` // over the time that somebody is, of the sections that have ended
	Max  int     `json:"max"`
}

func (s *measures) summary(f *fairness) Measures {
	r := Measures{
		Entries:   s.entries,
		GaveUp:    s.gaveUp,
		Ejected:   s.ejected,
		Waiting:   s.wait.Summary(),
		Response:  s.response.Summary(),
		SyncDelay: s.sync.Summary(),
		Jain:      f.index(),
		MaxBypass: s.bypass,
	}
	if s.last > s.first {
		r.Throughput = float64(s.entries) / time.Duration(s.last-s.first).Seconds()
	}
	if s.grouped {
		r.Sessions, r.Concurrency = s.sessions, Concurrency{Max: s.most}
		if s.busy > 0 {
			r.Concurrency.Mean = s.inside / float64(s.busy)
		}
	}
	return r
}

// Measures returns the measures of the history so far.
func (m *Monitor) Measures() Measures {
	var f fairness
	f.add(m)
	return m.measures.summary(&f)
}

// Discard forgets what was measured up to time at: measures are those of what follows. What is
// judged does not change. A wait or a response that began earlier counts whole where it ends later,
// a section from at on.
func (m *Monitor) Discard(at int64) {
	grouped := m.measures.grouped
	m.measures.reset()
	m.measures.grouped, m.measures.most, m.measures.first = grouped, m.window.inside, at
	m.discarded, m.busy = at, max(m.busy, at)
	for i := range m.tries {
		t := &m.tries[i]
		if t.entries = 0; m.users[i] == protocol.InRem {
			t.first = -1
		} else {
			t.first = at
		}
	}
}

// MeasuresUntil returns the measures of the history so far, which goes on: rates are those of the
// time until at, and whoever is inside counts as inside until then.
func (m *Monitor) MeasuresUntil(at int64) Measures {
	s := *m.measures
	s.last = at
	for _, o := range m.window.sections {
		if o.to == open {
			s.inside += float64(at - max(o.from, m.discarded))
		}
	}
	if m.window.inside > 0 {
		s.busy += at - m.busy
	}
	f := fairness{until: at}
	f.add(m)
	return s.summary(&f)
}

// fairness is Raj Jain's index, (sum x)^2 / (k sum x^2), where x is a user's rate:
// its entries over the time from its first try to its last exit. Numbers of
// entries would not do, since a closed workload fixes them.
type fairness struct {
	k, sum, squares float64
	until           int64 // in place of each last exit; 0: not
}

func (f *fairness) add(m *Monitor) {
	for i := range m.tries {
		t := &m.tries[i]
		if t.first < 0 {
			continue
		}
		f.k++
		if t.entries == 0 {
			continue
		}
		x := float64(t.entries) / float64(max(1, cmp.Or(f.until, t.last)-t.first))
		f.sum += x
		f.squares += x * x
	}
}

func (f *fairness) index() float64 {
	if f.squares == 0 {
		return 0
	}
	return min(1, f.sum*f.sum/(f.k*f.squares)) // rounding alone may exceed 1
}
