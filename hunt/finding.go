package hunt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
	"github.com/poundlock/poundlock/sim"
)

// A Violation is a run that violates a property, minimised.
type Violation struct {
	Property string `json:"property"`
	Reason   string `json:"reason"` // what is wrong at the end
	Run      int64  `json:"run"`    // its number
	Budget   int    `json:"budget"` // members that could be unsettled at a time
	N        int    `json:"n"`
	Clients  int    `json:"clients"`
	Found    int    `json:"found"` // steps of the run as it was found
	// Trace holds scenario lines: of a run of the checker's model, or where Timed the
	// faults of a simulation at their times.
	Trace []string `json:"trace"`
	Timed bool     `json:"timed"`
	// Replayed says that package check, or with Timed package sim, violates the same
	// property when it is given the trace.
	Replayed bool `json:"replayed"`

	// History is the trace with what each step did, nil where Timed.
	History *scenario.Run `json:"-"`
	// Check and Simulation are what to give to package check or package sim.
	Check      check.Config `json:"-"`
	Simulation sim.Config   `json:"-"`
}

// minimise makes the run of an outcome as short as it can.
func (h *hunter[M]) minimise(beyond int, o *outcome) error {
	h.report(beyond, h.began, true)
	p := h.cfg.draw(h.alg.Info, h.alg.Unsettled != nil, o.run, beyond)
	v := Violation{
		Property: o.found.property, Reason: o.found.reason, Run: o.run, Budget: p.budget, N: p.N, Clients: p.clients,
		Trace: []string{},
	}
	run, sys, property, err := h.steps(&p, o)
	if err != nil {
		return err
	}
	if run == nil {
		err = h.simplify(&v, &p)
	} else {
		v.Property, v.Found = property, len(run)
		h.shorten(&v, sys, run)
	}
	h.result.Violations = append(h.result.Violations, v)
	return err
}

// steps returns the steps of a run as those of a model, and what they violate
// there; nil when it takes clocks or delays to violate anything.
func (h *hunter[M]) steps(p *plan, o *outcome) (run []choice, s system, property string, err error) {
	if !p.timed {
		m := newModel(h.alg, p.system)
		w := newWalker(m, p)
		w.walk()
		return w.run, m.sys, w.found.property, nil
	}
	m, run, err := record(h.alg, p)
	switch {
	case err != nil:
		return nil, s, "", err
	case m.found != nil:
		return run, m.sys, m.found.property, nil
	case o.found.property == stuck:
		x := &reducer[M]{model: m, property: stuck, stopped: h.interrupted}
		if _, good := x.replay(run); good {
			return run, m.sys, stuck, nil
		}
	}
	return nil, s, "", nil
}

// shorten reduces a run of a model to a trace that package check replays.
func (h *hunter[M]) shorten(v *Violation, s system, run []choice) {
	x := &reducer[M]{
		model: newModel(h.alg, s), property: v.Property, usual: h.inCheck(s), stopped: h.interrupted, anySize: h.cfg.N == 0,
		excess: h.result.Beyond,
	}
	if left, good := x.replay(run); good {
		run = x.reduce(slices.Clone(left))
	}
	// Else somebody is stuck only for as long as the calm of this run took.
	if _, good := x.replay(run); good && waits(v.Property) {
		// What seemed to be without end may end soon, now that it is short.
		v.Property, v.Reason = x.model.found.property, x.model.found.reason
		if v.Property == check.Deadlock {
			run = append(run, x.calm...)
		}
	}
	h.render(v, x, run)
}

// interrupted reports whether somebody wants the hunt to end at once.
func (h *hunter[M]) interrupted() bool {
	select {
	case <-h.cfg.Done:
		return true
	default:
		return false
	}
}

// inCheck are the options that package check has where h's Config gives none. What
// only repeats messages is off there, which does not matter to what is wrong in one
// state, but to who waits.
func (h *hunter[M]) inCheck(s system) map[string]int64 {
	all := maps.Clone(h.cfg.Options)
	if all == nil {
		all = map[string]int64{}
	}
	for _, o := range h.alg.Options {
		if _, given := all[o.Name]; !given && o.InCheck != nil {
			all[o.Name] = o.InCheck(s.Config)
		}
	}
	return all
}

// render writes a run as a scenario, and lets package check replay it.
func (h *hunter[M]) render(v *Violation, x *reducer[M], run []choice) {
	m := x.model
	v.N, v.Clients = m.sys.N, m.sys.clients
	c := check.Config{
		Config: m.sys.Config, Clients: m.sys.clients, FIFO: m.sys.fifo, Down: m.sys.down,
		Properties: []string{v.Property},
	}
	if v.Property == stuck {
		c.Properties = []string{check.Deadlock}
	}
	for i := range m.users {
		if !m.isUser(i) {
			continue
		}
		tries := 0
		for _, k := range run {
			if k.verb == scenario.Try && int(k.a) == i {
				tries++
			}
		}
		c.Entries = append(c.Entries, tries)
	}
	budgets := map[scenario.Verb]*int{
		scenario.Amnesia: &c.Amnesia, scenario.Crash: &c.Crash, scenario.Lapse: &c.Suspect,
		scenario.Cancel: &c.Cancel, scenario.Drain: &c.Drain, scenario.Lose: &c.Loss, scenario.Duplicate: &c.Dup,
	}
	for _, k := range run {
		if b := budgets[k.verb]; b != nil {
			*b++
		}
	}
	if c.Amnesia > 0 && h.alg.Unsettled != nil {
		c.Spaced = m.sys.budget
	}
	v.Check = c
	steps := m.script(run)
	names := m.names()
	for _, s := range steps {
		v.Trace = append(v.Trace, names.Format(s))
	}
	if len(run) <= replayable {
		h.replay(v, steps)
	}
}

// replayable is how many steps package check replays in a moment: each of them costs
// as much as all steps that are possible there.
const replayable = 2000

// replay lets package check take the steps.
func (h *hunter[M]) replay(v *Violation, steps []scenario.Step) {
	w, err := check.NewWalk(h.alg, v.Check)
	if err != nil {
		v.Reason = err.Error()
		return
	}
	v.History = &scenario.Run{Processes: w.Processes(), Loop: scenario.NoLoop}
	for _, s := range steps {
		event, err := w.Take(s)
		if err != nil {
			v.Reason = err.Error()
			return
		}
		v.History.Steps = append(v.History.Steps, event)
	}
	v.History.End, v.History.InFlight = w.End()
	if property, err := w.Violation(); property == v.Property {
		v.Replayed, v.Reason = true, err.Error()
	}
}

// script returns the steps of a run as package check writes them.
func (m *model[M]) script(run []choice) []scenario.Step {
	m.reset()
	var steps []scenario.Step
	for _, c := range run {
		s := scenario.Step{Verb: c.verb, Procs: []protocol.ID{protocol.ID(c.a)}, Timer: c.timer}
		switch c.verb {
		case scenario.Deliver, scenario.Lose, scenario.Duplicate:
			s.Text = m.text(m.flight[m.find(&c)].msg)
			s.Procs = append(s.Procs, protocol.ID(c.b))
		case scenario.Suspect, scenario.Restore, scenario.Lapse:
			s.Procs = append(s.Procs, protocol.ID(c.b))
		}
		steps = append(steps, s)
		m.do(&c)
	}
	return steps
}

// simplify makes a simulation whose violation takes time simpler: it leaves out
// kinds of faults, and then users, entries and clocks, as long as the same property
// falls.
func (h *hunter[M]) simplify(v *Violation, p *plan) error {
	violates := func(c sim.Config) (sim.Result, bool, error) {
		q := *p
		q.config = c
		r, found, err := simulate(h.alg, &q)
		return r, found != nil && found.property == v.Property, err
	}
	best := p.config
	last, _, err := violates(best)
	if err != nil {
		return err
	}
	for changed := true; changed && !h.interrupted(); {
		changed = false
		for _, change := range simpler {
			c := best
			change(&c)
			if same(c, best) || c.Clients < 0 || c.Entries[0] < 1 || p.clients > 0 && c.Clients < 1 {
				continue
			}
			r, good, err := violates(c)
			if err != nil {
				continue // a simplification that makes no sense
			}
			if good {
				best, last, changed = c, r, true
			}
		}
	}
	v.Timed, v.Simulation, v.N, v.Clients = true, best, best.N, best.Clients
	v.Found = int(last.Events)
	v.Replayed = p.clocks
	for _, text := range last.Violations {
		if strings.Contains(text, " "+v.Property+": ") {
			v.Reason = text
			break
		}
	}
	return nil
}

// simpler are the ways to make a simulation simpler.
var simpler = []func(*sim.Config){
	func(c *sim.Config) { c.PartitionEvery = 0 },
	func(c *sim.Config) { c.PauseEvery = 0 },
	func(c *sim.Config) { c.CrashEvery = 0 },
	func(c *sim.Config) { c.AmnesiaEvery, c.Spaced = 0, 0 },
	func(c *sim.Config) { c.Down = nil },
	func(c *sim.Config) { c.Loss = 0 },
	func(c *sim.Config) { c.Dup = 0 },
	func(c *sim.Config) { c.ClockOffset = 0 },
	func(c *sim.Config) { c.Lease = sim.DefaultLease },
	func(c *sim.Config) { c.Clients /= 2 },
	func(c *sim.Config) { c.Clients-- },
	func(c *sim.Config) { c.Entries = []int{c.Entries[0] / 2} },
	func(c *sim.Config) { c.Entries = []int{c.Entries[0] - 1} },
	func(c *sim.Config) { c.Delay = sim.DefaultDelay },
	func(c *sim.Config) { c.Hold = sim.DefaultHold },
	func(c *sim.Config) { c.Think = sim.Constant(0) },
}

// same compares what simpler changes.
func same(a, b sim.Config) bool {
	return a.PartitionEvery == b.PartitionEvery && a.PauseEvery == b.PauseEvery && a.CrashEvery == b.CrashEvery &&
		a.AmnesiaEvery == b.AmnesiaEvery && len(a.Down) == len(b.Down) && a.ClockOffset == b.ClockOffset &&
		a.Lease == b.Lease && a.Clients == b.Clients && a.Entries[0] == b.Entries[0] && a.Delay == b.Delay &&
		a.Hold == b.Hold && a.Think == b.Think && a.Loss == b.Loss && a.Dup == b.Dup
}

// Command is the command that says what v is a run of: a check, or a simulation that
// violates the same property.
func (v Violation) Command(i protocol.Info) string {
	words := []string{"poundlock", "check", i.Name}
	add := func(flag string, value any) { words = append(words, flag, fmt.Sprint(value)) }
	c, n, clients := v.Check.Config, v.N, v.Clients
	if v.Timed {
		words[1], c = "sim", v.Simulation.Config
	}
	if i.Variant != "" {
		add("--variant", i.Variant)
	}
	if i.Tolerates&(protocol.Loss|protocol.Duplication) != 0 {
		words = append(words, "--link")
	}
	add("-n", n)
	if clients > 0 {
		add("--clients", clients)
	}
	for _, o := range i.Options {
		value, given := c.Options[o.Name]
		usual := o.Default(c)
		if !v.Timed && o.InCheck != nil {
			usual = o.InCheck(c)
		}
		if given && value != usual {
			add("--option", fmt.Sprintf("%s=%d", o.Name, value))
		}
	}
	if v.Timed {
		v.simulation(add)
		return strings.Join(words, " ")
	}
	v.check(i, add)
	return strings.Join(words, " ")
}

func (v Violation) check(i protocol.Info, add func(string, any)) {
	c := v.Check
	add("--entries", numbers(c.Entries))
	var faults []string
	for _, b := range []struct {
		name   string
		budget int
	}{{"amnesia", c.Amnesia}, {"crash", c.Crash}, {"suspect", c.Suspect}, {"cancel", c.Cancel}, {"drain", c.Drain},
		{"loss", c.Loss}, {"dup", c.Dup},
	} {
		if b.budget > 0 {
			faults = append(faults, fmt.Sprintf("%s=%d", b.name, b.budget))
		}
	}
	if len(faults) > 0 {
		add("--faults", strings.Join(faults, ","))
	}
	if c.Spaced > 0 {
		add("--spaced", c.Spaced)
	}
	down(i, c.N, c.Down, add)
	if c.FIFO && !i.FIFO {
		add("--channels", "fifo")
	}
	add("--property", c.Properties[0])
}

func (v Violation) simulation(add func(string, any)) {
	c := v.Simulation
	add("--entries", numbers(c.Entries))
	add("--seed", c.Seed)
	add("--delay", c.Delay)
	add("--think", c.Think)
	add("--hold", c.Hold)
	for _, d := range []struct {
		flag  string
		value fmt.Stringer
		given bool
	}{
		{"--amnesia-every", c.AmnesiaEvery, c.AmnesiaEvery > 0},
		{"--crash-every", c.CrashEvery, c.CrashEvery > 0},
		{"--pause-every", c.PauseEvery, c.PauseEvery > 0},
		{"--partition-every", c.PartitionEvery, c.PartitionEvery > 0},
		{"--faults-until", c.FaultsUntil, c.AmnesiaEvery+c.CrashEvery+c.PauseEvery+c.PartitionEvery > 0},
		{"--lease", c.Lease, c.Lease != sim.DefaultLease},
		{"--clock-offset", c.ClockOffset, c.ClockOffset > 0},
	} {
		if d.given {
			add(d.flag, d.value)
		}
	}
	if c.Spaced > 0 {
		add("--spaced", c.Spaced)
	}
	for _, p := range []struct {
		flag  string
		value float64
	}{{"--loss", c.Loss}, {"--dup", c.Dup}} {
		if p.value > 0 {
			add(p.flag, p.value)
		}
	}
	down(protocol.Info{Users: protocol.Clients}, c.N, c.Down, add)
}

func down(i protocol.Info, n int, ids []protocol.ID, add func(string, any)) {
	var list []string
	for _, id := range ids {
		list = append(list, scenario.Names{Members: n, Clients: i.Users == protocol.Clients}.Of(id))
	}
	if len(list) > 0 {
		add("--down", strings.Join(list, ","))
	}
}

// numbers writes entries as the flag of that name reads them.
func numbers(list []int) string {
	var words []string
	for _, e := range list {
		words = append(words, strconv.Itoa(e))
	}
	return strings.Join(words, ",")
}
