package history

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A section is one critical section, or the part of one between two leases of which
// the earlier one had ended.
type section struct {
	user     int
	group    protocol.Group
	token    uint64
	from, to int64 // to is open while the user is inside
	until    int64 // the end of its lease, open if there is none
}

const open = math.MaxInt64

// conflict reports whether it is a fault if two sections overlap. Most that do share, so that is asked first.
func (m *Monitor) conflict(s, o *section) bool {
	return !s.group.Shares(o.group) && s.user != o.user && !m.Weak
}

// A window holds the sections that may still overlap with one to come: those that
// last, and those that ended not longer than Bounds.Slack ago.
type window struct {
	sections []section // in the order of from
	inside   int       // those that last
	// due is when something must be done at the latest: a lease ends, or a section need
	// not be kept any more.
	due int64
}

// until sets the end of the user's lease.
func (w *window) until(user int, at int64) {
	w.sections[w.of(user)].until = at
	w.due = min(w.due, at)
}

// of is the index of the section that a user is in.
func (w *window) of(user int) int {
	i := 0
	for w.sections[i].user != user || w.sections[i].to != open {
		i++
	}
	return i
}

// own is the largest token of the sections of a user in the window that do not share with a group.
func (w *window) own(user int, group protocol.Group) (largest uint64) {
	for i := range w.sections {
		if s := &w.sections[i]; s.user == user && !s.group.Shares(group) {
			largest = max(largest, s.token)
		}
	}
	return largest
}

// open begins a section. With one clock an overlap is certain at once. With several
// ones nothing is before both ends are known, or are so late that it does not matter.
func (m *Monitor) open(user int, at, until int64) {
	t := &m.tries[user]
	s := section{user: user, group: t.group, token: t.token, from: at, to: open, until: until}
	for i := range m.window.sections {
		other := &m.window.sections[i]
		if !m.conflict(&s, other) {
			continue
		}
		if m.bounds.Slack == 0 {
			m.Found(at, Exclusion, m.Name(user)+" entered while "+m.Name(other.user)+" is inside")
		}
		if s.token != 0 && s.token == other.token {
			m.Found(at, Reuse, fmt.Sprintf("%s got token %d, which %s has", m.Name(user), s.token, m.Name(other.user)))
		}
	}
	m.window.sections = append(m.window.sections, s)
	if m.window.inside++; m.window.inside == 1 {
		m.busy, m.ends = at, at
	}
	m.measures.most = max(m.measures.most, m.window.inside)
	m.measures.grouped = m.measures.grouped || t.group != ""
	m.window.due = min(m.window.due, until)
}

// close ends the section that the user is in.
func (m *Monitor) close(user int, at int64) {
	i := m.window.of(user)
	s := &m.window.sections[i]
	s.to = at
	m.measures.inside += float64(at - max(s.from, m.discarded))
	m.window.inside--
	m.ended(user, at)
	if m.bounds.Slack == 0 {
		m.retire(i) // whoever comes now, be it at the same time, comes after it
		return
	}
	m.window.due = min(m.window.due, at+m.bounds.Slack)
}

// downgrade ends the section that the user is in alone, and begins one of a group. They are one entry.
func (m *Monitor) downgrade(user int, at int64, group protocol.Group) {
	t := &m.tries[user]
	if t.lapsed {
		t.group = group
		return
	}
	until := m.window.sections[m.window.of(user)].until
	m.close(user, at)
	t.group, m.session, m.handover = group, group, false
	m.open(user, at, until)
}

// advance lets time pass: leases end, and sections of long ago are forgotten.
func (m *Monitor) advance(at int64) {
	m.now = at
	if at <= m.window.due {
		return
	}
	// All leases first: who decides about a section wants to know whether others last.
	for i := 0; i < len(m.window.sections); {
		s, before := m.window.sections[i], len(m.window.sections)
		if s.to == open && s.until < at {
			m.tries[s.user].lapsed = true
			m.close(s.user, s.until)
		}
		if len(m.window.sections) == before {
			i++
		}
	}
	for i := 0; i < len(m.window.sections); {
		if s := &m.window.sections[i]; s.to != open && s.to+m.bounds.Slack < at {
			m.retire(i)
		} else {
			i++
		}
	}
	m.window.due = open
	for _, s := range m.window.sections {
		if s.to == open {
			m.window.due = min(m.window.due, s.until)
		} else {
			m.window.due = min(m.window.due, s.to+m.bounds.Slack)
		}
	}
}

// retire takes a section that has ended out of the window, and decides about it and
// those that are left: one of them that lasts does so beyond every doubt.
func (m *Monitor) retire(i int) {
	s := m.window.sections[i]
	m.past.add(s.group, s.token)
	m.window.sections = slices.Delete(m.window.sections, i, i+1)
	slack := m.bounds.Slack
	if slack == 0 {
		return // decided when the later one began
	}
	for i := range m.window.sections {
		o := &m.window.sections[i]
		if !m.conflict(&s, o) {
			continue
		}
		// One clock is early and the other one late, by slack together: the overlap is
		// certain if each section began that much before the other one's end.
		switch first, second := s.to-o.from, o.to-s.from; {
		case first > slack && second > slack:
			both := min(s.to, o.to) - max(s.from, o.from)
			m.Found(max(s.from, o.from), Exclusion, fmt.Sprintf("%s entered while %s is inside: for %v by their clocks",
				m.Name(o.user), m.Name(s.user), time.Duration(both)))
		case first > -slack && second > -slack:
			m.uncertain++
		}
	}
}
