package tokengme

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// A twin is one process twice: as published, and as it runs. Both get the same events.
type twin struct {
	literal *LiteralProcess
	running *Process
	out     protocol.Out[Message] // of the second one
}

// twins is the literal form that panics where the running form f does something else.
func twins(f form) protocol.Algorithm[Message] {
	a := Literal
	a.Variant, a.Options = "twins", f.options()
	a.Invariants, a.Bounds, a.Stale = nil, nil, nil
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &twin{literal: Literal.New(id, c).(*LiteralProcess), running: newProcess(id, c, f)}
	}
	return a
}

func (p *twin) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	p.literal.Step(ev, out)
	p.out.Reset()
	p.running.Step(ev, &p.out)
	want, got := effects(out), effects(&p.out)
	if want != got {
		panic(fmt.Sprintf("as published: %s; as it runs: %s", want, got))
	}
}

func effects(out *protocol.Out[Message]) string {
	var list []string
	for _, e := range out.Effects {
		if e.Do == protocol.Wanted {
			continue // which the paper has not
		}
		list = append(list, fmt.Sprint(e.Act, " ", text(e.Msg)))
	}
	return strings.Join(list, ", ")
}

func (p *twin) State(c *protocol.Codec) {
	p.literal.State(c)
	p.running.State(c)
}

// The running form sends what the published one sends, and lets in whom that lets in, in every
// state of small models and in runs.
func TestLiteral(t *testing.T) {
	if fault, err := differs(form{}, 0); fault != "" || err != nil {
		t.Error(fault, err)
	}
	// Other forms differ, and that shows.
	for selection, f := range []form{{several: true}, {bounded: true}, {}} {
		if fault, err := differs(f, int64(selection)); fault == "" || err != nil {
			t.Errorf("%+v with selection %d is the same as published (%v)", f, selection, err)
		}
	}
}

// differs says where a running form does something else than the literal one, "" if nowhere.
func differs(f form, selection int64) (fault string, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprint("twin by comparison, ", r)
		}
	}()
	a := twins(f)
	options := map[string]int64{"selection": selection}
	if f.bounded {
		options["smax"] = 3
	}
	for _, c := range []check.Config{model(2, twoGroups, 2), model(2, readWrite, 2), model(3, readWrite, 1), model(3, twoGroups, 1)} {
		c.Options, c.NoShift = options, true
		if v, err := check.Run(a, c); err != nil || v.Verdict != check.Holds {
			return fmt.Sprintf("%s by comparison, %s, %q", v.Property, v.Reason, v.Trace), err
		}
	}
	for seed := range uint64(10) {
		r, err := sim.Run(a, sim.Config{
			Config: protocol.Config{N: 8, Options: options}, Groups: 2 + int(seed%3), Entries: []int{40}, Seed: seed,
			Delay: sim.Exponential(time.Millisecond), Hold: sim.Exponential(4 * time.Millisecond),
			Think: sim.Exponential(time.Duration(seed%3) * 3 * time.Millisecond),
		})
		if err != nil || r.ViolationCount > 0 {
			return fmt.Sprint("run by comparison, ", r.Violations), err
		}
	}
	return "", nil
}

// Each guard of the published form removed once, and each action without a part of it.
func TestMutantsLiteral(t *testing.T) {
	of := func(c check.Config) mutant.Check {
		c.NoShift = true
		return mutant.Model(Literal, c)
	}
	step := func(id protocol.ID, events ...protocol.Event[Message]) func() {
		return func() {
			p, out := Literal.New(id, members(2)), protocol.Out[Message]{}
			for _, e := range events {
				p.Step(e, &out)
			}
		}
	}
	message := func(kind uint8) protocol.Event[Message] {
		return protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: Message{Kind: kind, Token: &Token{Fulfilled: make([]uint64, 2)}}}
	}
	mutant.Test(t, mutant.Config{
		Share: 4,
		Checks: []mutant.Check{
			of(model(2, twoGroups, 2)),
			of(model(2, readWrite, 2)),
			of(model(3, twoGroups, 1)),
			of(model(3, readWrite, 1)),
			func() (string, error) { return differs(form{}, 0) },
			storyOf(func() {
				s := begin(Literal, members(2), 0)
				s.want(1, "") // all users want the empty group where there are no others
				s.inside()
				s.Settle()
				s.inside(1)
			}),
			mutant.Panics("tokengme: ", step(0, message(Pass))),
			mutant.Panics("tokengme: ", step(0, message(Ask))),
			mutant.Panics("tokengme: ", step(0, protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Cancel}})),
		},
		Inside:   []string{"LiteralProcess", "Entry.sameType", "selectType"},
		Patience: 20 * time.Second,
		Survivors: map[string]string{
			"LiteralProcess.onRequest: !p.held dropped": "what is no token is neither primary nor safe",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("A1: the number stays", "k := p.requests[p.id].number + 1", "k := max(1, p.requests[p.id].number)"),
			mutant.Edit("A1: the own request is not considered", "p.onRequest(p.id, k, t, out)", "p.requests[p.id] = request{k, t}"),
			mutant.Edit("A2: a secondary token is not counted", "t.Issued++\n\t\tout", "out"),
			mutant.Edit("A2: a secondary token does not fulfil its request", "t.Fulfilled[j] = r.number", ""),
			mutant.Edit("A4: still inside", "p.inCS = false", ""),
			mutant.Edit("A4, A2: the own RELEASE is not counted", "p.onRelease(s, out)", ""),
			mutant.Edit("A6: the number is that of the newest request known", "old.Fulfilled[e.Process] = e.Number",
				"old.Fulfilled[e.Process] = p.requests[e.Process].number"),
			mutant.Edit("A6: the session stays", "old.Session + 1", "old.Session"),
			mutant.Edit("A6: no tokens before", "Old: old.Issued, ", ""),
			mutant.Edit("A6: the batch has not been issued", "uint64(len(batch)-1), rest", "0, rest"),
			mutant.Edit("A6: the queue is lost", "uint64(len(batch)-1), rest", "uint64(len(batch)-1), nil"),
			mutant.Edit("A6: nobody grows older", "e.Age++\n\t\t\trest", "rest"),
			mutant.Edit("selection: ages do not count", "1 + f.Age", "1"),
			mutant.Edit("selection: only ages count", "1 + f.Age", "f.Age"),
		},
	})
}
