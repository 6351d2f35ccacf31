package history

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/poundlock/poundlock/protocol"
)

// The names of what a Weak monitor finds, beside WellFormed.
const (
	OneCopy    = "one-copy"   // copies of the object executed different sequences, or one operation twice
	Contiguous = "contiguous" // an operation of another section was executed between those of one
	Precedence = "precedence" // an operation of a section was executed after those of one that began later than it ended
	Fresh      = "fresh"      // a section that executed operations had begun on a copy that lacked some before them
	Outcome    = "outcome"    // an outcome came before the process had executed the operation
	Failed     = "failed"     // an operation was executed though its user was ejected instead
	Lagging    = "lagging"    // at rest, a copy lacks operations that another one has executed

	Groundless        = "groundless"         // a user was ejected before anybody was suspected, crashed or came back
	OperationProgress = "operation-progress" // a user was ejected, and nobody was since everything was at rest: see Calm
)

// A Weak monitor judges weak mutual exclusion over a replicated object: not who is inside at one
// instant, which is not promised, but what becomes of the object. What its copies execute must be
// one sequence, as if users had been inside one after the other; and what a user was told of an
// operation must be true. Every operation has a name of its own.
//
// Memory depends on the number of users, and on how far copies lag behind each other.
type Weak struct {
	users  Users
	state  []weakUser
	ghosts []ghost // at most maxGhosts: older ones count as never executed

	copies []int     // by process: how many operations its copy has executed, noCopy: it has none
	first  int       // how many of the sequence are forgotten
	names  []string  // those after them that some copy has executed, in this order
	last   sectionID // the section of the last one

	excuse excuse
}

// An excuse is what a user may be ejected for.
type excuse uint8

const (
	nothingYet  excuse = iota // nobody was suspected so far, nor crashed, nor came back
	trouble                   // somebody was, or did
	nothingLeft               // and it has had its effect: see Calm
)

// maxGhosts bounds the operations of crashed users whose fate is open.
const maxGhosts = 64

// maxNames is how many operations that every copy has executed are remembered, for those that
// install an old one.
const maxNames = 4096

const noCopy = -1

// A weakUser is a user in its present section.
type weakUser struct {
	section int    // its number: how many the user has begun
	found   int    // how many operations its copy had executed when it got in
	acted   bool   // an operation of the section was executed
	op      string // its last operation; "": none
	at      int    // its place in the sequence, from 1; 0: it was not executed
	after   uint64 // the ghosts whose section had ended before this one began, as bits
}

// A ghost is an operation that was open when its user crashed: it is executed, or never will be.
type ghost struct {
	user, section int
	found         int
	op            string
	acted         bool // an operation of its section was executed before
	passed        bool // an operation of a section that began later was
}

type sectionID struct{ user, section int }

// NewWeak returns a monitor of n processes, each with a user and an empty copy.
func NewWeak(n int) *Weak {
	return &Weak{users: make(Users, n), state: make([]weakUser, n), copies: make([]int, n), last: sectionID{user: -1}}
}

// A Fault is a property that does not hold, and why, with processes written as #ID; the zero one, that
// none is known.
type Fault struct{ Property, Text string }

func found(property, format string, args ...any) Fault {
	return Fault{property, fmt.Sprintf(format, args...)}
}

// Input records what a user does, or what its process hears of others.
func (w *Weak) Input(user protocol.ID, in protocol.Input) Fault {
	if err := Input(&w.users[user], user, in); err != nil {
		return found(WellFormed, "%v", err)
	}
	u := &w.state[user]
	switch in.Kind {
	case protocol.Try:
		*u = weakUser{section: u.section + 1, after: 1<<len(w.ghosts) - 1}
	case protocol.Issue:
		u.op, u.at = in.Data, 0
	case protocol.Suspect:
		w.excuse = trouble
	case protocol.Start:
		if in.Arg > 1 { // a later life
			w.excuse = trouble
		}
	}
	return Fault{}
}

// Act records what a process tells its user, or does with its copy.
func (w *Weak) Act(id protocol.ID, a protocol.Act) Fault {
	issuing := w.users[id] == protocol.InIssue
	if err := Act(&w.users[id], id, a); err != nil {
		return found(WellFormed, "%v", err)
	}
	u := &w.state[id]
	switch a.Do {
	case protocol.Crit:
		u.found = w.copies[id]
	case protocol.Invoke:
		return w.invoke(id, a.Data)
	case protocol.Install:
		return w.install(id, a.Data)
	case protocol.Outcome:
		if u.at == 0 || u.at > w.copies[id] {
			return found(Outcome, "#%d has the outcome of %s, which it has not executed", id, u.op)
		}
	case protocol.Ejected:
		switch {
		case issuing && u.at > 0:
			return found(Failed, "#%d is ejected, and %s was executed", id, u.op)
		case w.excuse == nothingYet:
			return found(Groundless, "#%d is ejected, and nobody was suspected, has crashed or come back", id)
		case w.excuse == nothingLeft:
			return found(OperationProgress, "#%d is ejected, and since everything was at rest nobody was suspected", id)
		}
	}
	return Fault{}
}

// invoke: a copy executes an operation, which is the next one of the sequence, or a new one.
func (w *Weak) invoke(id protocol.ID, op string) Fault {
	if w.copies[id] == noCopy {
		return found(OneCopy, "#%d executes %s, and has no copy of the object", id, op)
	}
	next := w.copies[id] - w.first
	w.copies[id]++
	switch {
	case next < 0: // it is forgotten what was executed here
	case next == len(w.names):
		w.names = append(w.names, op)
		return w.execute(op, w.copies[id])
	case w.names[next] != op:
		return found(OneCopy, "#%d executes %s, where another one has executed %s", id, op, w.names[next])
	}
	w.trim()
	return Fault{}
}

// execute: the operation is the first copy's at this place.
func (w *Weak) execute(op string, at int) Fault {
	for i := range w.state {
		if u := &w.state[i]; u.op == op {
			switch {
			case u.at > 0:
				return found(OneCopy, "%s is executed twice", op)
			case w.users[i] != protocol.InIssue:
				return found(Failed, "%s is executed, and its user #%d was ejected", op, i)
			}
			u.at = at
			acted := u.acted
			u.acted = true
			for g := range w.ghosts {
				w.ghosts[g].passed = w.ghosts[g].passed || u.after>>g&1 == 1
			}
			return w.follows(op, at, sectionID{i, u.section}, acted, u.found)
		}
	}
	i := slices.IndexFunc(w.ghosts, func(g ghost) bool { return g.op == op })
	if i < 0 {
		return found(OneCopy, "%s is executed, and nobody has it open: once more, or after it had failed", op)
	}
	g := w.ghosts[i]
	w.forget(i)
	if g.passed {
		return found(Precedence, "%s is executed after an operation of a section that began when its user had crashed", op)
	}
	return w.follows(op, at, sectionID{g.user, g.section}, g.acted, g.found)
}

// follows judges the operation at a place of the sequence: of a section of which one was executed
// before, or none, and whose user had found so many in its copy.
func (w *Weak) follows(op string, at int, p sectionID, acted bool, had int) Fault {
	last := w.last
	w.last = p
	switch {
	case acted && last != p:
		return found(Contiguous, "%s is executed after another section's operation, and one of its own was before", op)
	case !acted && had != at-1:
		return found(Fresh, "%s is operation %d, and its user got in with a copy that had executed %d", op, at, had)
	}
	return Fault{}
}

// forget removes a ghost.
func (w *Weak) forget(i int) {
	w.ghosts = slices.Delete(w.ghosts, i, i+1)
	for u := range w.state {
		after := &w.state[u].after
		*after = *after&(1<<i-1) | *after>>(i+1)<<i
	}
}

// trim drops what every copy has executed, when it is much.
func (w *Weak) trim() {
	if len(w.names) < maxNames {
		return
	}
	least := w.first + len(w.names)
	for _, k := range w.copies {
		if k != noCopy {
			least = min(least, k)
		}
	}
	if least > w.first {
		w.names = slices.Delete(w.names, 0, least-w.first)
		w.first = least
	}
}

// Copy is the copy of a process, as Install takes it.
func (w *Weak) Copy(id protocol.ID) string { return strconv.Itoa(w.copies[id]) }

// install: a copy takes the place of that of a process, which has executed no more, or that has none.
func (w *Weak) install(id protocol.ID, object string) Fault {
	k, err := strconv.Atoi(object)
	switch {
	case err != nil || k < 0 || k > w.first+len(w.names):
		return found(OneCopy, "#%d installs %q, which is no copy of the object", id, object)
	case k < w.copies[id]:
		return found(OneCopy, "#%d installs a copy that has executed %d operations, and has executed %d", id, k, w.copies[id])
	}
	w.copies[id] = k
	w.trim()
	return Fault{}
}

// Crash records that a process stopped: its copy is lost, and so is its user, whose open
// operation may still be executed.
func (w *Weak) Crash(id protocol.ID) {
	if u := &w.state[id]; w.users[id] == protocol.InIssue && u.at == 0 {
		if len(w.ghosts) == maxGhosts {
			w.forget(0)
		}
		w.ghosts = append(w.ghosts, ghost{user: int(id), section: u.section, found: u.found, op: u.op, acted: u.acted})
		u.op = ""
	}
	w.users.Crash(id)
	w.copies[id], w.excuse = noCopy, trouble
	w.trim()
}

// Calm records that everything is at rest: nothing is left to happen before a user tries, and the failure detectors
// suspect exactly those that crashed. From now on nobody is ejected, until somebody is suspected again, crashes or
// comes back: so each operation that is issued has an outcome.
func (w *Weak) Calm() {
	if w.excuse == trouble {
		w.excuse = nothingLeft
	}
}

// Unfinished says which copy lacks operations that another one has executed, if any does: they must not once
// nothing is left to happen.
func (w *Weak) Unfinished() Fault {
	for id, k := range w.copies {
		if k != noCopy && k < w.first+len(w.names) {
			return found(Lagging, "#%d has executed %d operations of %d", id, k, w.first+len(w.names))
		}
	}
	return Fault{}
}
