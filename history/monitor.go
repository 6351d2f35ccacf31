package history

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// The names of what a Monitor finds.
const (
	Exclusion  = "exclusion"   // two users inside
	WellFormed = "well-formed" // try, crit, exit and rem not in cyclic order
	Inversion  = "inversion"   // a token smaller than that of a grant that had ended before
	Reuse      = "reuse"       // a token equal to the largest of the grants that had ended before
)

// A Violation is one finding.
type Violation struct {
	At       int64 // ns
	Property string
	Text     string
}

func (v Violation) String() string {
	return fmt.Sprintf("%v %s: %s", time.Duration(v.At), v.Property, v.Text)
}

// A Monitor judges and measures a history while it happens, in constant memory
// and constant time an event, whatever the length. Times are nanoseconds that
// never decrease; users are numbered from 0 by whoever feeds it, and a user may
// be a sequence of processes of which each takes over from a crashed one.
type Monitor struct {
	// Name names a user in violations; by default it is the number.
	Name func(user int) string
	// Keep bounds the violations that are kept with their text; all are counted.
	// Default 20.
	Keep int

	users    Users
	tries    []try
	inside   int // users in the critical section
	waiting  int // users in the trying section
	entries  uint64
	gaveUp   uint64
	ejected  uint64
	first    int64 // time of the first try, -1 before it
	last     int64 // time of the last exit
	bypass   uint64
	maxEnded uint64 // largest token of a grant that ended

	// handover says that the last exit left nobody inside while somebody waited,
	// at time last: the next crit ends a synchronization delay.
	handover bool

	wait, response, sync Histogram
	counts               map[string]uint64
	kept                 []Violation
}

// try is what a Monitor remembers of one user.
type try struct {
	at      int64  // of the current or last try
	before  uint64 // entries of all users before it
	token   uint64 // of the current grant
	entered bool   // whether the try led to a crit, so that its rem ends a response
	entries uint64
	first   int64 // first try, -1 before it
	last    int64 // last exit
}

// NewMonitor returns a monitor of users 0..users-1, all in their remainder.
func NewMonitor(users int) *Monitor {
	m := new(Monitor)
	m.Reset(users)
	return m
}

// Reset makes m what NewMonitor returns, in the memory that it has. The violations
// of an earlier history stay valid.
func (m *Monitor) Reset(users int) {
	clear(m.counts)
	*m = Monitor{
		Name:     strconv.Itoa,
		Keep:     20,
		users:    append(m.users[:0], make(Users, users)...),
		tries:    append(m.tries[:0], make([]try, users)...),
		first:    -1,
		wait:     m.wait.reset(),
		response: m.response.reset(),
		sync:     m.sync.reset(),
		counts:   m.counts,
	}
	if m.counts == nil {
		m.counts = map[string]uint64{}
	}
	for i := range m.tries {
		m.tries[i].first = -1
	}
}

// Input records that the driver gave in to the user at time at.
func (m *Monitor) Input(user int, at int64, in protocol.Input) {
	was := m.users[user]
	if err := m.users.Input(protocol.ID(user), in); err != nil {
		m.Found(at, WellFormed, fmt.Sprintf("%s: %s in its %s section", m.Name(user), inputs[in.Kind], sections[was]))
		return
	}
	t := &m.tries[user]
	switch in.Kind {
	case protocol.Try:
		m.waiting++
		if m.first < 0 {
			m.first = at
		}
		if t.first < 0 {
			t.first = at
		}
		t.at, t.before, t.entered = at, m.entries, false
	case protocol.Exit:
		if was == protocol.InCrit {
			m.leave(t, at)
		}
	}
}

// Act records what the user was told at time at.
func (m *Monitor) Act(user int, at int64, a protocol.Act) {
	was := m.users[user]
	if err := m.users.Act(protocol.ID(user), a); err != nil {
		m.Found(at, WellFormed,
			fmt.Sprintf("%s was told %s in its %s section", m.Name(user), acts[a.Do], sections[was]))
		return
	}
	t := &m.tries[user]
	switch a.Do {
	case protocol.Crit:
		m.enter(user, at, a.Arg)
	case protocol.Ejected:
		m.ejected++
		m.leave(t, at)
	case protocol.Rem:
		if was == protocol.InTry {
			m.gaveUp++
			m.stopWaiting()
		} else if t.entered {
			m.response.Add(at - t.at)
			t.entered = false
		}
	}
}

// Crash records that the user's process stopped for ever: the user is out.
func (m *Monitor) Crash(user int, at int64) {
	switch m.users[user] {
	case protocol.InTry:
		m.stopWaiting()
	case protocol.InCrit:
		m.leave(&m.tries[user], at)
	}
	m.tries[user].entered = false
	m.users.Crash(protocol.ID(user))
}

func (m *Monitor) enter(user int, at int64, token uint64) {
	t := &m.tries[user]
	if m.inside > 0 {
		for other, s := range m.users {
			if s == protocol.InCrit && other != user {
				m.Found(at, Exclusion, m.Name(user)+" entered while "+m.Name(other)+" is inside")
				if token != 0 && token == m.tries[other].token {
					m.Found(at, Reuse, fmt.Sprintf("%s got token %d, which %s has", m.Name(user), token, m.Name(other)))
				}
			}
		}
	}
	switch {
	case token == 0:
	case token < m.maxEnded:
		m.Found(at, Inversion,
			fmt.Sprintf("%s got token %d after a grant with %d had ended", m.Name(user), token, m.maxEnded))
	case token == m.maxEnded:
		m.Found(at, Reuse, fmt.Sprintf("%s got token %d, which a grant that had ended had", m.Name(user), token))
	}
	if m.handover {
		m.sync.Add(at - m.last)
		m.handover = false
	}
	m.wait.Add(at - t.at)
	m.bypass = max(m.bypass, m.entries-t.before)
	m.inside++
	m.waiting--
	m.entries++
	t.entries++
	t.token, t.entered = token, true
}

func (m *Monitor) leave(t *try, at int64) {
	m.inside--
	m.maxEnded = max(m.maxEnded, t.token)
	m.last, t.last = at, at
	m.handover = m.inside == 0 && m.waiting > 0
}

func (m *Monitor) stopWaiting() {
	m.waiting--
	m.handover = m.handover && m.waiting > 0
}

// Found adds a violation that a driver found itself.
func (m *Monitor) Found(at int64, property, text string) {
	m.counts[property]++
	if len(m.kept) < m.Keep {
		m.kept = append(m.kept, Violation{at, property, text})
	}
}

// Violations returns the first violations, at most Keep.
func (m *Monitor) Violations() []Violation { return m.kept }

// Count returns how often property was violated.
func (m *Monitor) Count(property string) uint64 { return m.counts[property] }

// Counts returns how often each property was violated; those that held are absent.
func (m *Monitor) Counts() map[string]uint64 { return maps.Clone(m.counts) }

// Total returns the number of all violations.
func (m *Monitor) Total() (n uint64) {
	for _, k := range m.counts {
		n += k
	}
	return n
}

// Entries returns the number of crits so far.
func (m *Monitor) Entries() uint64 { return m.entries }

// Section returns where the user is.
func (m *Monitor) Section(user int) protocol.Section { return m.users[user] }

// Measures are the costs that users see.
type Measures struct {
	Entries    uint64  // crits
	GaveUp     uint64  // tries that ended without crit
	Ejected    uint64  // critical sections that were lost
	Waiting    Summary // crit - try
	Response   Summary // rem - try, of the tries that entered
	SyncDelay  Summary // last exit to next crit, where somebody waited at that exit
	Throughput float64 // entries a second from the first try to the last exit
	Jain       float64 // fairness of the users' rates: 1 when equal, 1/users when one has all
	MaxBypass  uint64  // most entries of others between one user's try and its crit
}

// Measures returns the measures of the history so far.
func (m *Monitor) Measures() Measures {
	r := Measures{
		Entries:   m.entries,
		GaveUp:    m.gaveUp,
		Ejected:   m.ejected,
		Waiting:   m.wait.Summary(),
		Response:  m.response.Summary(),
		SyncDelay: m.sync.Summary(),
		Jain:      m.jain(),
		MaxBypass: m.bypass,
	}
	if m.last > m.first {
		r.Throughput = float64(m.entries) / time.Duration(m.last-m.first).Seconds()
	}
	return r
}

// jain is Raj Jain's index, (sum x)^2 / (k sum x^2), where x is a user's rate:
// its entries over the time from its first try to its last exit. Numbers of
// entries would not do, since a closed workload fixes them.
func (m *Monitor) jain() float64 {
	var k, sum, squares float64
	for i := range m.tries {
		t := &m.tries[i]
		if t.first < 0 {
			continue
		}
		k++
		if t.entries == 0 {
			continue
		}
		x := float64(t.entries) / float64(max(1, t.last-t.first))
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return min(1, sum*sum/(k*squares)) // rounding alone may exceed 1
}
