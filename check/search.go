package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A searcher is one breadth-first search.
type searcher struct {
	*space
	c          Config
	names      []string // of the properties asked for
	exclusion  bool
	kept       bool
	invariants []string
	deadlock   bool
	wellFormed bool

	begin time.Time
	seen  seen
	links links
	now   frontier
	later frontier
	pool  pool
	roots []root

	transitions int64
	cuts        map[int]int64 // by bound
	depth       int           // of the states in now
	current     uint32        // the state being expanded
	ordinal     int           // of the next action
	found       *finding
	stopped     string // why the search ended early, "" if it did not
	reported    time.Time
}

// A finding is a violation.
type finding struct {
	property string
	err      error
	trace    []line
}

func search(s *space, c Config, names []string, t Timers) (Verdict, error) {
	r := &searcher{space: s, c: c, names: names, begin: time.Now(), cuts: map[int]int64{}}
	for _, n := range names {
		switch n {
		case Exclusion:
			r.exclusion = true
		case Kept:
			r.kept = true
		case WellFormed:
			r.wellFormed = true
		case Deadlock:
			r.deadlock = true
		case Model:
		default:
			r.invariants = append(r.invariants, n)
		}
	}
	first, problem := s.initial(c.Entries)
	if problem != nil {
		r.found = &finding{property: problem.property, err: problem.err}
		return r.verdict(false), nil
	}
	s.timers = true // in a prefix they fire
	err := r.prefix(first)
	if s.timers = t == AnyMoment; err != nil {
		return Verdict{}, err
	}
	complete := r.found == nil && r.levels()
	if s.claim != nil {
		return Verdict{}, s.claim
	}
	return r.verdict(complete), nil
}

// levels explores one depth after the other and reports whether nothing is left.
func (r *searcher) levels() bool {
	for r.later.states > 0 {
		r.now, r.later = r.later, r.now
		first := r.links.parent.n - int(r.now.states)
		r.current = uint32(first) - 1
		r.now.each(&r.pool, func(st []uint32) bool {
			r.current++
			r.state(st)
			if r.current%1024 == 0 {
				r.report()
				r.cap()
			}
			return r.found == nil && r.stopped == "" && r.claim == nil
		})
		if r.found != nil || r.stopped != "" || r.claim != nil {
			return false
		}
		r.depth++
	}
	return true
}

// cap ends the search where it must not go on.
func (r *searcher) cap() {
	select {
	case <-r.c.Done:
		r.stopped = "interrupted"
	default:
	}
	switch {
	case r.memory() > r.c.MaxMemory/5*4: // the rest is for what the garbage collector has not taken yet
		r.stopped = fmt.Sprintf("stopped at the memory cap of %d MiB", r.c.MaxMemory>>20)
	case r.links.parent.n > math.MaxUint32-1<<20:
		r.stopped = "stopped because states are numbered with 32 bits"
	}
}

// memory estimates the bytes in use.
func (r *searcher) memory() int64 {
	return r.seen.bytes + r.links.bytes() + r.pool.bytes + r.space.bytes + r.mail.bytes
}

func (r *searcher) report() {
	if r.c.Progress == nil || time.Since(r.reported) < 250*time.Millisecond {
		return
	}
	r.reported = time.Now()
	r.c.Progress(Progress{
		States: int64(r.links.parent.n), Transitions: r.transitions, Depth: r.depth,
		Frontier: r.now.states + r.later.states, Memory: r.memory(), Elapsed: time.Since(r.begin),
	})
}

// state expands st, whose number is r.current.
func (r *searcher) state(st []uint32) {
	stuck := true
	r.ordinal = 0
	r.expand(st, func(v visit) {
		ordinal := r.ordinal
		r.ordinal++
		if r.found != nil {
			return
		}
		r.transitions++
		if v.problem != nil && (v.problem.property != WellFormed || r.wellFormed) {
			r.violated(v.problem.property, v.problem.err, r.trace(r.current, uint16(ordinal)))
			return
		}
		if v.cut {
			stuck = stuck && !v.verb.must()
			r.cuts[v.bound]++
			return
		}
		if stuck && v.verb.must() && !slices.Equal(v.next, st) {
			stuck = false
		}
		if r.seen.add(fingerprint(v.next)) {
			r.links.add(r.current, uint16(ordinal))
			r.later.add(&r.pool, v.next)
			if property, err := r.judge(v.next); err != nil {
				r.violated(property, err, r.trace(uint32(r.links.parent.n-1)))
			}
		}
	})
	if r.kept && stuck && r.found == nil {
		if k := r.m.unsettled(r.look(st)); k > 0 {
			err := fmt.Errorf("kept: nothing that must happen changes the state, and losses are not made up for: %d", k)
			r.violated(Kept, err, r.trace(r.current))
		}
	}
	if r.deadlock && stuck && r.found == nil && (r.timers || !r.armed(st)) && !(r.stay && r.some(st, protocol.InCrit)) {
		if u := r.trying(st); u >= 0 {
			err := fmt.Errorf("deadlock: %s tries, and nothing that must happen changes the state", r.space.names.Of(protocol.ID(u)))
			r.violated(Deadlock, err, r.trace(r.current))
		}
	}
}

func (r *searcher) violated(property string, err error, trace []line) {
	r.found = &finding{property, err, trace}
}

// armed reports whether some timer is set.
func (r *searcher) armed(st []uint32) bool {
	return slices.ContainsFunc(st[1:1+r.total], func(n uint32) bool { return len(r.locals[n].timers) > 0 })
}

// some reports whether some user is in a section.
func (r *searcher) some(st []uint32, section protocol.Section) bool {
	return slices.ContainsFunc(st[1:1+r.total], func(n uint32) bool { return n != 0 && r.locals[n].section == section })
}

// trying returns a user in its trying section, or -1.
func (r *searcher) trying(st []uint32) int {
	for i, n := range st[1 : 1+r.total] {
		if s := r.locals[n].section; n != 0 && (s == protocol.InTry || s == protocol.InExit) {
			return i
		}
	}
	return -1
}

// judge evaluates the properties of states.
func (r *searcher) judge(st []uint32) (string, error) {
	for i, n := range st[1 : 1+r.total] {
		r.users[i] = r.locals[n].section // an absent process is in its remainder section
	}
	if r.exclusion {
		if err := r.users.Exclusion(); err != nil {
			return Exclusion, r.inside()
		}
	}
	if r.kept && slices.Contains(r.users, protocol.InLost) {
		u := slices.Index(r.users, protocol.InLost)
		return Kept, fmt.Errorf("kept: %s lost its critical section", r.space.names.Of(protocol.ID(u)))
	}
	if len(r.invariants) == 0 {
		return "", nil
	}
	g := r.look(st)
	for _, name := range r.invariants {
		if err := r.m.invariant(name, g); err != nil {
			return name, err
		}
	}
	return "", nil
}

// inside says in the names of a scenario what history.Users.Exclusion found.
func (r *searcher) inside() error {
	var names []string
	for i, s := range r.users {
		if s == protocol.InCrit {
			names = append(names, r.space.names.Of(protocol.ID(i)))
		}
	}
	return fmt.Errorf("exclusion: %s are inside", strings.Join(names, " and "))
}

func (r *searcher) verdict(complete bool) Verdict {
	seconds := time.Since(r.begin).Seconds()
	v := Verdict{
		Verdict: Holds, Property: r.names[0], Trace: []string{}, States: int64(r.links.parent.n),
		Transitions: r.transitions, Depth: max(0, r.depth-1), Seconds: seconds,
		StatesPerS: float64(r.links.parent.n) / max(seconds, 1e-9),
	}
	if !complete {
		v.Verdict = Undecided
	}
	for _, n := range r.names {
		v.Properties = append(v.Properties, Property{Property: n, Verdict: v.Verdict, Depth: v.Depth, Trace: []string{}})
	}
	if f := r.found; f != nil {
		v.Verdict, v.Property, v.Reason = Violated, f.property, f.err.Error()
		for _, l := range f.trace {
			v.Trace = append(v.Trace, l.text)
			v.Effects = append(v.Effects, l.effects)
		}
		for i := range v.Properties {
			if p := &v.Properties[i]; p.Property == f.property {
				p.Verdict, p.Depth, p.Trace = Violated, len(v.Trace), v.Trace
			}
		}
	}
	v.Bounds, v.timers = r.bounds(complete), r.timersSet
	return v
}

// bounds says within which limits the verdict was found.
func (r *searcher) bounds(complete bool) string {
	c := r.c
	parts := []string{fmt.Sprintf("n=%d", c.N)}
	if r.space.names.Clients {
		parts = append(parts, plural(int64(c.Clients), "client"))
	}
	for _, o := range r.info.Options {
		if v := r.info.Option(c.Config, o.Name); v != o.Default(c.Config) {
			parts = append(parts, fmt.Sprintf("%s=%d", o.Name, v))
		}
	}
	parts = append(parts, entries(c.Entries))
	if c.FIFO {
		parts = append(parts, "FIFO channels")
	} else {
		parts = append(parts, "unordered channels")
	}
	for _, b := range []struct {
		name   string
		budget int
	}{{"amnesia", c.Amnesia}, {"crash", c.Crash}, {"suspect", c.Suspect}, {"cancel", c.Cancel}, {"drain", c.Drain}} {
		if b.budget > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", b.name, b.budget))
		}
	}
	if c.Spaced > 0 {
		parts = append(parts, fmt.Sprintf("losses only while fewer than %d are unsettled", c.Spaced))
	}
	if c.Stay {
		parts = append(parts, "who is inside stays")
	}
	for _, d := range c.Down {
		parts = append(parts, r.space.names.Of(d)+" down")
	}
	if r.timers {
		parts = append(parts, "an armed timer fires at any moment")
	} else if r.timersSet {
		parts = append(parts, "timers never fire")
	} else {
		parts = append(parts, "no timers")
	}
	if r.shifts {
		parts = append(parts, "counters shifted")
	}
	for k := range r.m.boundsLen() {
		b := r.m.bound(k)
		if n := r.cuts[k]; n > 0 {
			b += fmt.Sprintf(" (%s cut)", plural(n, "step"))
		}
		parts = append(parts, b)
	}
	if len(c.Prefix) > 0 {
		parts = append(parts, fmt.Sprintf("after a prefix of %s", plural(int64(len(c.Prefix)), "step")))
	}
	n := float64(r.links.parent.n)
	switch {
	case complete:
		parts = append(parts, "exhaustive")
	case r.found != nil:
		parts = append(parts, "stopped at the first violation")
	default:
		parts = append(parts, fmt.Sprintf("%s with depth %d completely covered and %s not expanded",
			r.stopped, max(0, r.depth-1), plural(r.now.states+r.later.states, "state")))
	}
	parts = append(parts, fmt.Sprintf("chance that a fingerprint hid a state %.0e", n*n/math.Exp2(65)))
	return strings.Join(parts, ", ")
}

func entries(list []int) string {
	if i := slices.IndexFunc(list, func(e int) bool { return e != list[0] }); i < 0 {
		switch list[0] {
		case Unlimited:
			return "unlimited entries"
		case 1:
			return "1 entry each"
		}
		return fmt.Sprintf("%d entries each", list[0])
	}
	var words []string
	for _, e := range list {
		if e == Unlimited {
			words = append(words, "unlimited")
		} else {
			words = append(words, strconv.Itoa(e))
		}
	}
	return "entries " + strings.Join(words, ",")
}

// plural writes n things, with the digits of n in groups of three.
func plural(n int64, thing string) string {
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
