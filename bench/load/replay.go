package load

import (
	"container/heap"
	"fmt"

	"github.com/poundlock/poundlock/verify/history"
)

// Judge judges the locks by what the users saw in the window. Each user is one of its
// own, and none of them lost a lock, for then the load would have failed.
func (w *Window) Judge() *history.Report {
	j := history.NewJudge(history.Bounds{})
	w.replay(func(e history.Event) error {
		j.Event(0, e)
		return nil
	})
	return j.Report()
}

// Record writes what the users saw in the window.
func (w *Window) Record(to *history.Writer) error { return w.replay(to.Write) }

// replay passes on the events of all users in the order of time, until there is an
// error.
func (w *Window) replay(each func(e history.Event) error) error {
	var all cursors
	for i, records := range w.Records {
		if len(records) > 0 {
			u := w.Users[i]
			user := fmt.Sprintf("process %d user %d", u.Process+1, i+1)
			all = append(all, cursor{user: user, lock: u.Name, index: i, records: records})
		}
	}
	heap.Init(&all)
	for len(all) > 0 {
		c := &all[0]
		if err := each(c.event()); err != nil {
			return err
		}
		if c.next() {
			heap.Fix(&all, 0)
		} else {
			heap.Pop(&all)
		}
	}
	return nil
}

// A cursor is where the replay of a user stands.
type cursor struct {
	user, lock string
	index      int // of the user
	records    []Record
	step       int // of the first record
}

// The steps of a record.
const (
	trying = iota
	entering
	leaving
	returning
)

func (c *cursor) event() history.Event {
	r := &c.records[0]
	e := history.Event{User: c.user, Lock: c.lock}
	switch c.step {
	case trying:
		e.At, e.Do = r.Called, history.Try
	case entering:
		e.At, e.Do, e.Token = r.Entered, history.Crit, history.Token(r.Token)
	case leaving:
		e.At, e.Do = r.Left, history.Exit
	default:
		e.At, e.Do = r.Back, history.Rem
	}
	return e
}

// next goes to the next event, and reports whether there is one.
func (c *cursor) next() bool {
	if c.step++; c.step > returning {
		c.step, c.records = trying, c.records[1:]
	}
	return len(c.records) > 0
}

// cursors are a heap.
type cursors []cursor

func (c cursors) Len() int { return len(c) }
func (c cursors) Less(i, j int) bool {
	a, b := c[i].event().At, c[j].event().At
	switch {
	case a != b:
		return a < b
	case (c[i].step == leaving) != (c[j].step == leaving):
		return c[i].step == leaving // whoever enters at that time comes after it
	}
	return c[i].index < c[j].index
}
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

func (c *cursors) Push(x any) { *c = append(*c, x.(cursor)) }

func (c *cursors) Pop() any {
	k := len(*c) - 1
	last := (*c)[k]
	*c = (*c)[:k]
	return last
}
