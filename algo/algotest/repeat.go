package algotest

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Repeat takes the trace of a violation step by step, its loop a second time, and returns
// what that violates.
func Repeat[M any](t testing.TB, a protocol.Algorithm[M], c check.Config, v check.Verdict) check.Repeated {
	t.Helper()
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(v.Trace, "\n")
	steps, err := w.Names().Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		if i == int(v.Loop) {
			w.Loop()
		}
		if _, err := w.Take(s); err != nil {
			t.Fatalf("%v, in the run\n%s", err, text)
		}
	}
	if int(v.Loop) == len(steps) { // at rest
		w.Loop()
	}
	r, err := w.Repeat()
	if err != nil {
		t.Fatalf("%v, after the run\n%s", err, text)
	}
	return r
}
