package catalog_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/wrap/membership"
)

var write = flag.Bool("write", false, "write the documents that are made of the catalog")

// The index of algorithms is made of the catalog, and each of them has its page.
func TestAlgorithms(t *testing.T) {
	const name = "../../docs/algorithms.md"
	decided, err := readDecided("../../docs/figures/classics-properties.json")
	if err != nil {
		t.Fatal(err)
	}
	want := index(catalog.All, decided)
	if *write {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is not what the catalog says now (%v): go test ./verify/catalog -write", name, err)
	}
	for _, e := range catalog.All {
		i := e.Info()
		if _, err := os.Stat("../../docs/" + page(i.Name, "")); err != nil {
			t.Errorf("%s has no page: %v", i.Name, err)
		}
		for _, c := range i.Claims {
			if c.Formula == "" {
				t.Errorf("%s %q claims a cost without a formula", i.Name, i.Variant)
			}
		}
	}
}

func linked(text, page string) string { return fmt.Sprintf("[%s](%s)", text, page) }

// page is that of a form which has one of its own, else that of its algorithm.
func page(name, variant string) string {
	if strings.HasSuffix(variant, membership.Variant) {
		return "algorithms/recovery.md" // one for all of them
	}
	if strings.HasPrefix(name, "wme-") {
		return "algorithms/wme.md" // one for both
	}
	own := "algorithms/" + name + "-" + variant + ".md"
	if _, err := os.Stat("../../docs/" + own); err == nil {
		return own
	}
	return "algorithms/" + name + ".md"
}

func TestPage(t *testing.T) {
	for form, want := range map[[2]string]string{
		{"centralised", ""}:              "algorithms/centralised.md",
		{"centralised", "denied"}:        "algorithms/centralised.md",
		{"centralised", "successor"}:     "algorithms/centralised-successor.md",
		{"token-ring", "regenerate"}:     "algorithms/token-ring-regenerate.md",
		{"tokengme", "recovery"}:         "algorithms/recovery.md",
		{"tokengme", "several-recovery"}: "algorithms/recovery.md",
		{"wme-2", "paxos"}:               "algorithms/wme.md",
	} {
		if got := page(form[0], form[1]); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
}

// A table is one of markdown.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// share adds a form to the row that has these cells behind its forms: what forms share stands
// there once.
func (t *table) share(i protocol.Info, cells ...string) {
	form := linked(strings.TrimSpace(i.Name+" "+i.Variant), page(i.Name, i.Variant))
	for _, row := range t.rows {
		if slices.Equal(row[1:], cells) {
			row[0] += ", " + form
			return
		}
	}
	t.add(append([]string{form}, cells...)...)
}

func (t table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.head)
	line(slices.Repeat([]string{"---"}, len(t.head)))
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

const optionsIntro = `
## Options

What ` + "`--option NAME=VALUE`" + ` may set. More on those of sigma is in [sigma.md](sigma.md).

`

const intro = `# Algorithms

<!-- Made of the catalog: go test ./verify/catalog -write -->

Here you choose an algorithm for ` + "`poundlock-lab check`, `sim`, `hunt` or `lab`" + `. The page of each has the idea, its
source, pseudo-code, a run, its costs, and what goes wrong and when. The last column has properties that a form is known to lack.

`

const modelIntro = `
## Models

What each form assumes. Users are the members themselves, or clients of theirs. Unless it says FIFO, messages of one channel may
overtake one another. Nothing is lost; package reliable makes such channels of others.

`

const costsIntro = `
## Costs

N is the number of members, and a delay is that of one message. The formulas are those that the tests of each algorithm and
` + "`poundlock-lab lab run classics/costs`" + ` measure; where a source or a textbook prints another one, it stands behind. One at a
time: a user tries after the one before has left, in turn. Under load: all try again at once.

`

const propertiesIntro = `
## Properties

What the checker decided, and with a letter the bounds within which it did: ` + "`poundlock-lab lab run classics/properties`" + `. A
violation leads to its shortest run, which ` + "`poundlock-lab replay`" + ` takes again.

`

// index is the page of all algorithms.
func index(all []catalog.Entry, decided []decision) string {
	forms := table{head: []string{"algorithm", "variant", "family", "what", "has not"}}
	models := table{head: []string{"forms", "users", "channels", "faults", "failure detector"}}
	costs := table{head: []string{
		"forms", "messages to enter", "to enter and exit", "delays to enter",
		"messages under load", "delays from exit to the next entry",
	}}
	options := table{head: []string{"forms", "option", "what", "values"}}
	for _, e := range all {
		i := e.Info()
		forms.add(linked(i.Name, page(i.Name, i.Variant)), i.Variant, string(i.Family), i.Title, missing(i))
		models.share(i, users(i), channels(i), faults(i), detector(i))
		if len(i.Claims) > 0 && i.Users != protocol.Nobody {
			costs.share(i,
				cost(i, protocol.LowLoad, protocol.ToEnter), cost(i, protocol.LowLoad, protocol.Messages),
				cost(i, protocol.LowLoad, protocol.Waiting),
				cost(i, protocol.HighLoad, protocol.Messages), cost(i, protocol.HighLoad, protocol.SyncDelay))
		}
		for _, o := range i.Options {
			values := ""
			if o.Values != nil {
				values = "`" + strings.Join(o.Values, "`, `") + "`"
			}
			options.share(i, "`"+o.Name+"`", strings.ReplaceAll(o.Doc, "|", `\|`), values)
		}
	}
	text := intro + forms.String() + optionsIntro + options.String() + modelIntro + models.String() + costsIntro + costs.String()
	if len(decided) > 0 {
		text += propertiesIntro + properties(decided)
	}
	return text
}

// missing are the properties that an algorithm is known not to have.
func missing(i protocol.Info) string {
	text := strings.Join(i.Lacks, ", ")
	if text != "" && len(i.Refuted) > 0 {
		text += "; "
	}
	if len(i.Refuted) > 0 {
		text += "though published: " + strings.Join(i.Refuted, ", ")
	}
	return text
}

func users(i protocol.Info) string {
	return map[protocol.Users]string{
		protocol.Members: "members", protocol.Clients: "clients", protocol.Nobody: "none: it elects",
	}[i.Users]
}

func channels(i protocol.Info) string {
	switch {
	case i.Registers != nil && len(i.Messages) == 0:
		return "none: shared memory"
	case i.FIFO:
		return "FIFO"
	}
	return "any order"
}

func faults(i protocol.Info) string {
	var list []string
	for _, f := range []struct {
		fault protocol.Faults
		text  string
	}{
		{protocol.Crash, "crash"},
		{protocol.Recovery, "recovery"},
		{protocol.Amnesia, "memory loss"},
		{protocol.Loss, "loss of messages"},
		{protocol.Duplication, "repeated messages"},
	} {
		if i.Tolerates&f.fault != 0 {
			list = append(list, f.text)
		}
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

func detector(i protocol.Info) string {
	text := map[protocol.Detector]string{
		protocol.NoDetector: "none", protocol.PerfectDetector: "perfect",
		protocol.LeaseDetector: "leases", protocol.UnreliableDetector: "unreliable",
	}[i.Detector]
	if i.Elector {
		text += ", and an election"
	}
	return text
}

// cost is the formulas of a measure.
func cost(i protocol.Info, l protocol.Load, m protocol.Measure) string {
	var list []string
	for _, c := range i.Claims {
		if c.Load != l || c.Measure != m {
			continue
		}
		text := c.Formula
		if c.Published != "" {
			text += " (published: " + c.Published + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// A decision is a row of what classics/properties decided.
type decision struct {
	Algorithm, Variant, Under, Property string
	Claimed, Verdict, Bounds            string
	Counterexample                      string // a file beside that of the report
	Steps                               int
}

// readDecided reads the report of classics/properties, and nothing while there is none.
func readDecided(name string) ([]decision, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var report struct {
		Tables []struct {
			Name string
			Rows json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range report.Tables {
		if t.Name == "properties" {
			var list []decision
			if err := json.Unmarshal(t.Rows, &list); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return list, nil
		}
	}
	return nil, fmt.Errorf("%s has no table of properties", name)
}

// properties is the matrix, a row for each form and what it was decided under, and a list
// of the bounds.
func properties(decided []decision) string {
	matrix := table{head: []string{"algorithm", "variant", "under"}}
	var bounds []string
	for _, d := range decided {
		if !slices.Contains(matrix.head, d.Property) {
			matrix.head = append(matrix.head, d.Property)
		}
	}
	for _, d := range decided {
		form := []string{linked(d.Algorithm, page(d.Algorithm, d.Variant)), d.Variant, d.Under}
		at := slices.IndexFunc(matrix.rows, func(row []string) bool { return slices.Equal(row[:len(form)], form) })
		if at < 0 {
			at = len(matrix.rows)
			matrix.add(append(form, make([]string, len(matrix.head)-len(form))...)...)
		}
		matrix.rows[at][slices.Index(matrix.head, d.Property)] = d.text(&bounds)
	}
	text := matrix.String() + "\n"
	for k, b := range bounds {
		text += fmt.Sprintf("- %s: %s\n", letter(k), b)
	}
	return text
}

// text is a cell. Bounds that are new are added to the list.
func (d decision) text(bounds *[]string) string {
	within, _, _ := strings.Cut(d.Bounds, ", exhaustive")
	within, _, _ = strings.Cut(within, ", stopped at")
	k := slices.Index(*bounds, within)
	if k < 0 {
		k = len(*bounds)
		*bounds = append(*bounds, within)
	}
	text := d.Verdict
	if d.Counterexample != "" {
		text = fmt.Sprintf("[%s](figures/%s) in %d steps", d.Verdict, d.Counterexample, d.Steps)
	}
	if d.Claimed != "" && d.Claimed != d.Verdict {
		text += ", published: " + d.Claimed
	}
	return text + " (" + letter(k) + ")"
}

// letter is a, .., z, aa, ab, ..
func letter(k int) string {
	if k < 26 {
		return string(rune('a' + k))
	}
	return letter(k/26-1) + letter(k%26)
}

// What was decided is a matrix, with links to counterexamples and with bounds.
func TestProperties(t *testing.T) {
	name := filepath.Join(t.TempDir(), "properties.json")
	if list, err := readDecided(name); err != nil || list != nil {
		t.Errorf("without a report: %v, %v", list, err)
	}
	report := `{"tables": [{"name": "matrix", "rows": [{}]}, {"name": "properties", "rows": [
		{"algorithm": "a", "variant": "", "under": "FIFO", "property": "exclusion", "claimed": "holds", "verdict": "holds",
		 "bounds": "n=3, exhaustive, chance", "steps": null, "counterexample": null},
		{"algorithm": "a", "variant": "b", "under": "FIFO", "property": "order", "claimed": "holds", "verdict": "violated",
		 "bounds": "n=3, stopped at the first violation", "steps": 13, "counterexample": "x/a-order.txt"},
		{"algorithm": "a", "variant": "b", "under": "FIFO", "property": "exclusion", "claimed": "", "verdict": "holds",
		 "bounds": "n=2, exhaustive", "steps": null, "counterexample": null}]}]}`
	if err := os.WriteFile(name, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readDecided(name)
	if err != nil {
		t.Fatal(err)
	}
	const want = `| algorithm | variant | under | exclusion | order |
| --- | --- | --- | --- | --- |
| [a](algorithms/a.md) |  | FIFO | holds (a) |  |
| [a](algorithms/a.md) | b | FIFO | holds (b) | [violated](figures/x/a-order.txt) in 13 steps, published: holds (a) |

- a: n=3
- b: n=2
`
	if got := properties(list); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := os.WriteFile(name, []byte(`{"tables": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readDecided(name); err == nil {
		t.Error("a report without properties is read")
	}
}
