package hunt

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
)

// Stuck is the property of package sim and of a walker: somebody waits without
// end.
const Stuck = "stuck"

// panics is the property of package sim that package check calls check.Model, as it calls others.
const panics = "panic"

// worst orders what a timed run can find, from what is minimised first.
var worst = []string{
	history.Exclusion, panics, check.Model, history.WellFormed,
	history.OneCopy, history.Failed, history.Outcome, history.Precedence, history.Contiguous, history.Fresh,
	history.Groundless, history.OperationProgress, history.Lagging,
	history.Inversion, history.Reuse, history.Epochs, history.Agreement, Stuck,
}

// simulators make timed runs one after another, each in the memory of the one before.
type simulators struct {
	seeing, blind *sim.Runner[any]
	lives         lives // of a run of blind
}

func newSimulators(a protocol.Algorithm[any]) *simulators {
	all := lives{}
	return &simulators{sim.NewRunner(a), sim.NewRunner(clockless(a, all)), all}
}

// make makes the run of a plan. Its config is c, which may differ from the plan's.
func (s *simulators) make(p *plan, c sim.Config) (r sim.Result, err error) {
	if p.clocks {
		r, err = s.seeing.Run(c)
	} else {
		clear(s.lives)
		r, err = s.blind.Run(c)
	}
	if err != nil {
		err = fmt.Errorf("hunt: run %d: %w", p.run, err)
	}
	return r, err
}

// simulate makes a timed run, and returns what it found, nil for nothing.
func (s *simulators) simulate(p *plan) (sim.Result, *history.Fault, error) {
	r, err := s.make(p, p.config)
	if err != nil {
		return r, nil, err
	}
	if !p.clocks {
		// Tokens come from clocks: without them there is none that a restarted
		// member cannot have given.
		delete(r.ViolationsOf, history.Inversion)
		delete(r.ViolationsOf, history.Reuse)
	}
	for _, w := range worst {
		if r.ViolationsOf[w] == 0 {
			continue
		}
		found := &history.Fault{Property: w, Text: w}
		if w == panics {
			found.Property = check.Model
		}
		if k := slices.IndexFunc(r.Violations, func(v string) bool { return strings.Contains(v, " "+w+": ") }); k >= 0 {
			found.Text = r.Violations[k]
		}
		return r, found, nil
	}
	return r, nil, nil
}

// lives are the incarnations of each process of a run, in their order.
type lives map[protocol.ID][]uint64

// clockless returns a for runs in which clocks show 0 and lives, which are empty before
// each of them, are counted from 1, as in package check.
func clockless(a protocol.Algorithm[any], all lives) protocol.Algorithm[any] {
	create := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[any] {
		return &blind{create(id, c), id, all}
	}
	return a
}

// A blind process sees no clock.
type blind struct {
	protocol.Process[any]
	id    protocol.ID
	lives lives
}

// Unwrap returns the process that sees one.
func (b *blind) Unwrap() any { return b.Process }

// Step implements protocol.Process.
func (b *blind) Step(ev protocol.Event[any], out *protocol.Out[any]) {
	ev.Now = 0
	switch {
	case ev.Arg == 0:
	case ev.Kind == protocol.Start:
		b.lives[b.id] = append(b.lives[b.id], ev.Arg)
		ev.Arg = uint64(len(b.lives[b.id]))
	case ev.Kind == protocol.Restore:
		ev.Arg = 1 + uint64(slices.Index(b.lives[ev.From], ev.Arg))
	}
	b.Process.Step(ev, out)
}

// record makes a timed run without clocks once more, and returns its steps as those
// of a model, with the model after them.
func (s *simulators) record(a protocol.Algorithm[any], p *plan) (*model, []world.Action, error) {
	var log bytes.Buffer
	blind, c := *p, p.config
	blind.clocks, c.Trace = false, &log
	if _, err := s.make(&blind, c); err != nil {
		return nil, nil, err
	}
	names := scenario.Names{Members: p.N, Clients: a.Users == protocol.Clients}
	steps, err := names.Parse(&log)
	if err != nil {
		return nil, nil, fmt.Errorf("hunt: run %d: %w", p.run, err)
	}
	sys := p.system
	for _, step := range steps {
		for _, id := range step.Procs {
			sys.Clients = max(sys.Clients, int(id)+1-sys.N)
		}
	}
	if a.Users != protocol.Clients {
		sys.Clients = 0
	}
	m := newModel(a, sys)
	var run []world.Action
	for _, step := range steps {
		if m.Found != nil {
			break
		}
		if c, possible := m.translate(step, int32(len(run)), p.config.Dup > 0); possible {
			run = append(run, c)
		}
	}
	return m, run, nil
}

// translate takes a step of a simulation, if the model has it. A log does not say what
// channels lost, which is on its way for ever then, or what they repeat.
func (m *model) translate(step scenario.Step, id int32, repeats bool) (c world.Action, possible bool) {
	if step.Verb == scenario.Partition || step.Verb == scenario.Cut {
		return c, false // only times
	}
	c = world.Action{ID: id, Verb: step.Verb, Timer: step.Timer}
	if step.Verb == scenario.Decide {
		for _, b := range m.Votes.Proposals {
			if m.BallotText(b) == step.Text {
				c = m.Decision(b)
				c.ID = id
				return c, m.do(&c)
			}
		}
		return c, false
	}
	c.A = int32(step.Procs[0])
	if len(step.Procs) > 1 {
		c.B = int32(step.Procs[1])
	}
	if c.Accesses() {
		name, found, _ := strings.Cut(step.Text, " ")
		c.Kind = int32(slices.IndexFunc(m.Memory, func(r protocol.Register) bool { return r.Name == name }))
		if found != "" {
			c.Found, _ = strconv.ParseUint(found, 10, 64) // the simulator wrote it
		}
		return c, c.Kind >= 0 && m.do(&c)
	}
	if step.Verb == scenario.Try {
		c.Wants = protocol.Groups(step.Text)
	}
	if step.Text == "" || step.Verb == scenario.Try || step.Verb == scenario.Issue {
		return c, m.do(&c)
	}
	for k := range m.Flight {
		f := &m.Flight[k]
		if f.From == c.A && f.To == c.B && m.Text(f.Msg) == step.Text {
			c.Kind, c.Sent, c.Part, c.Keep = f.Kind, f.Sent, f.Part, repeats
			return c, m.do(&c)
		}
	}
	return c, false
}
