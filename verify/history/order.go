package history

import (
	"fmt"
	"slices"
	"time"
)

// ordered says that a bound needs the queue of the users that try, the earliest try first.
func (b *Bounds) ordered() bool { return b.Wait > 0 || b.Bypass > 0 || b.Order > 0 }

func (m *Monitor) enqueue(user int) {
	if m.bounds.ordered() {
		m.queue = append(m.queue, user)
	}
}

// dequeue takes the user out of the queue, if it is in it.
func (m *Monitor) dequeue(user int) {
	if i := slices.Index(m.queue, user); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
}

// judgeQueue judges an entry against those who still wait. Whoever has waited the
// longest comes first in the queue, and has been overtaken the most.
func (m *Monitor) judgeQueue(user int, at int64) {
	if !m.bounds.ordered() {
		return
	}
	m.dequeue(user)
	if m.bounds.Order > 0 {
		m.judgeOrder(user, at)
	}
	for _, u := range m.queue {
		t := &m.tries[u]
		waited, overtaken := at-t.at, m.entries-t.before
		long := m.bounds.Wait > 0 && waited > m.bounds.Wait+m.bounds.Slack
		if !long && (m.bounds.Bypass == 0 || overtaken <= m.bounds.Bypass) {
			return
		}
		if t.starved {
			continue // once is enough
		}
		t.starved = true
		m.Found(at, Starvation, fmt.Sprintf("%s has waited %v (entries of others: %d), and %s entered",
			m.Name(u), time.Duration(waited), overtaken, m.Name(user)))
	}
}

// judgeOrder finds the first who has waited for so much longer than the user that the
// user should not have entered.
func (m *Monitor) judgeOrder(user int, at int64) {
	t := &m.tries[user]
	for _, u := range m.queue {
		earlier := t.at - m.tries[u].at
		if earlier <= m.bounds.Order+m.bounds.Slack {
			return
		}
		if t.group.Exclusive() || !m.tries[u].wanted.Has(t.group) {
			m.Found(at, Order, fmt.Sprintf("%s entered before %s, which tried %v earlier",
				m.Name(user), m.Name(u), time.Duration(earlier)))
			return
		}
	}
}
