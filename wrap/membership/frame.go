package membership

import (
	"fmt"
	"math"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Frame. The names of all but Inner are the paper's.
const (
	Inner   uint8 = iota // a message of the algorithm, in its instance
	Notify               // a member tells its coordinator which sessions it has, is asked to leave, or refuses a RESTART
	Join                 // a process is in no instance, and would like to be in one
	Restart              // the coordinator asks for a new instance
	Done                 // a member joined it, and has an old request or none
	Start                // an old request is granted after that many LEAVEs
	Leave                // an old request was served
	Want                 // a user has tried while its instance is suspended; of the coordinator: somebody waits who does not fit
	Resume               // all old requests were served
	kinds
)

var messages = []protocol.Message{
	Notify: {Name: "NOTIFY", Overhead: true}, Join: {Name: "JOIN", Overhead: true},
	Restart: {Name: "RESTART", Overhead: true}, Done: {Name: "DONE", Overhead: true},
	Start: {Name: "START", Overhead: true}, Leave: {Name: "LEAVE", Overhead: true}, Want: {Name: "WANT", Overhead: true}, Resume: {Name: "RESUME", Overhead: true},
}

// A Frame is a message of one instance, or about one.
type Frame[M any] struct {
	Kind  uint8
	Epoch protocol.Epoch // of the instance; of a NOTIFY, that of its sender
	Note  *Note          // of all but Inner, LEAVE and RESUME, frozen once sent
	Msg   M              // Inner
}

// A Note is what frames about instances carry.
type Note struct {
	// Number counts what the sender of a NOTIFY, JOIN or DONE has said of itself; 0 in a NOTIFY
	// that says nothing. A RESTART has the number of what its receiver has said
	// that it is based on, and a START has how many LEAVEs come before.
	Number uint64
	Set    set      // who is in the instance of a NOTIFY, RESTART or DONE; of a START, who gets the LEAVE of who is started
	Joins  set      // of a RESTART: those of Set who were in no instance, and come first
	Old    bool     // of a DONE: there is an old request; of a START: it is the last group; of a NOTIFY without a number: its receiver is to leave that instance
	Inside bool     // of a DONE: its user is inside
	Groups string   // wanted, of a DONE or WANT; granted, of a START, and of a DONE of who is inside
	Since  []uint64 // of a NOTIFY or DONE: the number since which each session lasts, 0: none
}

func (w *wrapped[M]) fields(f Frame[M], c *protocol.Codec) Frame[M] {
	protocol.Upto(c, &f.Kind, kinds-1)
	c.Epoch(&f.Epoch, math.MaxUint64)
	switch f.Kind {
	case Inner:
		f.Msg = w.inner.Visit(f.Msg, c)
	case Leave, Resume:
	default:
		protocol.Pointer(c, &f.Note).fields(c)
	}
	return f
}

func (n *Note) fields(c *protocol.Codec) {
	c.Uint(&n.Number)
	n.Set.fields(c)
	n.Joins.fields(c)
	c.Bools(&n.Old, &n.Inside)
	protocol.Text(c, &n.Groups)
	c.Words(protocol.List(c, &n.Since))
}

// kindOf counts the kinds of the wrapper after those of the algorithm.
func (w *wrapped[M]) kindOf(f Frame[M]) int {
	if f.Kind == Inner {
		return w.inner.KindOf(f.Msg)
	}
	return len(w.inner.Messages) + int(f.Kind) - 1
}

// ints counts an epoch, a set and a group as one integer each.
func (w *wrapped[M]) ints(f Frame[M]) int {
	switch f.Kind {
	case Inner:
		return 1 + w.inner.Ints(f.Msg)
	case Notify:
		if n := f.Note; n.Number > 0 {
			return 3 + len(n.Since)
		}
	case Join:
		return 2
	case Want:
		return 1 + protocol.Groups(f.Note.Groups).Len()
	case Done:
		return 3 + len(f.Note.Since) + protocol.Groups(f.Note.Groups).Len()
	case Restart, Start:
		return 4
	}
	return 1
}

// text: an algorithm knows its processes by rank, which stand behind an @.
func (w *wrapped[M]) text(f Frame[M]) string {
	n := f.Note
	switch f.Kind {
	case Inner:
		return strings.ReplaceAll(w.inner.Text(f.Msg), "#", "@") + " of " + f.Epoch.Text()
	case Notify:
		switch {
		case n.Number > 0:
			return fmt.Sprintf("NOTIFY(%s,%d,%s)", f.Epoch.Text(), n.Number, words(n.Since))
		case n.Old:
			return "NOTIFY(leave " + f.Epoch.Text() + ")"
		}
		return "NOTIFY(" + f.Epoch.Text() + ")"
	case Join:
		return fmt.Sprintf("JOIN(%s,%d)", f.Epoch.Text(), n.Number)
	case Restart:
		text := fmt.Sprintf("RESTART(%s,%v,%d", f.Epoch.Text(), n.Set, n.Number)
		if !n.Joins.empty() {
			text += fmt.Sprintf(",%v join", n.Joins)
		}
		return text + ")"
	case Done:
		old := "none"
		switch {
		case n.Inside:
			old = strings.TrimSpace("inside " + n.Groups)
		case n.Old:
			old = strings.TrimSpace("wants " + n.Groups)
		}
		return fmt.Sprintf("DONE(%s,%s,%d,%s)", f.Epoch.Text(), old, n.Number, words(n.Since))
	case Start:
		return fmt.Sprintf("START(%s,%s,after %d,then %v)", f.Epoch.Text(), n.Groups, n.Number, n.Set)
	case Leave:
		return "LEAVE(" + f.Epoch.Text() + ")"
	case Want:
		return strings.TrimSuffix("WANT("+f.Epoch.Text()+","+n.Groups, ",") + ")"
	}
	return "RESUME(" + f.Epoch.Text() + ")"
}

func words(w []uint64) string { return strings.ReplaceAll(fmt.Sprint(w), " ", ",") }
