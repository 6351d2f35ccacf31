package history

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// The names of what a Monitor finds.
const (
	Exclusion  = "exclusion"   // two users inside that do not share
	WellFormed = "well-formed" // try, crit, exit and rem not in cyclic order
	Inversion  = "inversion"   // a token smaller than that of a grant that had ended before
	Reuse      = "reuse"       // a token of a grant that had ended before, or of another holder
	Order      = "order"       // a user entered before one that had tried earlier than Bounds.Order allows
	Starvation = "starvation"  // a try that waited beyond Bounds.Wait or Bounds.Bypass while others entered
)

// A Violation is one finding.
type Violation struct {
	At       int64  `json:"at_ns"`
	Property string `json:"property"`
	Text     string `json:"text"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%v %s: %s", time.Duration(v.At), v.Property, v.Text)
}

// Bounds say what a Monitor judges beyond exclusion, form and tokens, which always
// are. Zero is: not judged.
type Bounds struct {
	// Slack is the most by which the clocks of two users may differ, in ns. What may be
	// an effect of it is no violation. 0: there is one clock.
	Slack int64
	// Wait is how long a try may wait, in ns, and Bypass how often others may enter
	// meanwhile: beyond that it starves as soon as somebody else enters. While nobody
	// does the service is down, which is another matter.
	Wait   int64
	Bypass uint64
	// Order is how much later than another try, in ns, one must have been made that
	// enters before it to be out of order. Few algorithms promise the order of
	// real time, and none can when two tries are made at once.
	Order int64
}

// keep bounds the violations that are kept with their text; all are counted.
const keep = 20

// A Monitor judges and measures the history of one lock while it happens. Memory and
// the time an event takes do not grow with the length of the history: they depend on
// the number of users, and of the sections that began within Bounds.Slack.
//
// Times are nanoseconds that never decrease; of events at one time the order counts.
// Users are numbered from 0 by whoever feeds it, and a user may be a sequence of
// processes of which each takes over from a crashed one.
type Monitor struct {
	// Name names a user in violations; by default it is the number.
	Name func(user int) string
	// Record, if not nil, is told what the monitor is told, as event files have it.
	Record func(Event)
	// Weak: who is inside at one time is not judged. See the type Weak.
	Weak bool

	bounds   Bounds // set before the first event
	users    Users
	tries    []try
	now      int64
	window   window
	queue    []int  // users that try, the earliest try first, where a bound needs it
	past     tokens // of grants that ended for certain
	fenced   bool   // some grant had a token
	measures *measures

	counts    map[string]uint64
	kept      []Violation
	uncertain uint64 // overlaps that may be an effect of the clocks

	entries uint64
	waiting int   // users in the trying section
	last    int64 // time of the last exit
	// handover says that the last exit left nobody inside while somebody waited,
	// at time last: the next crit ends a synchronization delay, if it begins a session.
	handover bool
	session  protocol.Group // of the last entry
	busy     int64          // since when somebody is inside, if anybody is
	ends     int64          // the latest end of a section

	discarded int64 // measures are of what came later
}

// try is what a Monitor remembers of one user.
type try struct {
	at      int64  // of the current or last try
	before  uint64 // entries of all users before it
	entered bool   // whether the try led to a crit, so that its rem ends a response
	starved bool   // it was said that it does
	lapsed  bool   // the lease of the section ended before the user heard of it
	wanted  protocol.Groups
	group   protocol.Group // that of the current or last section
	token   uint64         // of the current section
	entries uint64
	first   int64 // first try, -1 before it
	last    int64 // last exit
}

// Reset makes m a monitor of users 0..users-1, all in their remainder, that judges what needs no bound, in the
// memory that it has. The violations of an earlier history stay valid.
func (m *Monitor) Reset(users int) {
	if m.measures == nil {
		m.measures = new(measures)
	}
	m.measures.reset()
	m.begin(users)
}

func (m *Monitor) begin(users int) {
	clear(m.counts)
	*m = Monitor{
		Name:     strconv.Itoa,
		users:    m.users[:0],
		tries:    m.tries[:0],
		window:   window{sections: m.window.sections[:0], due: math.MaxInt64},
		queue:    m.queue[:0],
		measures: m.measures,
		counts:   m.counts,
	}
	if m.counts == nil {
		m.counts = map[string]uint64{}
	}
	for range users {
		m.AddUser()
	}
}

// AddUser adds a user, in its remainder, and returns its number.
func (m *Monitor) AddUser() int {
	m.users = append(m.users, protocol.InRem)
	m.tries = append(m.tries, try{first: -1})
	return len(m.users) - 1
}

// Group is that of the user, who is inside.
func (m *Monitor) Group(user int) protocol.Group { return m.tries[user].group }

// Input records that the driver gave in to the user at time at.
func (m *Monitor) Input(user int, at int64, in protocol.Input) {
	m.advance(at)
	if m.Record != nil && in.Kind != protocol.Cancel {
		m.record(user, at, Event{Do: inputs[in.Kind], Group: in.Data})
	}
	was := m.users[user]
	if err := Input(&m.users[user], protocol.ID(user), in); err != nil {
		m.Found(at, WellFormed, fmt.Sprintf("%s: %s in its %s section", m.Name(user), inputs[in.Kind], sections[was]))
		return
	}
	t := &m.tries[user]
	switch in.Kind {
	case protocol.Try:
		m.waiting++
		m.measures.tried(at)
		if t.first < 0 {
			t.first = at
		}
		t.at, t.before, t.entered, t.starved = at, m.entries, false, false
		t.wanted = protocol.Groups(in.Data)
		m.enqueue(user)
	case protocol.Exit:
		if was == protocol.InCrit {
			m.leave(user, at)
		}
	case protocol.Downgrade:
		m.downgrade(user, at, protocol.Group(in.Data))
	}
}

// Act records what the user was told at time at.
func (m *Monitor) Act(user int, at int64, a protocol.Act) { m.act(user, at, a, open) }

// act is Act; with crit comes the end of the lease.
func (m *Monitor) act(user int, at int64, a protocol.Act, until int64) {
	m.advance(at)
	if m.Record != nil {
		e := Event{Do: acts[a.Do]}
		if a.Do == protocol.Crit {
			e.Token, e.Group = Token(a.Arg), a.Data
		}
		m.record(user, at, e)
	}
	was := m.users[user]
	if err := Act(&m.users[user], protocol.ID(user), a); err != nil {
		m.Found(at, WellFormed,
			fmt.Sprintf("%s was told %s in its %s section", m.Name(user), acts[a.Do], sections[was]))
		return
	}
	t := &m.tries[user]
	switch a.Do {
	case protocol.Crit:
		t.group = protocol.Group(a.Data)
		if grouped := t.wanted != "" || t.group != ""; grouped && !t.wanted.Has(t.group) {
			m.Found(at, WellFormed, fmt.Sprintf("%s wants %q, and was let into %q", m.Name(user), t.wanted, t.group))
		}
		m.enter(user, at, a.Arg, until)
	case protocol.Ejected:
		m.measures.ejected++
		m.leave(user, at)
	case protocol.Rem:
		if was == protocol.InTry {
			m.measures.gaveUp++
			m.stopWaiting(user)
		} else if t.entered {
			m.measures.response.Add(at - t.at)
			t.entered = false
		}
	}
}

// Lease records that the user, inside at time at, is so until a later time by its own
// lease, unless a later Lease says more. It then counts as out, also when it hears of
// that only later. Where nothing is recorded a section lasts until its end is.
func (m *Monitor) Lease(user int, at, until int64) {
	m.advance(at)
	if m.Record != nil {
		m.record(user, at, Event{Do: Renew, Until: until})
	}
	if m.users[user] != protocol.InCrit {
		m.Found(at, WellFormed, fmt.Sprintf("%s: a lease in its %s section", m.Name(user), sections[m.users[user]]))
		return
	}
	t := &m.tries[user]
	if t.lapsed {
		t.lapsed = false
		m.open(user, at, until)
		return
	}
	m.window.until(user, until)
}

// Crash records that the user's process stopped for ever: the user is out.
func (m *Monitor) Crash(user int, at int64) {
	m.advance(at)
	if m.Record != nil {
		m.record(user, at, Event{Do: Crash})
	}
	switch m.users[user] {
	case protocol.InTry:
		m.stopWaiting(user)
	case protocol.InCrit:
		m.leave(user, at)
	}
	m.tries[user].entered = false
	m.users.Crash(protocol.ID(user))
}

// record tells Record of an event that users know: others have no name.
func (m *Monitor) record(user int, at int64, e Event) {
	if e.Do != "" {
		e.At, e.User = at, m.Name(user)
		m.Record(e)
	}
}

// Finish decides what is undecided because of Bounds.Slack. Nothing follows: whoever is
// inside was so until the last event, as far as anybody knows.
func (m *Monitor) Finish() {
	for i := range m.window.sections {
		s := &m.window.sections[i]
		s.to = min(s.to, s.until, m.now)
	}
	for len(m.window.sections) > 0 {
		m.retire(0)
	}
}

// enter lets a user in that may have been stopped since it got the lock: until is the
// end of its lease, and where that is over it was inside before, if at all.
func (m *Monitor) enter(user int, at int64, token uint64, until int64) {
	t := &m.tries[user]
	t.lapsed = until <= at
	if !t.lapsed {
		m.judgeToken(user, at, token)
	}
	if !m.session.Shares(t.group) {
		m.measures.sessions++
		if m.handover {
			m.measures.sync.Add(at - m.last)
		}
	}
	m.session, m.handover = t.group, false
	m.measures.wait.Add(at - t.at)
	m.measures.bypass = max(m.measures.bypass, m.entries-t.before)
	m.measures.entries++
	m.waiting--
	m.entries++
	t.entries++
	t.token, t.entered = token, true
	m.judgeQueue(user, at)
	if !t.lapsed {
		m.open(user, at, until)
	}
}

func (m *Monitor) leave(user int, at int64) {
	t := &m.tries[user]
	if t.lapsed {
		t.lapsed = false
		return
	}
	m.close(user, at)
}

// ended records that a section of the user ended at time at.
func (m *Monitor) ended(user int, at int64) {
	m.last, m.tries[user].last = at, at
	m.ends = max(m.ends, at)
	if m.window.inside == 0 {
		m.measures.busy += m.ends - m.busy
	}
	m.measures.last = max(m.measures.last, at)
	m.handover = m.window.inside == 0 && m.waiting > 0
}

func (m *Monitor) stopWaiting(user int) {
	m.waiting--
	m.dequeue(user)
	m.handover = m.handover && m.waiting > 0
}

// judgeToken compares the token of an entry with those of grants that have ended for
// certain, as the user's own ones have, and that it does not share with: tokens are ordered between groups.
func (m *Monitor) judgeToken(user int, at int64, token uint64) {
	if token == 0 {
		return
	}
	m.fenced = true
	group := m.tries[user].group
	ended := max(m.past.before(group), m.window.own(user, group))
	switch {
	case token < ended:
		m.Found(at, Inversion,
			fmt.Sprintf("%s got token %d after a grant with %d had ended", m.Name(user), token, ended))
	case token == ended:
		m.Found(at, Reuse, fmt.Sprintf("%s got token %d, which a grant that had ended had", m.Name(user), token))
	}
}

// tokens are the largest of many, for any group that asks for those with which it does not share.
type tokens struct {
	group          protocol.Group // of the largest
	largest, other uint64         // other: of those that do not share with group
}

func (t *tokens) add(group protocol.Group, token uint64) {
	switch {
	case token <= t.largest && group.Shares(t.group):
	case token <= t.largest:
		t.other = max(t.other, token)
	case group.Shares(t.group):
		t.largest = token
	default:
		*t = tokens{group, token, t.largest}
	}
}

// before is the largest token of those that do not share with a group.
func (t *tokens) before(group protocol.Group) uint64 {
	if group.Shares(t.group) {
		return t.other
	}
	return t.largest
}

// Found adds a violation that a driver found itself.
func (m *Monitor) Found(at int64, property, text string) {
	m.counts[property]++
	if len(m.kept) < keep {
		m.kept = append(m.kept, Violation{at, property, text})
	}
}

// Violations returns the first violations, at most 20.
func (m *Monitor) Violations() []Violation { return m.kept }

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
