package history

import (
	"strconv"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// weak plays a story, one event a word: 0try, 0crit, 0issue:a, 0do:a, 0outcome, 0ejected, 0exit,
// 0rem, 0crash, 0copy:1. It returns what is found first.
func weak(t *testing.T, n int, story string) Fault {
	t.Helper()
	w := NewWeak(n)
	inputs := map[string]protocol.Kind{"try": protocol.Try, "issue": protocol.Issue, "exit": protocol.Exit}
	acts := map[string]protocol.Do{
		"crit": protocol.Crit, "do": protocol.Invoke, "outcome": protocol.Outcome, "ejected": protocol.Ejected,
		"rem": protocol.Rem, "copy": protocol.Install,
	}
	for _, word := range strings.Fields(story) {
		id, err := strconv.Atoi(word[:1])
		if err != nil {
			t.Fatal(err)
		}
		verb, data, _ := strings.Cut(word[1:], ":")
		var f Fault
		switch kind, do := inputs[verb], acts[verb]; {
		case verb == "crash":
			w.Crash(protocol.ID(id))
		case kind != 0:
			f = w.Input(protocol.ID(id), protocol.Input{Kind: kind, Data: data})
		case do != 0:
			f = w.Act(protocol.ID(id), protocol.Act{Do: do, Data: data})
		default:
			t.Fatalf("no event %q", word)
		}
		if f != (Fault{}) {
			return f
		}
	}
	return w.Unfinished()
}

// Each property has stories that break it, and others, close to them, that do not.
func TestWeak(t *testing.T) {
	const in = "0try 0crit 0issue:a "
	for story, want := range map[string]string{
		// A section, and one after it.
		in + "0do:a 0outcome 1do:a 0exit 0rem 1try 1crit 1issue:b 1do:b 0do:b 1outcome": "",
		in + "0do:a 0exit":                                  WellFormed,
		in + "0do:a 0outcome 0outcome":                      WellFormed,
		"0try 0crit 0issue:a 0issue:b":                      WellFormed,
		"0try 0crit 0exit 0rem 0ejected":                    WellFormed,
		in + "0ejected 0issue:b":                            WellFormed,
		in + "0ejected 0exit 0rem":                          "",
		in + "0ejected 1do:a":                               Failed,
		in + "1do:a 0ejected":                               Failed,
		in + "0ejected 0exit 0rem 0try 1do:a":               OneCopy, // long ago
		in + "1do:a 0do:a 0outcome 0ejected":                "",
		in + "1do:a 0outcome":                               Outcome,
		"1do:a":                                             OneCopy,
		in + "0do:a 0do:a":                                  OneCopy,
		in + "0do:a 1do:a 0outcome 0issue:b 1do:b 1do:a":    OneCopy,
		in + "0do:a 0outcome 0issue:b 0do:b 0outcome 1do:b": OneCopy,
		in + "0do:a 0outcome":                               OneCopy, // at the end 1 has not executed it
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
	} {
		if f := weak(t, 2, story); f.Property != want {
			t.Errorf("%s\nfound %+v, want %q", story, f, want)
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
