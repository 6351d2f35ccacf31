package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/poundlock/poundlock/verify/history"
)

// operations are what event files tell of each lock.
func operations(t *testing.T, names []string) (h lockHistory) {
	t.Helper()
	files, closeAll, err := openFiles(names)
	defer closeAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var events []history.Event
		e, err := f.Next()
		for ; err == nil; e, err = f.Next() {
			if e.Do != history.End {
				events = append(events, e)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		h.Add(events)
	}
	return h
}

// opined is how many operations porcupine is asked about at most: its memory grows with their square.
const opined = 20_000

// first are the first k operations or so: what cannot follow them in order is no part of them.
func first(ops []porcupine.Operation, k int) (some []porcupine.Operation) {
	if len(ops) <= k {
		return ops
	}
	byReturn := slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	end := byReturn[k-1].Return
	for _, op := range ops {
		// Somebody may have come in because of a release that has begun, and nobody because of anything else.
		if _, releases := op.Input.(release); op.Return <= end || releases && op.Call <= end {
			some = append(some, op)
		}
	}
	return some
}

// opinion is what porcupine rejects of locks and of the counters behind them; what it
// cannot decide in time is a failure.
func opinion(t *testing.T, h lockHistory, resources ...*resource) (rejected []string) {
	t.Helper()
	ask := func(what string, m porcupine.Model, ops []porcupine.Operation) {
		t.Helper()
		began := time.Now()
		some := first(ops, opined)
		result := porcupine.CheckOperationsTimeout(m, some, time.Minute)
		t.Logf("porcupine: %s: %v, the first %d of %d operations in %v",
			what, result, len(some), len(ops), time.Since(began).Round(time.Millisecond))
		switch result {
		case porcupine.Illegal:
			rejected = append(rejected, what)
		case porcupine.Unknown:
			t.Errorf("porcupine has not decided about %s within a minute", what)
		}
	}
	for name, ops := range h.Locks {
		ask(fmt.Sprintf("lock %q", name), lockModel, ops)
	}
	for i, r := range resources {
		ask(fmt.Sprintf("counter %d", i), counterModel, r.increments())
	}
	return rejected
}
