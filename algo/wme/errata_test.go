package wme

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// An erratum is a defect of the algorithm as printed: what goes wrong where one correction is not made, or some.
// docs/errata-wme.md tells about each. Its counterexample is testdata/errata/FILE.txt: the shortest one in a model, or
// the shortest one that begins with a part of it that is told, or all of it is told.
type erratum struct {
	file     string
	what     string
	form     protocol.Algorithm[Message] // without the corrections
	property string                      // that falls; "": none does
	model    check.Config                // N is 0: there is no counterexample
	told     int                         // how many steps; 0: none
}

// lacking1 and lacking2 are the forms without some corrections.
func lacking1(some corrections) protocol.Algorithm[Message] {
	return form(toAll, all&^some, "wme-1", "")
}

func lacking2(some corrections) protocol.Algorithm[Message] {
	return form(toOwner, all&^some, "wme-2", "")
}

// In the order of the page.
var errata = []erratum{
	{"E2", "nobody ends an epoch because of a suspicion", lacking1(e2), check.Deadlock, model(3, 0, 1, 1, "", 0, 1, 0), 0},
	{"E4a", "equal votes count once", lacking1(e4a), check.Deadlock, model(5, 0, 1, 1, "", 0, 1, 0, 0, 0), 8},
	{
		"E4b", "the vote that makes a process vote is not counted, and who has not proposed hears no decision", lacking1(e4b | e4c),
		check.Deadlock, model(3, 0, 1, 1, "", 0, 1, 0), 0,
	},
	{"E4b alone", "the vote that makes a process vote is not counted", lacking1(e4b), "", check.Config{}, 0},
	{"E5a", "what is logged counts as executed: a failed operation was executed", lacking1(e5), history.Failed, model(2, 1, 0, 1, "", 0, 1), 0},
	{"E5b", "what is logged counts as executed: an operation is lost at a copy", lacking1(e5), history.OneCopy, model(3, 1, 0, 2, "", 1, 0, 0), 9},
	{"E5c", "what is logged counts as executed: an operation is executed twice", lacking1(e5), history.OneCopy, model(2, 1, 0, 1, history.OneCopy, 1, 0), 0},
	{
		"E6", "acknowledgements count for the last record only, and a record does not commit those before it", lacking1(e6 | e14),
		history.OneCopy, model(3, 0, 0, 2, "", 1, 0, 0), 0,
	},
	{"E7", "who loses the token while nobody uses it goes on holding it", lacking1(e7), history.OneCopy, model(2, 1, 0, 1, "", 1, 1), 0},
	{
		"E8", "the request of the new owner stays in the queue, and a grant enters whatever the user does", lacking1(e8 | e9),
		check.WellFormed, model(2, 1, 0, 1, "", 1, 1), 0,
	},
	{"E8 alone", "the request of the new owner stays in the queue", lacking1(e8), "cost", check.Config{}, 0},
	{"E9", "a grant enters whatever the user does", lacking1(e9), check.WellFormed, model(5, 1, 0, 1, ""), 14},
	{"E10", "a request is made again by a message that nobody takes", lacking1(e10), check.Deadlock, model(2, 1, 0, 1, "", 0, 1), 0},
	{"E11a", "only the first operation that a decision adds is compared with the open one", lacking1(e11a), "", check.Config{}, 0},
	{"E11b", "an operation is sent again only where the decision had some that were missing", lacking1(e11b), check.Deadlock, model(2, 1, 0, 1, "", 1, 0), 0},
	{"E12", "exit waits for the end of the phase, and is not withdrawn by an ejection", lacking1(e12), check.WellFormed, model(2, 1, 0, 1, "", 0, 1), 0},
	{"E13", "the new owner enters before it has executed what is missing", lacking1(e13), history.Fresh, model(2, 1, 0, 1, "", 1, 1), 0},
	{"E14a", "DOINVOKE counts from the owner and for the last record only", lacking2(e6 | e14), history.OneCopy, model(3, 0, 0, 2, "", 1, 0, 0), 0},
	{"E14b", "an operation is committed by its DOINVOKE only, from whoever", lacking2(e14), history.Lagging, model(3, 0, 1, 1, ""), 13},
	{
		"E14c", "an operation is committed by its DOINVOKE only, from whoever: the next user enters without it", lacking2(e14),
		history.Fresh, model(2, 0, 0, 1, "", 1, 1), 0,
	},
	{"E15", "an outcome is not compared with the open operation", lacking1(e15), history.Outcome, rarely(model(3, 2, 0, 2, "", 1, 1, 0)), 21},
	{"E17", "a record that comes before the one before it is dropped", lacking1(e17), check.Deadlock, model(3, 0, 0, 1, check.Deadlock, 1, 1, 0), 0},
	{"E17b", "a message of a later epoch is dropped", lacking1(e17b), check.Deadlock, model(2, 1, 0, 1, "", 0, 1), 0},
	{"E19", "a request is made again under its old number", lacking1(e19), check.Deadlock, model(2, 1, 0, 1, "", 0, 1), 0},
}

// harmless says why nothing falls.
var harmless = map[string]string{
	"E4b alone": "of those that are left one voted first, and none of them made it: it counts them all, and all hear what it has proposed",
	"E11a":      "who issues has executed everything before, so that the first operation that it lacks is its own",
}

func model(n, suspect, crash, operations int, property string, entries ...int) check.Config {
	c := check.Config{Config: protocol.Config{N: n}, Suspect: suspect, Crash: crash, Operations: []int{operations}, Entries: entries}
	if property != "" {
		c.Properties = []string{property}
	}
	return c
}

// rarely is where copies are sent: few operations are kept.
func rarely(c check.Config) check.Config {
	c.Options = map[string]int64{keep.Name: 1, carry.Name: 1, heal.Name: 1}
	return c
}

// world is where the counterexample happens.
func (e erratum) world(form protocol.Algorithm[Message]) *storm[Message] {
	c := protocol.Config{N: e.model.N, Options: map[string]int64{}}
	for _, o := range form.Options {
		c.Options[o.Name] = o.InCheck(c)
	}
	maps.Copy(c.Options, e.model.Options)
	return storming(form, own, c)
}

// corrected is the form as it is.
func (e erratum) corrected() protocol.Algorithm[Message] {
	return forms[slices.IndexFunc(forms, func(a protocol.Algorithm[Message]) bool { return a.Name == e.form.Name })]
}

func (e erratum) path() string { return "testdata/errata/" + e.file + ".txt" }

// search looks for the counterexample, which must be the one of the file. It returns the property that falls, and
// how many steps that takes.
func (e erratum) search() (property string, steps int, err error) {
	text, err := os.ReadFile(e.path())
	if err != nil {
		return "", 0, err
	}
	known, err := scenario.Names{Members: e.model.N}.Parse(bytes.NewReader(text))
	if err != nil {
		return "", 0, err
	}
	c := e.model
	c.Prefix, c.Workers, c.MaxMemory = known[:min(e.told, len(known))], 1, 256<<20
	v, err := check.Run(e.form, c)
	if err != nil || v.Verdict != check.Violated {
		return "", 0, err
	}
	found := fmt.Sprintf("# %s, n=%d\n# %s\n%s\n", e.form.Name, c.N, e.what, strings.Join(v.Trace, "\n"))
	if *write {
		err = os.WriteFile(e.path(), []byte(found), 0o644)
	} else if found != string(text) {
		err = fmt.Errorf("%s is not what is found: go test -run TestErrata -errata-write writes\n%s", e.path(), found)
	}
	return v.Property, len(v.Trace), err
}

// replay takes the steps of the counterexample.
func (e erratum) replay(form protocol.Algorithm[Message]) (property, fault string, steps int) {
	fault, steps = e.world(form).retell(e)
	property, _, _ = strings.Cut(fault, ":")
	return property, fault, steps
}

// retell takes the steps of the counterexample that are possible, and then calms down. It returns
// what is wrong, and how many steps were taken.
func (w *storm[M]) retell(e erratum) (fault string, steps int) {
	text, err := os.ReadFile(e.path())
	if err != nil {
		return err.Error(), 0
	}
	list, err := w.names.Parse(bytes.NewReader(text))
	if err != nil {
		return err.Error(), 0
	}
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	for _, s := range list {
		steps++
		if !w.take(s) {
			steps--
		}
	}
	return w.calm(), steps
}

// Consensus that is not uniform: a process that has crashed has heard of another decision than the others.
var notUniform = erratum{file: "E20", what: "consensus is not uniform", form: First, property: history.Failed, model: model(3, 0, 1, 1, "")}

// split replays the counterexample where an instance is decided twice.
func (e erratum) split() (fault string, steps int) {
	w := e.world(e.form)
	w.splits = true
	return w.retell(e)
}

func TestNotUniform(t *testing.T) {
	if _, fault, _ := notUniform.replay(First); fault != "" {
		t.Errorf("decided once: %s", fault)
	}
	if fault, _ := notUniform.split(); !strings.HasPrefix(fault, history.Failed) {
		t.Errorf("decided twice: found %q, want %s", fault, history.Failed)
	}
}

var write = flag.Bool("errata-write", false, "with TestErrata: write the counterexamples that are searched for")

// Each property falls without the correction that keeps it, and the same run does no harm with it. The page has what was found.
func TestErrata(t *testing.T) {
	page, err := os.ReadFile("../../docs/errata-wme.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(t *testing.T, text string) {
		if !strings.Contains(string(page), text+" |\n") {
			t.Errorf("docs/errata-wme.md lacks the row\n%s", text)
		}
	}
	const dir = "../algo/wme/testdata/errata/"
	_, steps := notUniform.split()
	row(t, fmt.Sprintf("| [E20](%sE20.txt), %s | %s | 3 | %d | told", dir, notUniform.what, notUniform.property, steps))
	for _, e := range errata {
		t.Run(e.file, func(t *testing.T) {
			if e.model.N == 0 {
				fault := first(nextOwner(e.form), stormed(e.form, 0, 1000))
				property, _, _ := strings.Cut(fault, " by ")
				if property != e.property || (property == "") != (harmless[e.file] != "") {
					t.Errorf("found %q, want %s", fault, e.property)
				}
				if property == "" {
					row(t, fmt.Sprintf("| %s, %s | none | | | ", e.file, e.what))
				} else {
					row(t, fmt.Sprintf("| %s, %s | %s | | | story", e.file, e.what, property))
				}
				return
			}
			if _, fault, _ := e.replay(e.corrected()); fault != "" {
				t.Errorf("it goes wrong with the correction, too: %s", fault)
			}
			property, fault, steps := e.replay(e.form)
			how := "told"
			if e.model.Entries != nil {
				var err error
				if property, steps, err = e.search(); err != nil {
					t.Error(err)
				}
				how = "check"
				if e.told > 0 && e.told < steps {
					how = fmt.Sprintf("check, after %d steps that are told", e.told)
				} else if e.told > 0 {
					how = "told"
				}
			}
			if property != e.property {
				t.Errorf("found %q, %s, want %s", property, fault, e.property)
			}
			row(t, fmt.Sprintf("| [%s](%s%s.txt), %s | %s | %d | %d | %s", e.file, dir, e.file, e.what, property, e.model.N, steps, how))
		})
	}
}
