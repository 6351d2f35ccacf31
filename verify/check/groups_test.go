package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// sets are alternatives of one user, by their text.
func sets(text string) (list []protocol.Groups) {
	for set := range strings.SplitSeq(text, "|") {
		list = append(list, protocol.Groups(set))
	}
	return list
}

// The chamber keeps what it promises, whoever wants what.
func TestChamber(t *testing.T) {
	for _, wants := range [][]string{{}, {"a|b"}, {"a,b|b,c|!w"}, {"a", "b", "a|!w"}, {"a", "a", "a"}, {"!w"}} {
		c := config(3)
		c.Properties = []string{"all"}
		for _, list := range wants {
			c.Wants = append(c.Wants, sets(list))
		}
		v := run(t, chamber.Algorithm(chamber.Sound), c)
		if v.Verdict != check.Holds || len(v.Properties) != 7 {
			t.Errorf("%q: %s of %d: %s %v\n%s", wants, v.Verdict, len(v.Properties), v.Reason, v.Trace, v.Bounds)
		}
		t.Log(v.States, v.Bounds)
	}
}

// Each broken form violates its property, by a shortest run that can be taken again.
func TestBrokenChambers(t *testing.T) {
	for _, form := range []struct {
		form     chamber.Form
		wants    string
		property string
		steps    int
	}{
		{chamber.IgnoresGroups, "a|b", check.Exclusion, 4},
		{chamber.IgnoresGroups, "!w", check.Exclusion, 4},
		{chamber.AloneTogether, "a|!w", check.Exclusion, 4},
		{chamber.Unwanted, "a|b", check.WellFormed, 3},
		{chamber.OneByOne, "a|b", check.ConcurrentEntry, 3},
	} {
		a, c := chamber.Algorithm(form.form), config(2)
		c.Wants, c.Properties = [][]protocol.Groups{sets(form.wants)}, []string{"all"}
		v := run(t, a, c)
		if v.Verdict != check.Violated || v.Property != form.property || len(v.Trace) != form.steps {
			t.Errorf("%s: %s of %s after %q, want %s after %d", form.form, v.Verdict, v.Property, v.Trace, form.property, form.steps)
			continue
		}
		t.Logf("%s: %s %q", form.form, v.Reason, v.Trace)
		rewalk(t, a, c, v)
	}
}

// rewalk takes the trace of a violation as a prefix, and in a walk.
func rewalk[M any](t *testing.T, a protocol.Algorithm[M], c check.Config, v check.Verdict) {
	t.Helper()
	lines := slices.Clone(v.Trace)
	if v.Loop != check.NoLoop {
		lines = slices.Insert(lines, int(v.Loop), "loop")
	}
	steps, err := scenario.Names{Members: c.N}.Parse(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.Properties = []string{v.Property}
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Verb == scenario.Loop {
			w.Loop()
			continue
		}
		if _, err := w.Take(s); err != nil {
			t.Fatal(err)
		}
	}
	if v.Loop == check.NoLoop {
		if property, _ := w.Violation(); property != v.Property {
			t.Errorf("a walk along %q violates %q, want %s", v.Trace, property, v.Property)
		}
		return
	}
	if r, err := w.Repeat(); err != nil || r.Property != v.Property {
		t.Errorf("a walk along %q that repeats: %+v, %v, want %s", v.Trace, r, err, v.Property)
	}
}

// Who shares overtakes, for ever. Channels are FIFO, else a new request overtakes what was
// released before, again and again, and there is no end of states.
func TestOvertakingChamber(t *testing.T) {
	for form, want := range map[chamber.Form]check.Result{chamber.Sound: check.Holds, chamber.Overtakes: check.Violated} {
		a, c := chamber.Algorithm(form), config(3)
		c.Entries, c.FIFO, c.MaxMemory = []int{check.Unlimited}, true, 256<<20
		c.Wants, c.Properties = [][]protocol.Groups{sets("b"), sets("a"), sets("a")}, []string{"all"}
		v := run(t, a, c)
		if v.Verdict != want || want == check.Violated && v.Property != check.Starvation {
			t.Errorf("%q: %s of %s, want %s of starvation: %s", form, v.Verdict, v.Property, want, v.Bounds)
		}
		if v.Verdict == check.Violated {
			t.Logf("%s %q", v.Reason, v.Trace)
			rewalk(t, a, c, v)
		}
	}
}

// Concurrent entry is about those who may stay: it is decided with Config.Stay too, where
// nothing else of infinite runs is.
func TestConcurrentEntryWithStay(t *testing.T) {
	for form, want := range map[chamber.Form]check.Result{chamber.Sound: check.Holds, chamber.OneByOne: check.Violated} {
		c := config(3)
		c.Stay, c.Properties = true, []string{check.ConcurrentEntry}
		if v := run(t, chamber.Algorithm(form), c); v.Verdict != want {
			t.Errorf("%q: %s, want %s", form, v.Verdict, want)
		}
	}
}

func TestWants(t *testing.T) {
	single := chamber.Algorithm(chamber.Sound)
	single.Several = false
	plain := chamber.Algorithm(chamber.Sound)
	plain.Grouped = false
	for _, c := range []struct {
		a     protocol.Algorithm[chamber.Message]
		wants []string
		want  string
	}{
		{plain, []string{"a"}, "its users want no groups"},
		{single, []string{"a,b"}, `groups "a,b": its users want one group at a time`},
		{single, []string{"a", "a"}, "2 lists of wants for 3 users"},
		{single, []string{""}, `bad groups ""`},
	} {
		k := config(3)
		for _, list := range c.wants {
			k.Wants = append(k.Wants, sets(list))
		}
		if _, err := check.Run(c.a, k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.wants, err, c.want)
		}
	}
	k := config(3)
	k.Wants = [][]protocol.Groups{{"b,a"}}
	if v, err := check.Run(chamber.Algorithm(chamber.Sound), k); err != nil || !strings.Contains(v.Bounds, "a try wants b,a,") {
		t.Errorf("groups in no order: %v, %s", err, v.Bounds)
	}
	k = config(3)
	k.Properties = []string{check.ConcurrentEntry}
	if _, err := check.Run(plain, k); !errors.As(err, new(*check.PropertyError)) {
		t.Errorf("concurrent entry without groups: %v", err)
	}
}

// Users that stay inside until they are told that somebody waits are told; where one is not, who waits does so for ever.
func TestUntilTold(t *testing.T) {
	c := config(2)
	c.UntilTold, c.Wants, c.Properties = true, [][]protocol.Groups{sets("r|!w")}, []string{check.Deadlock, check.Starvation}
	if v := run(t, tokengme.Algorithm, c); v.Verdict != check.Holds {
		t.Errorf("%s of %s: %s", v.Verdict, v.Property, v.Reason)
	}
	mute := chamber.Algorithm(chamber.Sound)
	mute.Tells = true // a lie
	if v := run(t, mute, c); v.Verdict != check.Violated || v.Property != check.Deadlock {
		t.Errorf("nobody is told: %s of %s", v.Verdict, v.Property)
	}
	if _, err := check.Run(chamber.Algorithm(chamber.Sound), c); err == nil || !strings.Contains(err.Error(), "until told: it tells its users nothing") {
		t.Errorf("users whom nobody tells anything: %v", err)
	}
	c.Stay, c.Properties = true, nil
	if _, err := check.Run(tokengme.Algorithm, c); err == nil || !strings.Contains(err.Error(), "until told: who is inside stays there anyway") {
		t.Errorf("users who stay: %v", err)
	}
}
