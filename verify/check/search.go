package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// A searcher is one breadth-first search.
type searcher struct {
	*worker    // the one that interns, judges in order, and rebuilds traces
	crew       crew
	asked      []string // names of properties
	exclusion  bool
	kept       bool
	lasting    bool // some property of infinite runs was asked for
	invariants []string

	begin time.Time
	store store
	roots []root
	begun []scenario.Event // of Config.Prefix
	jobs  []job
	fresh []job // states to be judged

	// What workers do with these, made once.
	expandJob, judgeJob func(x *worker, i int)

	transitions int64
	cuts        map[int]int64 // by bound
	depth       int           // of the states being expanded
	expanded    int           // states
	found       *finding
	last        []uint32            // the state at the end of the last trace
	stopped     string              // why the search ended early, "" if it did not
	answered    map[string]Property // questions, by name
	reported    time.Time
}

// A finding is a violation.
type finding struct {
	history.Fault
	run    scenario.Run
	states int64 // found up to this one, 0: all
}

// fault is what is wrong, and names the property.
func fault(property, format string, args ...any) history.Fault {
	return history.Fault{Property: property, Text: property + ": " + fmt.Sprintf(format, args...)}
}

func newSearcher(workers crew, names []string) *searcher {
	r := &searcher{worker: workers[0], crew: workers, asked: names, begin: time.Now(), cuts: map[int]int64{}, answered: map[string]Property{}}
	r.lasting = slices.ContainsFunc(names, endless)
	r.store.exact = r.c.Exact || r.lasting
	r.expandJob = func(x *worker, i int) { r.jobs[i].expand(x, &r.store) }
	r.judgeJob = func(x *worker, i int) {
		j := &r.fresh[i]
		j.bad = -1
		for k, st := range j.states {
			if j.fault = r.violates(x, st); j.fault != (history.Fault{}) {
				j.bad = k
				return
			}
		}
	}
	r.jobs = make([]job, 1)
	if len(workers) > 1 {
		r.jobs = make([]job, jobsPerWorker*len(workers))
	}
	r.exclusion, r.kept = slices.Contains(names, Exclusion), slices.Contains(names, Kept)
	for _, i := range r.m.a.Invariants {
		if slices.Contains(names, i.Name) {
			r.invariants = append(r.invariants, i.Name)
		}
	}
	return r
}

func search(all crew, names []string, t Timers) (Verdict, error) {
	r := newSearcher(all, names)
	if err := r.start(t); err != nil {
		return Verdict{}, err
	}
	complete := r.found == nil && r.levels()
	if r.claim != nil {
		return Verdict{}, r.claim
	}
	if r.found == nil && r.answers() && !r.interrupted() {
		r.answer(complete)
	}
	return r.verdict(complete), nil
}

// start finds the states from which the search starts. It may find a violation on
// the way.
func (r *searcher) start(t Timers) error {
	r.raw = true
	first, problem := r.initial(r.c.Entries)
	if problem != (history.Fault{}) {
		r.violated(problem, r.run(nil, nil))
		return nil
	}
	r.timers = true // in a prefix they fire
	err := r.prefix(first)
	r.raw, r.timers = false, t != NeverFire
	return err
}

// levels explores one depth after the other and reports whether nothing is left.
func (r *searcher) levels() bool {
	var from place
	for end := r.store.len(); r.expanded < end; end = r.store.len() {
		for r.expanded < end {
			from = r.batch(from, end)
			if r.found != nil || r.claim != nil {
				return false
			}
			if r.report(); r.cap() {
				return false
			}
		}
		r.depth++
	}
	return true
}

// batch expands the next states, up to the one with the number end, and returns the
// place behind them.
func (r *searcher) batch(from place, end int) place {
	jobs, from := r.store.load(r.jobs, from, r.expanded, end)
	known, behind, transitions := r.store.len(), r.store.vectors.end(), r.transitions
	r.crew.share(len(jobs), r.expandJob)
	for i := range jobs {
		if r.merge(&jobs[i]); r.found != nil || r.claim != nil {
			break
		}
	}
	if bad := r.judge(known, behind); bad >= 0 {
		r.forget(jobs, r.transitions-transitions, bad-known)
	}
	if !r.store.exact {
		r.store.vectors.release(from)
	}
	return from
}

// merge takes over what a job found, in order.
func (r *searcher) merge(j *job) {
	i := 0
	for k, st := range j.states {
		stuck := true
		begin, parent := i, j.first+uint32(k)
		for entered := false; i < j.ends[k]; i++ {
			rec := &j.records[i]
			if !entered && (rec.doubt || !rec.known) {
				r.enter(st)
				entered = true
			}
			if rec.doubt {
				r.verify(&rec.action)
			}
			if !rec.known {
				rec.outcome, rec.known = r.reach(rec.action), true
				j.keep(rec, r.next)
			}
			ordinal := uint16(i - begin)
			r.transitions++
			if n := r.wrong(rec.outcome); n != 0 {
				if f := r.serious(r.problem(n)); f != (history.Fault{}) {
					r.violated(f, r.trace(parent, ordinal))
					return
				}
			}
			if b := r.beyond(rec.outcome); b >= 0 {
				stuck = stuck && !rec.verb.must()
				r.cuts[b]++
				continue
			}
			if stuck && rec.verb.must() && !rec.still &&
				(r.sym != nil || rec.print != j.prints[k] || rec.verb.accesses() || r.store.exact && !slices.Equal(j.next(rec), st)) {
				stuck = false
			}
			if !rec.seen {
				_, rec.isNew = r.store.add(j.next(rec), rec.print, parent, ordinal)
			}
		}
		if r.expanded++; r.expanded%64 == 0 {
			r.spotCheck(st, r.expanded/64)
		}
		if stuck {
			if f := r.dead(st); f != (history.Fault{}) {
				r.violated(f, r.trace(parent))
			}
		}
		if r.found != nil {
			return
		}
	}
}

// What was found when a claim of an algorithm is false.
const (
	onlyMoved   = "with counters moved only, "
	onlyRenamed = "its members are not interchangeable: with some of them exchanged only, "
)

// spotCheck verifies on a state what the algorithm claims of its invariants and of its losses: that they
// do not tell members apart, and depend on distances of counters only.
func (r *searcher) spotCheck(st []uint32, n int) {
	if len(r.invariants) == 0 && !r.kept && r.c.Spaced == 0 {
		return
	}
	unsettled := r.unsettled(st)
	judge := func(changed []uint32, claim string) {
		if r.unsettled(changed) != unsettled {
			r.deny(claim+"%s", "other losses are unsettled")
		}
		r.look(changed)
		for _, name := range r.invariants {
			if f := r.m.invariant(name); f != (history.Fault{}) {
				r.deny(claim+"%s is violated: %s", name, f.Text)
			}
		}
	}
	if r.sym != nil {
		r.rename(st, r.swap(n))
		judge(r.sym.trial, onlyRenamed)
	}
	if r.shifts {
		r.m.lift(true)
		judge(st, onlyMoved)
		r.m.lift(false)
	}
}

// judge evaluates the properties of the states from a number on, the first of which
// stands at p. It returns the number of the first one that violates some, or -1.
func (r *searcher) judge(from int, p place) int {
	end := r.store.len()
	if more := (end-from+jobStates-1)/jobStates - len(r.fresh); more > 0 {
		r.fresh = append(r.fresh, make([]job, more)...)
	}
	jobs, _ := r.store.load(r.fresh, p, from, end)
	r.crew.share(len(jobs), r.judgeJob)
	for i := range jobs {
		if j := &jobs[i]; j.bad >= 0 {
			number := int(j.first) + j.bad
			r.violated(j.fault, r.trace(uint32(number)))
			if r.sym != nil || r.shifts {
				r.realFinding()
			}
			r.found.states = int64(number) + 1
			return number
		}
	}
	return -1
}

// forget takes back what was counted, in the first records of the jobs, behind the
// new state that was the k-th one, from 0.
func (r *searcher) forget(jobs []job, counted int64, k int) {
	for i := range jobs {
		for n := range jobs[i].records {
			if counted--; counted < 0 {
				return
			}
			rec := &jobs[i].records[n]
			if k < 0 {
				r.transitions--
				if b := r.beyond(rec.outcome); b >= 0 {
					r.cuts[b]--
				}
			}
			if rec.isNew {
				k--
			}
		}
	}
}

// asks reports whether a property was asked for.
func (r *searcher) asks(property string) bool { return slices.Contains(r.asked, property) }

// serious is what is wrong with a step, if it is one of the properties asked for: else the run goes
// on.
func (r *searcher) serious(f history.Fault) history.Fault {
	if f.Property != "" && f.Property != Model && !r.asks(f.Property) {
		return history.Fault{}
	}
	return f
}

// dead judges a state that nothing which must happen can change.
func (r *searcher) dead(st []uint32) (f history.Fault) {
	if r.kept {
		if k := r.unsettled(st); k > 0 {
			return fault(Kept, "nothing that must happen changes the state, and losses are not made up for: %d", k)
		}
	}
	if !r.timers && r.armed(st) {
		return f
	}
	if r.asks(Agreement) {
		if err := r.leaders(st).Agreement(r.rules.Names.Of); err != nil {
			return history.Fault{Property: Agreement, Text: err.Error()}
		}
	}
	if r.asks(history.Lagging) && r.enough(st) {
		if f = r.worker.judge(st[r.shared.at[judgeWord]]).Unfinished(); f != (history.Fault{}) {
			f.Text += ", and nothing that must happen changes the state"
			f = r.named(f)
		}
	}
	if f == (history.Fault{}) && r.asks(Deadlock) && !(r.c.Stay && r.some(st, protocol.InCrit)) && r.enough(st) && r.trying(st) {
		f = history.Fault{Property: Deadlock, Text: r.waiting(st)}
	}
	return f
}

func (r *searcher) violated(f history.Fault, run scenario.Run) { r.found = &finding{f, run, 0} }

// cap reports whether the search must not go on, and why.
func (r *searcher) cap() bool {
	switch {
	case r.interrupted():
		r.stopped = "interrupted"
	case r.memory() > r.c.MaxMemory/5*4: // the rest is for what the garbage collector has not taken yet
		r.stopped = fmt.Sprintf("stopped at the memory cap of %d MiB", r.c.MaxMemory>>20)
	case r.store.len() > math.MaxUint32-1<<20:
		r.stopped = "stopped because states are numbered with 32 bits"
	}
	return r.stopped != ""
}

func (r *searcher) interrupted() bool {
	select {
	case <-r.c.Done:
		return true
	default:
		return false
	}
}

// memory estimates the bytes in use, and those that the answers will need.
func (r *searcher) memory() int64 {
	const fixed = 256 << 10 // headers of tables, and what a worker has
	b := fixed + r.store.memory() + r.space.memory() + r.answerBytes()
	for _, x := range r.crew {
		b += x.memory()
	}
	for i := range r.jobs {
		b += r.jobs[i].memory()
	}
	for i := range r.fresh {
		b += r.fresh[i].memory()
	}
	return b
}

func (r *searcher) report() {
	if r.c.Progress == nil || time.Since(r.reported) < 250*time.Millisecond {
		return
	}
	r.reported = time.Now()
	r.c.Progress(Progress{
		States: int64(r.store.len()), Transitions: r.transitions, Depth: r.depth,
		Frontier: int64(r.store.len() - r.expanded), Memory: r.memory(), Elapsed: time.Since(r.begin),
	})
}

// armed reports whether some timer is set.
func (r *searcher) armed(st []uint32) bool {
	return slices.ContainsFunc(st[1:1+r.rules.Total], func(n uint32) bool { return r.summaries[n].timers })
}

// some reports whether some user is in a section.
func (r *searcher) some(st []uint32, section protocol.Section) bool {
	return slices.ContainsFunc(st[1:1+r.rules.Total], func(n uint32) bool { return r.summaries[n].section == section })
}

// trying reports whether some user waits.
func (r *searcher) trying(st []uint32) bool {
	return slices.ContainsFunc(st[1:1+r.rules.Total], func(n uint32) bool { return waits(r.summaries[n].section) })
}

// halted reports whether somebody waits, and nobody is inside.
func (r *searcher) halted(st []uint32) bool {
	return r.trying(st) && !r.some(st, protocol.InCrit) && !r.some(st, protocol.InLost)
}

// waiting says who waits in a deadlock.
func (r *searcher) waiting(st []uint32) string {
	for i, n := range st[1 : 1+r.rules.Total] {
		r.users[i] = r.summaries[n].section
	}
	return r.users.Deadlock(r.rules.Names.Of, r.rules.Info, len(st)-r.flight)
}

// violates is how st violates a property of states.
func (r *searcher) violates(x *worker, st []uint32) history.Fault {
	within := 0
	for i, n := range st[1 : 1+x.rules.Total] {
		x.users[i] = x.summaries[n].section // an absent process is in its remainder section
		if x.summaries[n].unaware {
			x.users[i] = protocol.InRem
		}
		if x.users[i] == protocol.InCrit {
			within++
		}
	}
	if r.exclusion && within > 1 {
		if text := x.users.Exclusion(x.rules.Names.Of, x.held(st)); text != "" {
			return history.Fault{Property: Exclusion, Text: text}
		}
	}
	if r.kept && slices.Contains(x.users, protocol.InLost) {
		u := slices.Index(x.users, protocol.InLost)
		return fault(Kept, "%s lost its critical section", x.rules.Names.Of(protocol.ID(u)))
	}
	if x.rules.Elects() {
		if f := r.misled(x, st); f != (history.Fault{}) {
			return f
		}
	}
	if len(r.invariants) == 0 {
		return history.Fault{}
	}
	x.look(st)
	for _, name := range r.invariants {
		if f := x.m.invariant(name); f != (history.Fault{}) {
			return f
		}
	}
	return history.Fault{}
}

func (r *searcher) verdict(complete bool) Verdict {
	v := r.sum(complete, r.states())
	v.Bounds, v.timers, v.clean = r.bounds(complete), r.timersSet, complete && r.found == nil
	return v
}

// sum is the verdict without its bounds.
func (r *searcher) sum(complete bool, states int64) Verdict {
	seconds := time.Since(r.begin).Seconds()
	v := Verdict{
		Verdict: Holds, Property: r.asked[0], Trace: []string{}, Loop: NoLoop, States: states,
		Transitions: r.transitions, Depth: max(0, r.depth-1), Seconds: seconds,
		StatesPerS: float64(states) / max(seconds, 1e-9),
	}
	if !complete {
		v.Verdict = Undecided
	}
	passed := v.Verdict
	for _, n := range r.asked {
		p, answered := r.answered[n]
		if !answered && endless(n) {
			p = r.property(n, Undecided)
		} else if !answered {
			p = r.property(n, passed)
		}
		if v.Properties = append(v.Properties, p); p.Verdict == Undecided && v.Verdict == Holds {
			v.Verdict, v.Property = Undecided, n
		}
	}
	if f := r.found; f != nil {
		v.Verdict, v.Property, v.Reason, v.Loop = Violated, f.Property, f.Text, Mark(f.run.Loop)
		v.Run, v.Trace = &f.run, f.lines()
		for i := range v.Properties {
			if p := &v.Properties[i]; p.Property == f.Property {
				p.violatedBy(f)
			}
		}
	}
	return v
}

// states is how many were found, up to the one that violates a property.
func (r *searcher) states() int64 {
	if r.found != nil && r.found.states > 0 {
		return r.found.states
	}
	return int64(r.store.len())
}

// property is the result for a property without a violation.
func (r *searcher) property(name string, verdict Result) Property {
	return Property{Property: name, Verdict: verdict, Depth: max(0, r.depth-1), Trace: []string{}, Loop: NoLoop}
}

func (p *Property) violatedBy(f *finding) {
	p.Verdict, p.Depth, p.Trace, p.Loop = Violated, len(f.run.Steps), f.lines(), Mark(f.run.Loop)
}

// lines are those of the run, as a scenario.
func (f *finding) lines() []string {
	lines := make([]string, len(f.run.Steps))
	for i, e := range f.run.Steps {
		lines[i] = e.Line
	}
	return lines
}

// bounds says within which limits the verdict was found.
func (r *searcher) bounds(complete bool) string {
	parts := r.model()
	switch {
	case complete:
		parts = append(parts, "exhaustive")
		if r.answers() && r.interrupted() {
			parts = append(parts, "interrupted when infinite runs were looked at")
		}
	case r.found != nil && r.stopped == "":
		parts = append(parts, "stopped at the first violation")
	default:
		parts = append(parts, fmt.Sprintf("%s with depth %d completely covered and %s not expanded",
			r.stopped, max(0, r.depth-1), Plural(int64(r.store.len()-r.expanded), "state")))
	}
	if r.store.exact {
		parts = append(parts, "chance that a fingerprint hid a state 0: whole states were compared")
	} else {
		n := float64(r.states())
		parts = append(parts, fmt.Sprintf("chance that a fingerprint hid a state %.0e", n*n/math.Exp2(65)))
	}
	return strings.Join(parts, ", ")
}

// model says what is explored.
func (r *searcher) model() []string {
	c := r.c
	parts := []string{fmt.Sprintf("n=%d", c.N)}
	if r.rules.Names.Clients {
		parts = append(parts, Plural(int64(c.Clients), "client"))
	}
	for _, o := range r.rules.Info.Options {
		if v := r.rules.Info.Option(c.Config, o.Name); v != o.Default(c.Config) {
			parts = append(parts, o.Name+"="+o.Text(v))
		}
	}
	if len(c.Entries) > 0 {
		parts = append(parts, entries(c.Entries))
	}
	if r.rules.Info.Weak {
		parts = append(parts, operations(c.Operations))
	}
	if len(c.Wants) > 0 {
		parts = append(parts, r.wishes())
	}
	switch {
	case r.rules.Memory != nil:
		parts = append(parts, string(c.Registers)+" registers")
	case c.FIFO:
		parts = append(parts, "FIFO channels")
	default:
		parts = append(parts, "unordered channels")
	}
	for _, kind := range r.messages.lasting {
		parts = append(parts, kind+" sent again for ever")
	}
	parts = append(parts, c.Faults()...)
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.rules.Info.Consensus && r.tracks, "all decisions but the first %d while the failure detector is accurate", c.Decisions)
	add(!r.rules.Info.Enough(c.N-c.Crash, c.N), "who tries may wait while no majority of the members is up")
	add(c.Spaced > 0, "losses only while fewer than %d are unsettled", c.Spaced)
	add(c.Stay, "who is inside stays")
	add(c.UntilTold, "who shares leaves when it is told that somebody waits")
	add(c.Downgrade, "who is inside alone may share")
	for _, d := range c.Down {
		add(true, "%s down", r.rules.Names.Of(d))
	}
	add(r.timers && r.bounded,
		"an armed timer fires only when no message or news of its process is on its way: time-outs exceed a round trip")
	add(r.timers && !r.bounded, "an armed timer fires at any moment")
	add(!r.timers && r.timersSet, "timers never fire")
	add(!r.timers && !r.timersSet, "no timers")
	add(r.shifts, "counters shifted")
	parts = append(parts, r.reduction.notes...)
	for k, limit := range r.m.a.Bounds {
		b := fmt.Sprintf("%s <= %d", limit.Name, limit.Max)
		if n := r.cuts[k]; n > 0 {
			b += fmt.Sprintf(" (%s cut)", Plural(n, "step"))
		}
		parts = append(parts, b)
	}
	add(len(c.Prefix) > 0, "after a prefix of %s", Plural(int64(len(c.Prefix)), "step"))
	return parts
}

func entries(list []int) string {
	switch {
	case !equals(list):
		return "entries " + world.Numbers(list)
	case list[0] == Unlimited:
		return "unlimited entries"
	case list[0] == 1:
		return "1 entry each"
	}
	return fmt.Sprintf("%d entries each", list[0])
}

func operations(list []int) string {
	if equals(list) {
		return Plural(int64(list[0]), "operation") + " in each section"
	}
	return "operations " + world.Numbers(list) + " in each section"
}

// equals reports whether all numbers of a list are equal.
func equals(list []int) bool {
	return !slices.ContainsFunc(list, func(k int) bool { return k != list[0] })
}

// Plural writes n things, with the digits of n in groups of three.
func Plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Group(n) + " " + thing
}

// Group writes n with a space between groups of three digits.
func Group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
