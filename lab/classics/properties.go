package classics

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// Properties has the checker decide what each algorithm satisfies, and compares that with
// what the lecture says.
var Properties = lab.Experiment{
	Name:  propertiesName,
	Title: "what each algorithm satisfies, decided within bounds",
	Plan:  properties,
}

const propertiesName = "classics/properties"

// The properties of the matrix, as columns.
const (
	exclusion    = "exclusion"
	noDeadlock   = "no deadlock"
	noStarvation = "no starvation"
	order        = "order"
)

var columns = []string{exclusion, noDeadlock, noStarvation, order}

// The assumptions about shared memory.
const (
	atomic = "atomic registers"
	safe   = "safe registers"
)

// asked are the checker's names of what a column stands for.
var asked = map[string][]string{
	exclusion:    {check.Exclusion},
	noDeadlock:   {check.Deadlock, check.MakesProgress},
	noStarvation: {check.Starvation},
	order:        {causal.Order},
}

// doorways is the form of the bakery, and its property, that is order for shared memory:
// first come, first served, from the end of one doorway to the beginning of another.
const doorways = "first-come"

// overtaken is what is asked where starvation decides order: where progress holds, others
// enter for ever while one starves.
var overtaken = []string{check.MakesProgress, check.Starvation}

// mostMemory is what one search may need. It is equal everywhere, so that a verdict does
// not depend on the machine.
const mostMemory = 384 << 20

// A model is what is explored of one form.
type model struct {
	entry  catalog.Entry
	judge  catalog.Entry // what the checker explores: entry, or the same with a history
	under  string        // assumptions beside the algorithm's own: channels, memory, faults
	config check.Config
}

const members = 3

func properties(s lab.Scale) lab.Plan {
	p := lab.Plan{
		Sweep: "N", Labels: []string{"algorithm", "variant", "under", "property"},
		Report: reportProperties,
	}
	for _, e := range catalog.All {
		if !inLecture(e.Info()) {
			continue
		}
		for _, m := range models(e) {
			for _, column := range columns {
				if c, ok := m.bounded(column, s); ok {
					p.Configurations = append(p.Configurations, c.configuration(column))
				}
			}
		}
	}
	return p
}

// models are the assumptions under which a form is explored.
func models(e catalog.Entry) []model {
	i := e.Info()
	switch {
	case i.Registers != nil:
		return []model{
			{e, e, atomic, check.Config{Registers: protocol.Atomic}},
			{e, e, safe, check.Config{Registers: protocol.Safe}},
		}
	case i.FIFO:
		return []model{{e, e, "FIFO channels", check.Config{}}}
	}
	return []model{{e, e, "unordered channels", check.Config{}}}
}

// bounded is m with the bounds within which a property is decided, false where the
// question makes no sense.
func (m model) bounded(column string, s lab.Scale) (model, bool) {
	i := m.entry.Info()
	m.config.N = members
	m.config.Entries = entriesOf(i, column, s)
	m.config.Properties = asked[column]
	m.config.MaxMemory, m.config.Workers = mostMemory, 1
	if column == order && i.Registers != nil {
		return m.served()
	}
	return m, true
}

// served is order where memory is shared and no message could tell of a try.
func (m model) served() (model, bool) {
	i := m.entry.Info()
	if first := catalog.Find(i.Name, doorways); first != nil {
		// It records who had left its doorway when another one began.
		m.judge, m.config.Properties = first, []string{doorways}
		return m, true
	}
	if m.under == atomic && slices.Contains(i.Lacks, check.Starvation) && !slices.Contains(i.Lacks, check.MakesProgress) {
		// Who starves while others enter for ever is overtaken after each doorway that it
		// may have, by tries that began after it.
		m.config.Entries, m.config.Properties = usual.more, overtaken
		return m, true
	}
	return m, false
}

// limits are how often the processes enter: in models of the quick scale, in others, and
// where order is decided, on vectors that count tries.
type limits struct{ quick, more, order []int }

// usual are the limits of most forms. What is decided without a limit holds for any number
// of entries.
var usual = limits{[]int{check.Unlimited}, []int{check.Unlimited}, []int{2, 2, 1}}

// limited are those of forms whose states would not end, or be too many.
var limited = map[string]limits{
	"bakery":                     {[]int{1}, []int{2, 1, 1}, []int{1}},
	"bakery-messages":            {[]int{1}, []int{1}, []int{1}},
	"carvalho-roucairol":         {[]int{2, 1, 1}, []int{2}, usual.order},
	"lamport":                    {[]int{1}, []int{2, 1, 1}, []int{2, 1, 0}},
	"maekawa-basic printed-vote": {[]int{1}, []int{2, 1, 1}, usual.order},
	"suzuki-kasami":              {[]int{2, 1, 1}, []int{2}, usual.order},
}

// entriesOf is how often each process enters: as limited for the form, or for all forms
// of the algorithm.
func entriesOf(i protocol.Info, column string, s lab.Scale) []int {
	l := usual
	for _, name := range []string{i.Name, i.Name + " " + i.Variant} {
		if own, ok := limited[name]; ok {
			l = own
		}
	}
	switch {
	case column == order:
		return l.order
	case s == lab.Quick:
		return l.quick
	}
	return l.more
}

func (m model) configuration(column string) lab.Configuration {
	i := m.entry.Info()
	return lab.Configuration{
		Labels: []string{i.Name, i.Variant, m.under, column},
		Points: []int{m.config.N},
		Setup:  fmt.Sprintf("%s max-memory=%d", m.command(), m.config.MaxMemory),
		Try: func(ctx context.Context, _ int, _ uint64) (lab.Sample, error) {
			return m.decide(ctx, column)
		},
	}
}

// command is the command line that asks the same.
func (m model) command() string {
	i, c := m.judge.Info(), m.config
	words := []string{"poundlock-lab check", i.Name}
	if i.Variant != "" {
		words = append(words, "--variant", i.Variant)
	}
	words = append(words, "-n", strconv.Itoa(c.N))
	words = append(words, "--entries", world.Numbers(c.Entries))
	if c.Registers != "" {
		words = append(words, "--registers", string(c.Registers))
	}
	if faults := c.Faults(); len(faults) > 0 {
		words = append(words, "--faults", strings.Join(faults, ","))
	}
	return strings.Join(append(words, "--property", strings.Join(c.Properties, ",")), " ")
}

func (m model) decide(ctx context.Context, column string) (lab.Sample, error) {
	c := m.config
	c.Done = ctx.Done()
	v, err := m.judge.Check(c)
	if err == nil {
		err = ctx.Err() // the verdict would be that of an interruption
	}
	if err == nil && column == order && v.Property == check.MakesProgress && v.Verdict == check.Violated {
		err = fmt.Errorf("progress is lost, which says nothing about order: %s", v.Reason)
	}
	if err != nil {
		return lab.Sample{}, err
	}
	s := lab.Sample{
		Values: map[string]float64{"states": float64(v.States), "steps": float64(len(v.Trace))},
		Texts:  map[string]string{"verdict": string(v.Verdict), "bounds": v.Bounds, "command": m.command()},
	}
	if v.Verdict == check.Violated {
		s.Texts["reason"], s.Texts["file"] = v.Reason, m.file(column)
		s.Files, err = m.counterexample(column, v)
	}
	return s, err
}

// counterexample is the run as a scenario and as a diagram, by the names of the files.
func (m model) counterexample(column string, v check.Verdict) (map[string]string, error) {
	verdict := fmt.Sprintf("%s is violated after %s", v.Property, check.Plural(int64(len(v.Trace)), "step"))
	reason := verdict + ": " + strings.TrimPrefix(v.Reason, v.Property+": ")
	var text, picture strings.Builder
	if err := scenario.WriteRun(&text, []string{m.command(), reason, v.Bounds}, *v.Run); err != nil {
		return nil, err
	}
	if err := diagram.SVG(&picture, *v.Run, m.command(), reason); err != nil {
		return nil, err
	}
	name := m.file(column)
	return map[string]string{name + ".txt": text.String(), name + ".svg": picture.String()}, nil
}

// file is the name of a counterexample without its ending.
func (m model) file(column string) string {
	i := m.entry.Info()
	words := []string{i.Name}
	if i.Variant != "" {
		words = append(words, i.Variant)
	}
	if i.Registers != nil {
		words = append(words, string(m.config.Registers))
	}
	return strings.ReplaceAll(strings.Join(append(words, column), "-"), " ", "-")
}

// known is what the package of an algorithm says of a property in its own model, "" where
// it says nothing.
func known(i protocol.Info, under, column string) check.Result {
	if i.Name == "dijkstra" && under == safe {
		return "" // its model has atomic registers
	}
	missing := slices.Concat(i.Lacks, i.Refuted)
	lacks := func(column string) bool {
		return slices.ContainsFunc(asked[column], func(name string) bool { return slices.Contains(missing, name) })
	}
	switch {
	case lacks(column), column == noStarvation && lacks(noDeadlock):
		return check.Violated
	case column == order && !i.Ordered:
		return ""
	}
	return check.Holds
}

// compare is the verdict on what the checker found, beside what the package of the
// algorithm knows and what the lecture claims; "" says nothing.
func compare(found, known, claimed check.Result) lab.Verdict {
	switch {
	case found == check.Undecided:
		return lab.Undecided
	case found == check.Violated && known == check.Holds:
		return lab.Differs
	case found == check.Violated && claimed == check.Holds:
		return lab.Refuted
	case known == "" && claimed == "":
		return ""
	case found == check.Violated:
		return lab.Violated
	case known == check.Violated || claimed == check.Violated:
		return lab.NotFound
	}
	return lab.AsClaimed
}
