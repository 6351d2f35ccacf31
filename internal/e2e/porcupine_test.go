package e2e

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/poundlock/poundlock/history"
)

// A second opinion: the sections that the event files tell of as operations of a lock,
// an object that one user has at a time. Porcupine looks for an order of all operations
// that respects their intervals and that such a lock can live through; it shares with
// package history nothing but the files.

// An acquisition is an operation of a lock, from the try to the crit.
type acquisition struct {
	user  int
	token history.Token
}

// A release is one, too: from the end of the section until the user knows that it is
// out. Lost sections are released by the end of their lease.
type release struct{ user int }

// held is the state of a lock.
type held struct {
	by   int // nobody is free
	last history.Token
}

const nobody = -1

var lockModel = porcupine.Model{
	Init: func() any { return held{by: nobody} },
	Step: func(state, input, _ any) (bool, any) {
		s := state.(held)
		switch op := input.(type) {
		case acquisition:
			return s.by == nobody && op.token > s.last, held{op.user, op.token}
		case release:
			return s.by == op.user, held{nobody, s.last}
		}
		return false, s
	},
	Hash: func(state any) uint64 {
		s := state.(held)
		return uint64(s.by)*0x9e3779b97f4a7c15 ^ uint64(s.last)
	},
}

// operations are those of each lock in event files.
func operations(t *testing.T, names []string) map[string][]porcupine.Operation {
	t.Helper()
	files, closeAll, err := openFiles(names)
	defer closeAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]porcupine.Operation{}
	for user, f := range files {
		var events []history.Event
		for e, err := f.Next(); err == nil; e, err = f.Next() {
			events = append(events, e)
		}
		ofUser(user, events, func(lock string, op porcupine.Operation) {
			op.ClientId = len(all[lock])
			all[lock] = append(all[lock], op)
		})
	}
	return all
}

// ofUser adds the operations of a file, which has one user.
func ofUser(user int, events []history.Event, add func(lock string, op porcupine.Operation)) {
	var tried, until int64
	left := int64(nobody) // when the section ended; nobody is outside
	inside := false
	leave := func(e history.Event) {
		if inside {
			inside, left = false, min(e.At, until)
		}
	}
	for _, e := range events {
		switch e.Do {
		case history.Try:
			tried = e.At
		case history.Crit, history.Renew:
			if e.Do == history.Crit {
				add(e.Lock, porcupine.Operation{Input: acquisition{user, e.Token}, Call: tried, Return: e.At})
				inside = true
			}
			if until = e.Until; until == 0 {
				until = math.MaxInt64
			}
		case history.Ejected, history.Exit:
			leave(e)
		case history.Rem:
			if left != nobody {
				add(e.Lock, porcupine.Operation{Input: release{user}, Call: left, Return: e.At})
				left = nobody
			}
		}
	}
	if k := len(events) - 1; inside || left != nobody { // it was killed
		leave(events[k])
		lock := events[slices.IndexFunc(events, func(e history.Event) bool { return e.Do == history.Crit })].Lock
		add(lock, porcupine.Operation{Input: release{user}, Call: left, Return: max(left, events[k].At)})
	}
}

// An incremented is an increment of a resource: from the read to the accepted write.
type incremented struct{ read, wrote int }

// counterModel is a register that one operation reads and writes.
var counterModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, _, output any) (bool, any) {
		op := output.(incremented)
		return state.(int) == op.read, op.wrote
	},
}

// opinion is what porcupine says of locks and of the counters behind them; what it
// cannot decide in time is a failure.
func opinion(t *testing.T, locks map[string][]porcupine.Operation, resources ...*resource) (illegal []string) {
	t.Helper()
	ask := func(what string, m porcupine.Model, ops []porcupine.Operation) {
		t.Helper()
		began := time.Now()
		result := porcupine.CheckOperationsTimeout(m, ops, time.Minute)
		t.Logf("porcupine: %s: %v, %d operations in %v", what, result, len(ops), time.Since(began).Round(time.Millisecond))
		switch result {
		case porcupine.Illegal:
			illegal = append(illegal, what)
		case porcupine.Unknown:
			t.Errorf("porcupine has not decided about %s within a minute", what)
		}
	}
	for name, ops := range locks {
		ask(fmt.Sprintf("lock %q", name), lockModel, ops)
	}
	for i, r := range resources {
		ask(fmt.Sprintf("counter %d", i), counterModel, r.increments())
	}
	return illegal
}
