package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/poundlock/poundlock/protocol"
)

// A Judge judges the histories of many locks by names, with one Monitor for each. Its
// memory grows with the number of locks and of the users of each, not with the number
// of events.
type Judge struct {
	// Sources are the names of the sources, to tell users of one name apart in
	// violations. nil: there are no two.
	Sources []string

	bounds   Bounds
	locks    map[string]*lock
	of       map[int][]ref // the users of each source
	events   uint64
	first    int64 // time of the first event
	measures *measures
}

// A lock is one with its users.
type lock struct {
	*Monitor
	numbers map[userName]int
	names   []string // of users, for people
}

type userName struct {
	source int
	name   string
}

type ref struct {
	*lock
	user int
}

// NewJudge returns a judge of what b says, and of what needs no bound.
func NewJudge(b Bounds) *Judge {
	return &Judge{bounds: b, locks: map[string]*lock{}, of: map[int][]ref{}, measures: &measures{first: -1}}
}

// Event adds an event. Their times never decrease. The source tells users of one name
// apart: each event file, or process, has its own.
func (j *Judge) Event(source int, e Event) {
	if j.events == 0 {
		j.first = e.At
	}
	j.events++
	if e.Do == End {
		for _, r := range j.of[source] {
			r.Crash(r.user, e.At)
		}
		return
	}
	l := j.lock(e.Lock)
	user := j.user(l, userName{source, e.User})
	switch e.Do {
	case Try:
		l.Input(user, e.At, protocol.Input{Kind: protocol.Try, Data: e.Group})
	case Crit:
		t := &l.tries[user]
		group := cmp.Or(e.Group, string(t.wanted))
		if t.wanted == "" && l.Section(user) == protocol.InTry {
			t.wanted = protocol.Groups(group)
		}
		until := e.Until
		if until == 0 {
			until = open
		}
		l.act(user, e.At, protocol.Act{Do: protocol.Crit, Arg: uint64(e.Token), Data: group}, until)
	case Renew:
		l.Lease(user, e.At, e.Until)
	case Downgrade:
		l.Input(user, e.At, protocol.NewDowngrade(protocol.Group(e.Group)))
	case Exit:
		l.Input(user, e.At, protocol.Input{Kind: protocol.Exit})
	case Rem:
		l.Act(user, e.At, protocol.Act{Do: protocol.Rem})
	case Ejected:
		l.Act(user, e.At, protocol.Act{Do: protocol.Ejected})
	case Crash:
		l.Crash(user, e.At)
	}
}

func (j *Judge) lock(name string) *lock {
	l := j.locks[name]
	if l == nil {
		l = &lock{Monitor: &Monitor{measures: j.measures}, numbers: map[userName]int{}}
		l.begin(0)
		l.bounds = j.bounds
		l.Name = func(user int) string { return l.names[user] }
		j.locks[name] = l
	}
	return l
}

func (j *Judge) user(l *lock, name userName) int {
	u, known := l.numbers[name]
	if !known {
		u = l.AddUser()
		l.numbers[name] = u
		text := Printable(name.name)
		if name.source < len(j.Sources) {
			text += " of " + Printable(j.Sources[name.source])
		}
		l.names = append(l.names, text)
		j.of[name.source] = append(j.of[name.source], ref{l, u})
	}
	return u
}

// Printable returns a name as it is, or quoted if it holds what a terminal might obey.
func Printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// The verdicts about a property.
const (
	Holds     = "holds"
	Violated  = "violated"
	NotJudged = "not judged"
)

// A Verdict is about one property of all locks.
type Verdict struct {
	Property string `json:"property"`
	Verdict  string `json:"verdict"`
	Count    uint64 `json:"count"`
}

// A Finding is a violation at one lock.
type Finding struct {
	Violation
	Lock string `json:"lock"`
}

// A File is what is known of an event file.
type File struct {
	Name          string `json:"name"`
	By            string `json:"by"`
	Clock         string `json:"clock"`
	UncertaintyNS int64  `json:"uncertainty_ns"`
	Events        uint64 `json:"events"`
	Ended         bool   `json:"ended"`     // it has an End: its process was not killed
	Truncated     bool   `json:"truncated"` // its last line has no end, and was left out
}

// A Report is what a Judge found.
type Report struct {
	Files      []File    `json:"files,omitempty"`
	Accepted   bool      `json:"accepted"` // nothing is violated for certain
	Events     uint64    `json:"events"`
	Locks      int       `json:"locks"`
	Users      int       `json:"users"`    // one that uses two locks counts twice
	Began      int64     `json:"began_ns"` // time of the first event
	Verdicts   []Verdict `json:"verdicts"`
	Uncertain  uint64    `json:"uncertain_overlaps"` // what may be an effect of the clocks
	Violations []Finding `json:"violations"`         // the first ones
	Measures   Measures  `json:"measures"`
}

// Report ends the history and returns what was found.
func (j *Judge) Report() *Report {
	r := &Report{Events: j.events, Locks: len(j.locks), Began: j.first, Violations: []Finding{}}
	counts := map[string]uint64{}
	var fair fairness
	fenced := false
	for _, name := range slices.Sorted(maps.Keys(j.locks)) {
		l := j.locks[name]
		l.Finish()
		for property, k := range l.counts {
			counts[property] += k
		}
		r.Users += len(l.users)
		r.Uncertain += l.uncertain
		fenced = fenced || l.fenced
		fair.add(l.Monitor)
		for _, v := range l.kept {
			r.Violations = append(r.Violations, Finding{v, name})
		}
	}
	slices.SortStableFunc(r.Violations, func(a, b Finding) int { return cmp.Compare(a.At, b.At) })
	r.Violations = r.Violations[:min(keep, len(r.Violations))]
	r.Measures = j.measures.summary(&fair)
	starvation := j.bounds.Wait > 0 || j.bounds.Bypass > 0
	for _, x := range []struct {
		property string
		judged   bool
	}{
		{Exclusion, true},
		{WellFormed, true},
		{Inversion, fenced},
		{Reuse, fenced},
		{Starvation, starvation},
		{Order, j.bounds.Order > 0},
	} {
		v := Verdict{x.property, Holds, counts[x.property]}
		switch {
		case v.Count > 0:
			v.Verdict = Violated
		case !x.judged:
			v.Verdict = NotJudged
		}
		r.Verdicts = append(r.Verdicts, v)
	}
	r.Accepted = !slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Verdict == Violated })
	return r
}

// Err is nil if the history is accepted, and else names the first violation.
func (r *Report) Err() error {
	if r.Accepted {
		return nil
	}
	var all []string
	for _, v := range r.Verdicts {
		if v.Count > 0 {
			all = append(all, fmt.Sprintf("%s %d", v.Property, v.Count))
		}
	}
	first := r.Violations[0]
	return fmt.Errorf("history: violations: %s; the first one: lock %q: %s", strings.Join(all, ", "), first.Lock, first.Text)
}

// Read judges event files as one history.
func Read(files []*Reader, b Bounds) (*Report, error) {
	j := NewJudge(b)
	if len(files) > 1 {
		for _, f := range files {
			j.Sources = append(j.Sources, f.name)
		}
	}
	if err := oneClock(files); err != nil {
		return nil, err
	}
	var sources []Source
	for _, f := range files {
		sources = append(sources, &ending{Reader: f})
	}
	if err := Merge(sources, func(file int, e Event) error { j.Event(file, e); return nil }); err != nil {
		return nil, err
	}
	report := j.Report()
	for _, f := range files {
		report.Files = append(report.Files, File{f.name, f.By, f.Clock, f.Uncertainty, f.events, f.ended, f.Truncated})
	}
	return report, nil
}

// Slack is the most by which the clocks of two of the files differ: none where there is
// one file.
func Slack(files []*Reader) int64 {
	var first, second int64 // the largest ones
	for _, f := range files {
		u := f.Uncertainty
		first, second = max(first, u), max(second, min(first, u))
	}
	if len(files) < 2 {
		return 0
	}
	return first + second
}
