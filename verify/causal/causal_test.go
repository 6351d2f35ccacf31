package causal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

var options = algotest.Options{
	Exhaustive: []check.Config{{Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}}},
	// A vector for each step that sends, and one for each message that is read.
	Allocations: 2,
	Skip:        map[string]string{"Codec": "Text does not show vectors: see the fuzz targets, and the checker reads back what it sends"},
}

// The wrapper is an algorithm like any other.
func TestConformance(t *testing.T) { algotest.Run(t, causal.Of(ricartagrawala.Algorithm), options) }

func FuzzRead(f *testing.F) { algotest.FuzzRead(f, causal.Of(ricartagrawala.Algorithm), options) }

func FuzzLoadState(f *testing.F) {
	algotest.FuzzLoadState(f, causal.Of(ricartagrawala.Algorithm), options)
}

// explore checks the wrapped algorithm. c says nothing about properties.
func explore[M any](a protocol.Algorithm[M], c check.Config) (check.Verdict, error) {
	c.Properties = []string{causal.Order}
	return check.Run(causal.Of(a), c)
}

func of(entries ...int) check.Config {
	return check.Config{Config: protocol.Config{N: len(entries)}, Entries: entries, MaxMemory: 64 << 20}
}

// As printed the timestamps of Ricart and Agrawala do not follow the order of tries:
// a REPLY after which a process tries again says nothing of the clock of its sender.
// The clock on REPLY mends that.
func TestRicartAgrawala(t *testing.T) {
	for _, c := range []struct {
		a       protocol.Algorithm[ricartagrawala.Message]
		entries []int
		steps   int // of a violation, 0: none
	}{
		{ricartagrawala.Printed, []int{2, 1, 0}, 13},
		{ricartagrawala.Algorithm, []int{2, 1, 0}, 0},
		{ricartagrawala.Algorithm, []int{2, 1, 1}, 0},
		{ricartagrawala.Algorithm, []int{check.Unlimited, check.Unlimited}, 0},
	} {
		v, err := explore(c.a, of(c.entries...))
		want := check.Holds
		if c.steps > 0 {
			want = check.Violated
		}
		if err != nil || v.Verdict != want || len(v.Trace) != c.steps {
			t.Errorf("%q, entries %v: %s after %d steps (%s), error %v; want %s after %d\n%s", c.a.Variant, c.entries,
				v.Verdict, len(v.Trace), v.Reason, err, want, c.steps, strings.Join(v.Trace, "\n"))
		}
	}
}

// A trace is one of the algorithm without the wrapper.
func TestTrace(t *testing.T) {
	v, err := explore(ricartagrawala.Printed, of(2, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	const reason = "order: p1 is inside, and p2 still tries, whose try happened before"
	if last := v.Trace[len(v.Trace)-1]; v.Reason != reason || strings.Join(strings.Fields(last)[:3], " ") != "deliver p3 p1" {
		t.Errorf("%s, after %s", v.Reason, last)
	}
}

// Clients of Sigma know nothing of each other but by their servers.
func TestClients(t *testing.T) {
	c := check.Config{Config: protocol.Config{N: 2}, Clients: 2, MaxMemory: 256 << 20}
	v, err := check.Run(causal.Of(sigma.Literal), c)
	if err != nil || v.Verdict != check.Holds || len(v.Properties) < 6 {
		t.Errorf("%s: %s (%s), error %v", v.Verdict, v.Property, v.Reason, err)
	}
}

// What processes read in shared memory is in no message: nobody would ever be overtaken.
var refuses = mutant.Panics("causal: dijkstra: "+causal.ErrMemory.Error(), func() { causal.Of(dijkstra.Algorithm) })

func TestMemory(t *testing.T) {
	if fault, err := refuses(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}

func TestMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			refuses,
			func() (string, error) {
				v, err := explore(ricartagrawala.Printed, of(2, 1, 0))
				if v.Verdict == check.Violated && len(v.Trace) == 13 {
					return "", err
				}
				return fmt.Sprintf("printed: %s after %d steps", v.Verdict, len(v.Trace)), nil
			},
			mutant.Decided(causal.Of(ricartagrawala.Algorithm), of(check.Unlimited, check.Unlimited)),
			mutant.Decided(causal.Of(ricartagrawala.Algorithm), of(2, 1, 1)),
		},
		Outside: map[string]string{
			"Of":            "passes on what the algorithm says: see TestClients",
			"name":          "for the reader",
			"Process.State": "fields, to write and to read: see the fuzz targets",
			"vector.fields": "the same",
		},
		Survivors: map[string]string{
			"overtaken: try != 0 dropped":        "no algorithm here answers a cancel later than at once",
			"Process.Step: known == nil -> true": "each message has a copy of its own",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("messages carry nothing", "m.known = known", ""),
			mutant.Edit("what arrives is not learned", "p.known = p.known.merge(ev.Msg.known)", ""),
			mutant.Edit("tries are not counted", "p.known.count(p.id)", ""),
			mutant.Edit("a try keeps the vector of the last one", "p.tried = append(p.tried[:0], p.known...)", ""),
			mutant.Edit("counts are not moved in messages", "m.known.fields(c)", "if !c.Moving() {\n\t\t\t\tm.known.fields(c)\n\t\t\t}"),
			mutant.Edit("counts of the try are not moved", "p.tried.fields(c)", "if !c.Moving() {\n\t\tp.tried.fields(c)\n\t}"),
		},
	})
}
