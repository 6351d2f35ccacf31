package e2e

import (
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/poundlock/poundlock/verify/history"
)

// Porcupine, a checker of linearizability, gives a second opinion about histories of locks: it is told what the users
// saw as operations of an object that one user has at a time, or several of one group. It looks for an order of all
// operations that respects their intervals and that such an object can live through. It shares with package history
// nothing but the events.

// An acquisition is an operation of a lock, from the try to the crit.
type acquisition struct {
	user  int
	group string // "": the user is alone
	token history.Token
}

// A release is one, too: from the end of the section until the user knows that it is
// out. A section ends at the latest with its lease.
type release struct{ user int }

// held is the state of a lock.
type held struct {
	by           string        // the users, as runes in their order: states can be compared
	group        string        // of the last one
	before, last history.Token // the largest before that group came, and of all
}

const nobody = -1

// lockModel is a lock that one user has at a time, or several of one group, and whose tokens grow from group to group.
var lockModel = porcupine.Model{
	Init: func() any { return held{} },
	Step: func(state, input, _ any) (bool, any) {
		s := state.(held)
		switch op := input.(type) {
		case acquisition:
			if op.group == "" || op.group != s.group {
				if s.by != "" {
					return false, s
				}
				s.group, s.before = op.group, s.last
			}
			by := append([]rune(s.by), rune(op.user))
			slices.Sort(by)
			s.by, s.last = string(by), max(s.last, op.token)
			return op.token > s.before, s
		case release:
			user := string(rune(op.user))
			inside := strings.Contains(s.by, user)
			s.by = strings.ReplaceAll(s.by, user, "")
			return inside, s
		}
		return false, s
	},
	Hash: func(state any) uint64 {
		s := state.(held)
		return uint64(len(s.by))*0x9e3779b97f4a7c15 ^ uint64(s.last)
	},
}

// A lockHistory is the operations of each lock.
type lockHistory struct {
	Locks map[string][]porcupine.Operation
	users int
}

type visitor struct{ user, lock string }

// Add adds the events of one file, in their order: each user's are well-formed. Users of
// another file are others. A try without crit is no operation.
func (h *lockHistory) Add(events []history.Event) {
	if h.Locks == nil {
		h.Locks = map[string][]porcupine.Operation{}
	}
	visits := map[visitor]*visit{}
	var order []*visit // that in which they were first seen
	for _, e := range events {
		who := visitor{e.User, e.Lock}
		v := visits[who]
		if v == nil {
			v = &visit{h: h, user: h.users, lock: e.Lock, left: nobody}
			h.users++
			visits[who] = v
			order = append(order, v)
		}
		v.event(e)
	}
	for _, v := range order { // those that no event ended: nobody knows more than the last one
		if v.inside || v.left != nobody {
			v.event(history.Event{At: events[len(events)-1].At, Do: history.Crash})
		}
	}
}

// A visit is where a user is with its operations.
type visit struct {
	h      *lockHistory
	user   int
	lock   string
	tried  int64
	group  string
	until  int64
	inside bool
	left   int64 // when the section ended, nobody if there is none
}

func (v *visit) event(e history.Event) {
	switch e.Do {
	case history.Try:
		v.tried, v.group = e.At, e.Group
	case history.Crit:
		v.add(acquisition{v.user, v.group, e.Token}, v.tried, e.At)
		v.inside = true
		v.lease(e)
	case history.Renew:
		v.lease(e)
	case history.Ejected, history.Exit:
		v.leave(e.At)
	case history.Rem, history.Crash:
		v.leave(e.At)
		if v.left != nobody {
			v.add(release{v.user}, v.left, e.At)
			v.left = nobody
		}
	}
}

func (v *visit) lease(e history.Event) {
	if v.until = e.Until; v.until == 0 {
		v.until = math.MaxInt64
	}
}

func (v *visit) leave(at int64) {
	if v.inside {
		v.inside, v.left = false, min(at, v.until)
	}
}

func (v *visit) add(input any, from, to int64) {
	v.h.Locks[v.lock] = append(v.h.Locks[v.lock], porcupine.Operation{
		ClientId: len(v.h.Locks[v.lock]), Input: input, Call: from, Return: to,
	})
}

// What was incremented: an operation of a counter that read a value and wrote another one.
type incremented struct{ Read, Wrote int }

// counterModel is a register that one operation, whose output is what it incremented, reads and
// writes.
var counterModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, _, output any) (bool, any) {
		op := output.(incremented)
		return state.(int) == op.Read, op.Wrote
	},
}
