package wme

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

const hop = time.Millisecond

// Users stay inside for longer than they think, so that of two of them one always waits; and both take much longer
// than anything that an action causes.
const (
	think = 500 * hop
	hold  = 1000 * hop
)

// A story is a run in which nothing goes wrong.
type story struct {
	users      int // the last ones; the others never try
	entries    int // of each of them
	operations int // in each section
}

// A deed is what a user did, and what came of it, until somebody did something else.
type deed struct {
	kind  protocol.Kind // Try, Issue or Exit
	who   protocol.ID
	first bool // of this kind, of this user
	wait  bool // of an Exit: somebody else tries

	messages int // between distinct processes
	// Steps until the user had its answer, until another one was let in, and until the last copy of the
	// object had executed an operation; never where that did not happen.
	answered, entered, executed int
	copies                      int // that have executed it
}

const never = -1

// A witness sees what all processes of one run do. It belongs to one goroutine, as the simulator does.
type witness struct {
	n      int
	deeds  []deed
	start  int64 // when the last one began
	trying map[protocol.ID]bool
	late   error // the first thing that does not belong to any deed
}

// A watched process shows a witness what it does.
type watched[M any] struct {
	protocol.Process[M]
	id protocol.ID
	w  *witness
}

// Step implements protocol.Process.
func (p watched[M]) Step(ev protocol.Event[M], out *protocol.Out[M]) {
	switch ev.Kind {
	case protocol.Try, protocol.Issue, protocol.Exit:
		p.w.begin(p.id, ev.Kind, ev.Now)
	}
	p.Process.Step(ev, out)
	for _, e := range out.Effects {
		p.w.effect(p.id, e.Act, ev.Now)
	}
}

func (w *witness) begin(id protocol.ID, kind protocol.Kind, now int64) {
	d := deed{kind: kind, who: id, answered: never, entered: never, executed: never}
	d.first = !slices.ContainsFunc(w.deeds, func(e deed) bool { return e.who == id && e.kind == kind })
	if kind == protocol.Try {
		w.trying[id] = true
	}
	d.wait = len(w.trying) > 0 && !w.trying[id]
	w.deeds = append(w.deeds, d)
	w.start = now
}

func (w *witness) effect(id protocol.ID, a protocol.Act, now int64) {
	if len(w.deeds) == 0 {
		w.late = fmt.Errorf("process %d does something before anybody has asked", id+1)
		return
	}
	d := &w.deeds[len(w.deeds)-1]
	steps := int((now - w.start) / int64(hop))
	switch a.Do {
	case protocol.Send:
		d.messages++
	case protocol.Broadcast:
		d.messages += w.n - 1
	case protocol.Crit:
		delete(w.trying, id)
		if id == d.who {
			d.answered = steps
		} else {
			d.entered = steps
		}
	case protocol.Rem, protocol.Outcome:
		d.answered = steps
	case protocol.Invoke:
		d.executed = steps
		d.copies++
	default:
		w.late = fmt.Errorf("process %d does more than a nice run asks for: effect %d", id+1, a.Do)
	}
}

// watch runs a story among n processes, and returns what users did in it.
func watch[M any](a protocol.Algorithm[M], n int, s story) ([]deed, error) {
	w := &witness{n: n, trying: map[protocol.ID]bool{}}
	made := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[M] { return watched[M]{made(id, c), id, w} }
	c := sim.Config{
		Config: protocol.Config{N: n}, Entries: make([]int, n), Operations: []int{s.operations},
		Delay: sim.Constant(hop), Think: sim.Constant(think), Hold: sim.Constant(hold), Detect: sim.Silent,
	}
	for u := n - s.users; u < n; u++ {
		c.Entries[u] = s.entries
	}
	r, err := sim.Run(a, c)
	switch err := cmp.Or(err, w.late, r.Err()); {
	case err != nil:
		return nil, err
	case r.Entries != uint64(s.users*s.entries):
		return nil, fmt.Errorf("%d entries, want %d", r.Entries, s.users*s.entries)
	}
	sent := 0
	for _, d := range w.deeds {
		sent += d.messages
	}
	if sent != r.Messages {
		return nil, fmt.Errorf("%d messages are counted, and the simulator has %d", sent, r.Messages)
	}
	return w.deeds, nil
}
