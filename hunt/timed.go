package hunt

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
	"github.com/poundlock/poundlock/sim"
)

// stuck is the property of package sim and of a walker: somebody waits without
// end.
const stuck = "stuck"

// worst orders what a timed run can find, from what is minimised first.
var worst = []struct{ found, property string }{
	{history.Exclusion, check.Exclusion},
	{"panic", check.Model},
	{history.WellFormed, check.WellFormed},
	{history.Inversion, history.Inversion},
	{history.Reuse, history.Reuse},
	{stuck, stuck},
}

// simulate makes a timed run, and returns what it found, nil for nothing.
func simulate[M any](a protocol.Algorithm[M], p *plan) (sim.Result, *problem, error) {
	if !p.clocks {
		a = clockless(a)
	}
	r, err := sim.Run(a, p.config)
	if err != nil {
		return r, nil, fmt.Errorf("hunt: run %d: %w", p.run, err)
	}
	if !p.clocks {
		// Tokens come from clocks: without them there is none that a restarted
		// member cannot have given.
		delete(r.ViolationsOf, history.Inversion)
		delete(r.ViolationsOf, history.Reuse)
	}
	for _, w := range worst {
		if r.ViolationsOf[w.found] == 0 {
			continue
		}
		for _, v := range r.Violations {
			if bytes.Contains([]byte(v), []byte(" "+w.found+": ")) {
				return r, &problem{w.property, v}, nil
			}
		}
		return r, &problem{w.property, w.property}, nil
	}
	return r, nil, nil
}

// clockless returns a for one run in which clocks show 0 and lives are counted
// from 1, as in package check.
func clockless[M any](a protocol.Algorithm[M]) protocol.Algorithm[M] {
	create, lives := a.New, map[protocol.ID][]uint64{}
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[M] {
		return &blind[M]{create(id, c), id, lives}
	}
	if unsettled := a.Unsettled; unsettled != nil {
		var bare []protocol.Process[M]
		a.Unsettled = func(procs []protocol.Process[M]) int {
			bare = bare[:0]
			for _, p := range procs {
				if b, ok := p.(*blind[M]); ok {
					p = b.Process
				}
				bare = append(bare, p)
			}
			return unsettled(bare)
		}
	}
	return a
}

// A blind process sees no clock.
type blind[M any] struct {
	protocol.Process[M]
	id    protocol.ID
	lives map[protocol.ID][]uint64 // of each process: its incarnations, in their order
}

// Step implements protocol.Process.
func (b *blind[M]) Step(ev protocol.Event[M], out *protocol.Out[M]) {
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
func record[M any](a protocol.Algorithm[M], p *plan) (*model[M], []choice, error) {
	var log bytes.Buffer
	c := p.config
	c.Trace = &log
	if _, err := sim.Run(clockless(a), c); err != nil {
		return nil, nil, fmt.Errorf("hunt: run %d: %w", p.run, err)
	}
	names := scenario.Names{Members: p.N, Clients: a.Users == protocol.Clients}
	steps, err := names.Parse(&log)
	if err != nil {
		return nil, nil, fmt.Errorf("hunt: run %d: %w", p.run, err)
	}
	s := p.system
	for _, step := range steps {
		for _, id := range step.Procs {
			s.clients = max(s.clients, int(id)+1-s.N)
		}
	}
	if a.Users != protocol.Clients {
		s.clients = 0
	}
	m := newModel(a, s)
	var run []choice
	for _, step := range steps {
		if m.found != nil {
			break
		}
		if c, possible := m.translate(step, int32(len(run))); possible {
			run = append(run, c)
		}
	}
	return m, run, nil
}

// translate takes a step of a simulation, if the model has it.
func (m *model[M]) translate(step scenario.Step, id int32) (c choice, possible bool) {
	if step.Verb == scenario.Pause || step.Verb == scenario.Partition {
		return c, false // only times
	}
	c = choice{id: id, verb: step.Verb, a: int32(step.Procs[0]), timer: step.Timer}
	if len(step.Procs) > 1 {
		c.b = int32(step.Procs[1])
	}
	if step.Text == "" {
		return c, m.do(&c)
	}
	for k := range m.flight {
		f := &m.flight[k]
		if f.from == c.a && f.to == c.b && m.text(f.msg) == step.Text {
			c.kind, c.sent = f.kind, f.sent
			return c, m.do(&c)
		}
	}
	return c, false
}
