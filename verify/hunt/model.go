package hunt

import (
	"math/bits"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// A system is what runs. Its users are all alike: of Wants there is one list.
type system struct {
	world.System
	budget int  // members that may be unsettled at a time, or forget in an epoch
	spaced bool // a lease that lapses needs room in the budget too
}

// A model is one system with its budget of faults. Unlike the checker it keeps one state
// only, as processes and not as bytes, and takes a step in a microsecond.
type model struct {
	*world.State
	sys system
}

func newModel(a protocol.Algorithm[any], s system) *model {
	return &model{world.NewState(a, s.System), s}
}

// do takes a step if it is possible, within the budget.
func (m *model) do(c *world.Action) (possible bool) {
	switch {
	case c.Verb == scenario.Amnesia && (int(c.A) >= m.sys.N || !m.room(int(c.A))):
		return false
	case c.Verb == scenario.Lapse && m.Leases && m.sys.spaced && !m.room(-1) && (!m.Ends[c.A].Paused || m.Unsettled() > 0):
		return false
	}
	entries := m.Entries
	if !m.Do(c) {
		return false
	}
	m.exclusion(m.Entries > entries || c.Verb == scenario.Resume)
	return true
}

// exclusion reports two users inside, if there may be some.
func (m *model) exclusion(maybe bool) {
	if maybe {
		if text := m.Exclusion(); text != "" {
			m.Report(check.Exclusion, text)
		}
	}
}

// judge reports the first invariant that does not hold; name "" means any.
func (m *model) judge(name string) {
	if m.Found != nil {
		return
	}
	v := m.View()
	for _, i := range m.Algorithm.Invariants {
		if name != "" && i.Name != name {
			continue
		}
		if err := i.Err(v); err != nil {
			m.Report(i.Name, err.Error())
			return
		}
	}
}

// room reports whether the budget allows that member j forgets, or with j < 0 that
// a lease lapses.
func (m *model) room(j int) bool {
	if m.Algorithm.Unsettled != nil {
		return m.Losses() < m.sys.budget
	}
	if m.Lives && !m.Leases && j >= 0 {
		// Nobody is told of a new life: what is sent to the one before is lost until the
		// two have met, which may be in any later epoch.
		return bits.OnesCount64(m.Forgot|1<<j) <= m.sys.budget
	}
	for _, e := range m.Ends {
		if e == nil || e.Section != protocol.InTry && e.Section != protocol.InCrit {
			continue
		}
		lost := e.Lost
		if j >= 0 {
			lost |= 1 << j
		}
		if bits.OnesCount64(lost) > m.sys.budget {
			return false
		}
	}
	return j >= 0 && m.sys.budget > 0
}

// several reports whether more than one user lives, and enough members do without process i.
func (m *model) several(i int) bool {
	k := 0
	for j := range m.Total {
		if m.Mortal(j) && m.Is(j) {
			k++
		}
	}
	return k > 1 && (!m.Peers || m.Algorithm.Spare(protocol.States(m.Procs), protocol.ID(i)))
}

// script returns the steps of a run as package check writes them.
func (m *model) script(run []world.Action) (steps []scenario.Step) {
	m.Reset()
	for _, c := range run {
		steps = append(steps, m.Step(c))
		m.do(&c)
	}
	return steps
}

// # What a run had

// mistakes is how many suspicions of a run are mistakes, and how many leases lapse by themselves.
func (m *model) mistakes(run []world.Action) (k int) {
	m.Reset()
	for _, c := range run {
		n := m.Notices(int(c.A), int(c.B))
		switch {
		case c.Verb == scenario.Suspect && m.Peers && !m.Mutual && n == world.MaySuspect,
			c.Verb == scenario.Lapse && n&(world.MayLapse|world.Paused) == world.MayLapse:
			k++
		}
		m.do(&c)
	}
	return k
}

// operations is the largest number of operations in one section of a run.
func (m *model) operations(run []world.Action) (most int) {
	count := make([]int, m.Total)
	for _, c := range run {
		switch c.Verb {
		case scenario.Try:
			count[c.A] = 0
		case scenario.Issue:
			count[c.A]++
			most = max(most, count[c.A])
		}
	}
	return most
}

// chosen are the alternatives of user i in a run, for package check.
func (m *model) chosen(run []world.Action, i int) []protocol.Groups {
	var all []protocol.Groups
	for _, c := range run {
		if c.Verb == scenario.Try && int(c.A) == i {
			all = append(all, c.Wants)
		}
	}
	if all == nil {
		return m.sys.Wants[0][:1]
	}
	slices.Sort(all)
	return slices.Compact(all)
}
