package load

import (
	"fmt"
	"io"

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
	var all []history.Source
	for i, records := range w.Records {
		u := w.Users[i]
		all = append(all, &cursor{user: fmt.Sprintf("process %d user %d", u.Process+1, i+1), lock: u.Name, records: records})
	}
	return history.Merge(all, func(_ int, e history.Event) error { return each(e) })
}

// A cursor is where the replay of a user stands.
type cursor struct {
	user, lock string
	records    []Record
	done       int // of the steps of all records
}

// steps are what a user does for each of its records.
var steps = [...]string{history.Try, history.Crit, history.Exit, history.Rem}

// Next implements history.Source.
func (c *cursor) Next() (history.Event, error) {
	k, step := c.done/len(steps), c.done%len(steps)
	if k == len(c.records) {
		return history.Event{}, io.EOF
	}
	c.done++
	r := &c.records[k]
	e := history.Event{User: c.user, Lock: c.lock, Do: steps[step], At: [...]int64{r.Called, r.Entered, r.Left, r.Back}[step]}
	switch e.Do {
	case history.Try:
		e.Group = r.Group
	case history.Crit:
		e.Token = history.Token(r.Token)
	}
	return e, nil
}
