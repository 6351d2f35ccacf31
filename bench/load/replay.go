package load

import (
	"cmp"
	"fmt"
	"slices"

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

// steps are what a user does for each of its records.
var steps = []string{history.Try, history.Crit, history.Exit, history.Rem}

// A moment is a step of a user: the k-th of all that it has done.
type moment struct {
	at      int64
	user, k int32
}

// replay passes on the events of all users in the order of time, until there is an
// error.
func (w *Window) replay(each func(e history.Event) error) error {
	var all []moment
	names := make([]string, len(w.Records))
	for i, records := range w.Records {
		names[i] = fmt.Sprintf("process %d user %d", w.Users[i].Process+1, i+1)
		for k, r := range records {
			for step, at := range []int64{r.Called, r.Entered, r.Left, r.Back} {
				all = append(all, moment{at, int32(i), int32(k*len(steps) + step)})
			}
		}
	}
	of := func(m moment) (r *Record, do string) {
		return &w.Records[m.user][int(m.k)/len(steps)], steps[int(m.k)%len(steps)]
	}
	// Whoever enters at the time at which another one leaves comes after it.
	enters := func(m moment) int {
		if r, do := of(m); do == history.Exit && r.Entered < r.Left {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b moment) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Or(enters(a)-enters(b), cmp.Compare(a.user, b.user), cmp.Compare(a.k, b.k))
	})
	for _, m := range all {
		r, do := of(m)
		e := history.Event{At: m.at, Do: do, User: names[m.user], Lock: w.Users[m.user].Name}
		if do == history.Crit {
			e.Token = history.Token(r.Token)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}
