package history

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// weakly plays an event: 0try, 0crit, 0issue:a, 0do:a, 0outcome, 0ejected, 0exit, 0rem, 0crash, 0back, 0copy:1,
// 0suspect, 0calm.
func weakly(t *testing.T, w *Weak, word string) Fault {
	t.Helper()
	inputs := map[string]protocol.Kind{"try": protocol.Try, "issue": protocol.Issue, "exit": protocol.Exit, "suspect": protocol.Suspect}
	acts := map[string]protocol.Do{
		"crit": protocol.Crit, "do": protocol.Invoke, "outcome": protocol.Outcome, "ejected": protocol.Ejected,
		"rem": protocol.Rem, "copy": protocol.Install,
	}
	id, err := strconv.Atoi(word[:1])
	if err != nil {
		t.Fatal(err)
	}
	verb, data, _ := strings.Cut(word[1:], ":")
	switch kind, do := inputs[verb], acts[verb]; {
	case verb == "crash":
		w.Crash(protocol.ID(id))
	case verb == "calm":
		w.Calm()
	case verb == "back":
		return w.Input(protocol.ID(id), protocol.Input{Kind: protocol.Start, Arg: 2})
	case kind != 0:
		return w.Input(protocol.ID(id), protocol.Input{Kind: kind, Data: data})
	case do != 0:
		return w.Act(protocol.ID(id), protocol.Act{Do: do, Data: data})
	default:
		t.Fatalf("no event %q", word)
	}
	return Fault{}
}

// weak plays a story of n processes, and returns what is found first. Before each event for which
// reload holds, another monitor with its state takes the place of the monitor.
func weak(t *testing.T, n int, story string, reload func(event int) bool) Fault {
	t.Helper()
	w := NewWeak(n)
	for k, word := range strings.Fields(story) {
		if reload(k) {
			w = reloaded(t, n, w)
		}
		if f := weakly(t, w, word); f != (Fault{}) {
			return f
		}
	}
	return w.Unfinished()
}

// reloaded is a monitor of n processes with the state of w.
func reloaded(t *testing.T, n int, w *Weak) *Weak {
	t.Helper()
	state := protocol.AppendState(nil, w)
	fresh := NewWeak(n)
	rest, err := protocol.LoadState(append(slices.Clip(state), 7), fresh)
	if again := protocol.AppendState(nil, fresh); err != nil || len(rest) != 1 || !bytes.Equal(again, state) {
		t.Fatalf("state %x is loaded as %x, %v, %d bytes left", state, again, err, len(rest))
	}
	for cut := range state {
		if _, err := protocol.LoadState(state[:cut], NewWeak(n)); err == nil {
			t.Fatalf("the first %d bytes of %x are taken for a state", cut, state)
		}
	}
	return fresh
}

// Each property has stories that break it, and others, close to them, that do not.
func TestWeak(t *testing.T) {
	for story, want := range weakStories {
		never := func(int) bool { return false }
		always := func(int) bool { return true }
		for _, reload := range []func(int) bool{never, always} {
			if f := weak(t, 2, story, reload); f.Property != want {
				t.Errorf("%s\nfound %+v, want %q", story, f, want)
			}
		}
		for k := range strings.Fields(story) {
			if f := weak(t, 2, story, func(i int) bool { return i == k }); f.Property != want {
				t.Errorf("%s\nreloaded before event %d: found %+v, want %q", story, k, f, want)
			}
		}
	}
}

// in is where most stories begin, and doubt where users are ejected.
const (
	in    = "0try 0crit 0issue:a "
	doubt = "1suspect "
)

var weakStories = map[string]string{
	// A section, and one after it.
	in + "0do:a 0outcome 1do:a 0exit 0rem 1try 1crit 1issue:b 1do:b 0do:b 1outcome": "",
	in + "0do:a 0exit":                                  WellFormed,
	in + "0do:a 0outcome 0outcome":                      WellFormed,
	"0try 0crit 0issue:a 0issue:b":                      WellFormed,
	"0try 0crit 0exit 0rem 0ejected":                    WellFormed,
	doubt + in + "0ejected 0issue:b":                    WellFormed,
	doubt + in + "0ejected 0exit 0rem":                  "",
	doubt + in + "0ejected 1do:a":                       Failed,
	doubt + in + "1do:a 0ejected":                       Failed,
	doubt + in + "0ejected 0exit 0rem 0try 1do:a":       OneCopy, // long ago
	doubt + in + "1do:a 0do:a 0outcome 0ejected":        "",
	in + "1do:a 0outcome":                               Outcome,
	"1do:a":                                             OneCopy,
	in + "0do:a 0do:a":                                  OneCopy,
	in + "0do:a 1do:a 0outcome 0issue:b 1do:b 1do:a":    OneCopy,
	in + "0do:a 0outcome 0issue:b 0do:b 0outcome 1do:b": OneCopy,
	in + "0do:a 0outcome":                               Lagging,
	// Two believe that they are inside: allowed, as long as what they do is in sequence, and
	// who got in later knew what had been done.
	in + "1do:a 1try 1crit 1issue:b 1do:b 0do:a 0outcome 0do:b 1outcome":                "",
	in + "1do:a 0do:a 0outcome 1try 1crit 1issue:b 1do:b 0do:b 1outcome 0issue:c 0do:c": Contiguous,
	in + "1try 1crit 1do:a 1issue:b 1do:b":                                              Fresh,
	in + "1try 1crit 1issue:b 1do:b 0do:b 0do:a":                                        Fresh,
	// A crash with an operation open: it is executed before any section that began later, or never.
	in + "0crash 1do:a": "",
	in + "0crash 1try 1crit 1issue:b 1do:b 1outcome":                                     "",
	in + "0crash 1try 1crit 1issue:b 1do:b 1outcome 1do:a":                               Precedence,
	in + "1try 1crit 0crash 1issue:b 1do:b 1outcome 1do:a":                               Fresh, // it had begun before
	in + "0do:a 1do:a 0outcome 0issue:c 1try 1crit 0crash 1issue:b 1do:b 1outcome 1do:c": Contiguous,
	// A new life has the copy that it installs.
	in + "0do:a 0outcome 1crash 1do:a":          OneCopy,
	in + "0do:a 0outcome 1crash 1copy:1":        "",
	in + "0do:a 0outcome 1crash 1copy:0 1do:a":  "",
	in + "0do:a 0outcome 1crash 1copy:1 1do:a":  OneCopy,
	in + "0do:a 0outcome 1crash 1copy:2":        OneCopy,
	in + "0do:a 0outcome 1crash 1copy:nonsense": OneCopy,
	// A copy does not go back: what the lives before have executed is forgotten with them, and nothing else.
	in + "0do:a 0outcome 1copy:1":                    "",
	in + "0do:a 0outcome 1do:a 1copy:1":              "",
	in + "0do:a 0outcome 1do:a 1copy:0":              OneCopy,
	in + "0do:a 0outcome 1crash 1copy:1 1copy:0":     OneCopy,
	in + "0do:a 0outcome 1do:a 1crash 1copy:0 1do:a": "",
	// Nobody is ejected before somebody was suspected, crashed or came back, nor once that has had its effect.
	in + "0ejected":                                         Groundless,
	in + "0calm 0ejected":                                   Groundless,
	"0try 0crit 0ejected":                                   Groundless,
	in + "1crash 0ejected":                                  "",
	in + "1crash 0calm 0ejected":                            OperationProgress,
	in + "1crash 0calm 1back 0ejected":                      "",
	in + "0suspect 0ejected 0exit 0rem":                     "",
	in + "0suspect 0calm 0suspect 0ejected 0exit 0rem":      "",
	doubt + "0calm " + in + "0ejected":                      OperationProgress,
	doubt + "0calm " + in + "0do:a 1do:a 0outcome 0ejected": OperationProgress,
}

// Histories that differ in what is over have one encoding; those that do not are apart.
func TestWeakState(t *testing.T) {
	encoding := func(story string) string {
		w := NewWeak(2)
		for _, word := range strings.Fields(story) {
			if f := weakly(t, w, word); f != (Fault{}) {
				t.Fatalf("%s: %v", story, f)
			}
		}
		return string(protocol.AppendState(nil, w))
	}
	const out = " 0exit 0rem"
	both := in + "0do:a 1do:a 0outcome"
	for _, alike := range [][2]string{
		{"0try 0crit" + out, "1try 1crit 1exit 1rem"},
		{"0try 0crit" + out + " 0try 0crit" + out, "0try 0crit" + out},
		{doubt + both + out, doubt + both + " 0ejected" + out},
		{doubt + both + out + " 1try 1crit", doubt + both + " 1try 0ejected" + out + " 1crit"},
		{doubt + in + "0ejected" + out + " 0try", doubt + "0try"},
		{doubt, "0suspect " + doubt},
		{doubt, doubt + "0calm " + doubt},
		{"", "0calm 0calm"},
	} {
		if encoding(alike[0]) != encoding(alike[1]) {
			t.Errorf("%q and %q are apart: %x, %x", alike[0], alike[1], encoding(alike[0]), encoding(alike[1]))
		}
	}
	for _, apart := range [][2]string{
		{both, both + " 0issue:b"},
		{both + " 0exit", both},
		{both + " 1try 1crit", "1try 1crit " + both}, // what 1 found
		{both, in + "0do:a 0outcome"},                // what 1 executed
		{both + " 1try 1crit 1issue:c 1do:c", both + " 1try 1crit 1issue:c"},
		{doubt + in + "0ejected", doubt + "0try 0crit 0ejected"}, // an operation that failed
		{"", doubt}, // who may be ejected
		{doubt, doubt + "0calm"},
		{"", doubt + "0calm"},                         // and what it is called
		{in + "0crash", "0try 0crit 0crash"},          // one whose fate is open
		{in + "0crash 1try", "1try " + in + "0crash"}, // which a section followed
		{both + " 0issue:b 0crash", in + "1do:a 0do:a 0outcome" + out + " 0try 0crit 0issue:b 0crash"}, // whose section had acted
	} {
		if encoding(apart[0]) == encoding(apart[1]) {
			t.Errorf("%q and %q have one encoding", apart[0], apart[1])
		}
	}
}

// What everybody has executed is forgotten, and what is executed later is still judged.
func TestWeakForgets(t *testing.T) {
	w := NewWeak(2)
	w.Input(0, protocol.Input{Kind: protocol.Try})
	w.Act(0, protocol.Act{Do: protocol.Crit})
	for k := range 3 * maxNames {
		op := strconv.Itoa(k)
		w.Input(0, protocol.Input{Kind: protocol.Issue, Data: op})
		for id := range protocol.ID(2) {
			if f := w.Act(id, protocol.Act{Do: protocol.Invoke, Data: op}); f != (Fault{}) {
				t.Fatal(f)
			}
		}
		w.Act(0, protocol.Act{Do: protocol.Outcome})
	}
	if len(w.names) > maxNames {
		t.Errorf("%d names are kept, want at most %d", len(w.names), maxNames)
	}
	if f := w.Act(1, protocol.Act{Do: protocol.Invoke, Data: "7"}); f.Property != OneCopy {
		t.Errorf("an operation of long ago is executed again: %+v", f)
	}
}
