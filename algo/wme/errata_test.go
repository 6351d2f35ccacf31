package wme

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// An erratum is a defect of the algorithm as printed, put back into this one. docs/errata-wme.md
// tells about each. Its counterexample is testdata/errata/FILE.txt: the shortest one in a model, or
// the shortest one that begins with a part of it that is told, or all of it is told.
type erratum struct {
	file  string
	what  string
	form  protocol.Algorithm[Message]
	model check.Config // N is 0: there is no counterexample
	told  int          // how many steps; 0: none
	edits []string     // old and new text in turn
}

func (e erratum) name() string { return e.file + ": " + e.what }

// In the order of the page.
var errata = []erratum{
	{"E2", "nobody ends an epoch because of a suspicion", First, model(3, 0, 1, 1, "", 0, 1, 0), 0, []string{
		"if j == p.owner && p.joined && !p.blocked {\n\t\tp.end(p.id, out)\n\t}", "",
		"if p.suspected.Has(id) {\n\t\t\tp.end(p.id, out)\n\t\t}", "",
		"case p.suspected.Has(p.owner):", "case false:",
	}},
	{"E4a", "equal votes count once", First, model(5, 0, 1, 1, "", 0, 1, 0, 0, 0), 8, []string{
		"for _, v := range p.votes {\n\t\tif v.More != nil {\n\t\t\tvotes++",
		"seen := map[string]bool{}\n\tfor _, v := range p.votes {\n\t\tif key := text(v); v.More != nil && !seen[key] {\n" +
			"\t\t\tseen[key] = true\n\t\t\tvotes++",
	}},
	{"E4b", "the vote that makes a process vote is not counted, and who has not proposed hears no decision", First, model(3, 0, 1, 1, "", 0, 1, 0), 0, append([]string{
		"if instance != p.epoch {\n\t\tpanic(\"wme: a decision out of order\")\n\t}",
		"if !p.proposed || instance != p.epoch {\n\t\treturn\n\t}",
	}, triggerIsLost...)},
	{"E4b alone", "the vote that makes a process vote is not counted", First, check.Config{}, 0, triggerIsLost},
	{"E5a", "what is logged counts as executed: a failed operation was executed", First, model(2, 1, 0, 1, "", 0, 1), 0, loggedIsExecuted},
	{"E5b", "what is logged counts as executed: an operation is lost at a copy", First, model(3, 1, 0, 2, "", 1, 0, 0), 9, loggedIsExecuted},
	{"E5c", "what is logged counts as executed: an operation is executed twice", First, model(2, 1, 0, 1, history.OneCopy, 1, 0), 0, loggedIsExecuted},
	{"E6", "acknowledgements count for the last record only, and a record does not commit those before it", First, model(3, 0, 0, 2, "", 1, 0, 0), 0, []string{
		"p.commit(p.top, out)\n\tp.number = m.Number", "p.number = m.Number",
		"p.committed = number\n\tp.logged.Clear()", onlyItself + "p.committed = number\n\tp.logged.Clear()",
		"if number != p.top || p.committed == p.top {", "if number != p.number || number != p.top || p.committed == p.top {",
	}},
	{"E7", "who loses the token while nobody uses it goes on holding it", First, model(2, 1, 0, 1, "", 1, 1), 0, []string{
		"p.epoch, p.owner, p.blocked, p.proposed = epoch, b.Owner, false, false",
		"held := p.owner == p.id && p.phase == idle\n\tp.epoch, p.owner, p.blocked, p.proposed = epoch, b.Owner, false, false\n" +
			"\tif held {\n\t\tp.owner = p.id\n\t}",
	}},
	{"E8", "the request of the new owner stays in the queue, and a grant enters whatever the user does", First, model(2, 1, 0, 1, "", 1, 1), 0, append(keepsRequest, entersAnyway...)},
	{"E8 alone", "the request of the new owner stays in the queue", First, check.Config{}, 0, keepsRequest},
	{"E9", "a grant enters whatever the user does", First, model(5, 1, 0, 1, ""), 14, entersAnyway},
	{"E10", "a request is made again by a message that nobody takes", First, model(2, 1, 0, 1, "", 0, 1), 0, []string{
		"p.request++\n\t\tp.ask(out)", "p.request++",
	}},
	{"E11a", "only the first operation that a decision adds is compared with the open one", First, check.Config{}, 0, []string{
		"p.execute(out)\n\tp.settle(out)",
		"mine := p.operation\n\tif i, _ := p.find(p.executed + 1); i < len(p.log) && p.log[i].Who != p.id {\n\t\tp.operation = 0\n\t}\n" +
			"\tp.execute(out)\n\tp.operation = mine\n\tp.settle(out)",
	}},
	{"E11b", "an operation is sent again only where the decision had some that were missing", First, model(2, 1, 0, 1, "", 1, 0), 0, []string{
		"p.execute(out)\n\tp.settle(out)",
		"before := p.executed\n\tp.execute(out)\n\tif p.phase != issuing || p.owner != p.id || p.executed != before {\n\t\tp.settle(out)\n\t}",
	}},
	{"E12", "exit waits for the end of the phase, and is not withdrawn by an ejection", First, model(2, 1, 0, 1, "", 0, 1), 0, []string{
		"p.leave(out)", "if p.blocked && p.phase == inside {\n\t\t\tp.op = \"exit\"\n\t\t} else {\n\t\t\tp.leave(out)\n\t\t}",
		"switch {\n\tcase p.owner != p.id:",
		"if p.op == \"exit\" && p.phase == inside && p.owner == p.id {\n\t\tp.op = \"\"\n\t\tp.leave(out)\n\t\treturn\n\t}\n\tswitch {\n\tcase p.owner != p.id:",
	}},
	{"E13", "the new owner enters before it has executed what is missing", First, model(2, 1, 0, 1, "", 1, 1), 0, []string{
		"p.execute(out)\n\tp.settle(out)",
		"if p.owner == p.id && p.phase == requesting {\n\t\tp.phase = inside\n\t\tout.Crit(0)\n\t}\n\tp.execute(out)\n\tp.settle(out)",
	}},
	{"E14a", "DOINVOKE counts from the owner and for the last record only", Second, model(3, 0, 0, 2, "", 1, 0, 0), 0, []string{
		"p.commit(p.top, out)\n\tp.number = m.Number", "if p.acks == toAll {\n\t\tp.commit(p.top, out)\n\t}\n\tp.number = m.Number",
		"p.committed = number\n\tp.logged.Clear()", onlyItself + "p.committed = number\n\tp.logged.Clear()",
		"case DoInvoke:\n\t\tp.drop(m.Done)\n\t\tp.commit(m.Number, out)",
		"case DoInvoke:\n\t\tif from == p.owner && m.Number == p.number {\n\t\t\tp.commit(m.Number, out)\n\t\t}",
	}},
	{"E14b", "an operation is committed by its DOINVOKE only, from whoever", Second, model(3, 0, 1, 1, ""), 13, onlyDoInvoke},
	{"E14c", "an operation is committed by its DOINVOKE only, from whoever: the next user enters without it", Second, model(2, 0, 0, 1, "", 1, 1), 0, onlyDoInvoke},
	{"E15", "an outcome is not compared with the open operation", First, rarely(model(3, 2, 0, 2, "", 1, 1, 0)), 21, []string{
		"if r.Who == p.id {\n\t\t\tp.outcome(r.ID, out)\n\t\t}", "p.outcome(p.operation, out)",
		"p.outcome(p.last[p.id], out)", "p.outcome(p.operation, out)",
	}},
	{"E17", "a record that comes before the one before it is dropped", First, model(3, 0, 0, 1, check.Deadlock, 1, 1, 0), 0, []string{
		"case !p.joined, p.isEarly(m):", "case p.joined && m.Epoch == p.epoch && p.isEarly(m):\n\tcase !p.joined, p.isEarly(m):",
	}},
	{"E17b", "a message of a later epoch is dropped", First, model(2, 1, 0, 1, "", 0, 1), 0, []string{
		"case !p.joined, p.isEarly(m):", "case p.joined && m.Epoch > p.epoch:\n\tcase !p.joined, p.isEarly(m):",
	}},
	{"E19", "a request is made again under its old number", First, model(2, 1, 0, 1, "", 0, 1), 0, []string{
		"p.request++\n\t\tp.ask(out)", "p.ask(out)",
	}},
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

const onlyItself = "if i, found := p.find(number); found {\n\t\tp.executed = p.log[i].Before\n\t}\n\t"

var (
	triggerIsLost = []string{
		"p.votes[from] = m\n\tif !p.blocked {\n\t\tp.end(p.owner, out)\n\t}",
		"if !p.blocked {\n\t\tp.end(p.owner, out)\n\t\treturn\n\t}\n\tp.votes[from] = m",
	}
	loggedIsExecuted = []string{
		"i, _ := p.find(d.Done + 1)\n\tp.log = p.log[:i]",
		"p.executed = max(p.executed, min(p.top, d.Done))\n\ti, _ := p.find(d.Done + 1)\n\tp.log = p.log[:i]",
	}
	keepsRequest = []string{"if c.Who == p.owner {\n", "if false {\n"}
	entersAnyway = []string{
		"default: // the user got in by an earlier grant, which an end of the epoch forgot, or gave up\n\t\tp.release(out)",
		"default:\n\t\tp.phase = requesting",
	}
	onlyDoInvoke = []string{
		"p.commit(p.top, out)\n\tp.number = m.Number", "if p.acks == toAll {\n\t\tp.commit(p.top, out)\n\t}\n\tp.number = m.Number",
	}
)

// world is where the counterexample happens.
func (e erratum) world() *storm[Message] {
	c := protocol.Config{N: e.model.N, Options: map[string]int64{}}
	for _, o := range e.form.Options {
		c.Options[o.Name] = o.InCheck(c)
	}
	maps.Copy(c.Options, e.model.Options)
	return storming(e.form, own, c)
}

func (e erratum) path() string { return "testdata/errata/" + e.file + ".txt" }

// search looks for the counterexample, which must be the one of the file.
func (e erratum) search() (string, error) {
	c := e.model
	if c.Entries == nil {
		return "", nil
	}
	text, err := os.ReadFile(e.path())
	if err != nil {
		return "", err
	}
	steps, err := scenario.Names{Members: c.N}.Parse(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	c.Prefix, c.Workers, c.MaxMemory = steps[:min(e.told, len(steps))], 1, 256<<20
	v, err := check.Run(e.form, c)
	if err != nil || v.Verdict != check.Violated {
		return "", err
	}
	found := fmt.Sprintf("# %s, n=%d\n# %s\n%s\n", e.form.Name, c.N, e.what, strings.Join(v.Trace, "\n"))
	if os.Getenv(writeErrata) != "" {
		err = os.WriteFile(e.path(), []byte(found), 0o644)
	} else if found != string(text) {
		err = fmt.Errorf("%s is not what is found: go test -run TestErrata -errata-write writes\n%s", e.path(), found)
	}
	return fmt.Sprintf("%s by check, %d steps, %s", v.Property, len(v.Trace), v.Reason), err
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

// Consensus that is not uniform: who has crashed has heard of another decision than the others.
var notUniform = erratum{file: "E20", what: "consensus is not uniform", form: First, model: model(3, 0, 1, 1, "")}

func TestNotUniform(t *testing.T) {
	if fault, _ := notUniform.world().retell(notUniform); fault != "" {
		t.Errorf("decided once: %s", fault)
	}
	w := notUniform.world()
	w.splits = true
	if fault, _ := w.retell(notUniform); !strings.HasPrefix(fault, history.Failed) {
		t.Errorf("decided twice: found %q, want %s", fault, history.Failed)
	}
}

// writeErrata is set in processes that write the counterexamples that they find.
const writeErrata = "POUNDLOCK_ERRATA_WRITE"

var write = flag.Bool("errata-write", false, "with TestErrata: write the counterexamples that are searched for")

func TestErrata(t *testing.T) {
	if *write {
		t.Setenv(writeErrata, "1")
	}
	search := func() (string, error) {
		for _, e := range errata {
			if e.name() == mutant.Alive() {
				return e.search()
			}
		}
		return "", nil
	}
	replay := func() (string, error) {
		for _, e := range errata {
			if e.model.N == 0 || mutant.Alive() != "" && e.name() != mutant.Alive() {
				continue
			}
			if fault, steps := e.world().retell(e); fault != "" {
				property, _, _ := strings.Cut(fault, ":")
				return fmt.Sprintf("%s by replay, %d steps, %s", property, steps, fault), nil
			}
		}
		return "", nil
	}
	var edits []mutant.Replacement
	for _, e := range errata {
		for i := 0; i < len(e.edits); i += 2 {
			edits = append(edits, mutant.Edit(e.name(), e.edits[i], e.edits[i+1]))
		}
	}
	story := func() (string, error) { return told(nextOwner), nil }
	mutant.Test(t, mutant.Config{
		Table:    "testdata/errata.txt",
		Checks:   []mutant.Check{search, replay, story, stormed(First, 0, 1000), stormed(Second, 0, 1000)},
		Replace:  edits,
		Inside:   []string{"Process.sync"}, // which has no guard
		Patience: 30 * time.Second,
		Survivors: map[string]string{
			erratumOf("E4b alone").name(): "of those that are left one voted first, and none of them made it: it counts them all, and all hear what it has proposed",
			erratumOf("E11a").name():      "who issues has executed everything before, so that the first operation that it lacks is its own",
		},
	})
}

func erratumOf(file string) erratum {
	return errata[slices.IndexFunc(errata, func(e erratum) bool { return e.file == file })]
}

// The page has what the tests have found.
func TestErrataPage(t *testing.T) {
	const dir = "../algo/wme/testdata/errata/"
	page, err := os.ReadFile("../../docs/errata-wme.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/errata.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := notUniform.world()
	w.splits = true
	_, steps := w.retell(notUniform)
	rows := []string{fmt.Sprintf("| [E20](%sE20.txt), %s | %s | 3 | %d | told |", dir, notUniform.what, history.Failed, steps)}
	for _, e := range errata {
		i := strings.Index(string(table), "\n"+e.name()+" ")
		if i < 0 {
			t.Fatalf("the table lacks %q", e.name())
		}
		line, _, _ := strings.Cut(string(table[i+1+len(e.name()):]), "\n")
		words := strings.Fields(line) // property, found by, steps, check
		steps, _ := strconv.Atoi(words[2])
		row, how := fmt.Sprintf("| [%s](%s%s.txt), %s | %s | %d | %d", e.file, dir, e.file, e.what, words[0], e.model.N, steps), "check"
		switch {
		case e.model.N == 0 && words[1] == "-":
			row, how = fmt.Sprintf("| %s, %s | none | |", e.file, e.what), ""
		case e.model.N == 0:
			row, how = fmt.Sprintf("| %s, %s | %s | |", e.file, e.what, words[0]), words[1]
		case e.told >= steps:
			how = "told"
		case e.told > 0:
			how = fmt.Sprintf("check, after %d steps that are told", e.told)
		}
		rows = append(rows, row+" | "+how+" |")
	}
	for _, row := range rows {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/errata-wme.md lacks the row\n%s", row)
		}
	}
}
