package tokenring

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/withleader"
)

var (
	regenerate = withleader.With(Regenerating, ringelection.Algorithm)
	noEpoch    = withleader.With(NoEpoch, ringelection.Algorithm)
)

func crashing(n, crashes int, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Crash: crashes, Entries: entries, MaxMemory: 512 << 20, Properties: []string{"all"},
	}
}

// Exclusion, progress and starvation freedom hold, whoever crashes, with or without the
// token, and whichever election names who makes it anew.
func TestRegenerating(t *testing.T) {
	algotest.Holds(t, regenerate, []check.Config{crashing(3, 1), crashing(3, 2)},
		[]check.Config{crashing(3, 2, 2), crashing(4, 1)})
	algotest.Holds(t, withleader.With(Regenerating, bully.Algorithm), []check.Config{crashing(3, 2)}, nil)
}

// Without numbers a token that was only late is taken for the new one. The shortest way to
// two tokens: the token leaves p1, p1 crashes, and p3 makes a new one before the old one
// reaches p2.
func TestNoEpoch(t *testing.T) {
	c := crashing(3, 1)
	c.Properties = []string{check.Exclusion}
	v, err := check.Run(noEpoch, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"try p2", "try p3", "deliver p3 p1 TOKEN(0.0)", "crash p1", "suspect p3 p1", "deliver p3 p2 ASK(5.1)",
		"deliver p1 p2 TOKEN(0.0)", "deliver p2 p3 HAVENOT(5.1)",
	}
	if v.Verdict != check.Violated || v.Property != check.Exclusion || !slices.Equal(v.Trace, want) {
		t.Errorf("%s is %s by %q, want it violated by %q", v.Property, v.Verdict, v.Trace, want)
	}
	if v, err = check.Run(regenerate, c); err != nil || v.Verdict != check.Holds {
		t.Errorf("with numbers %s is %s, %v", v.Property, v.Verdict, err)
	}
}

// keepers are processes to whom a story says who leads.
func keepers(n int) *algotest.System[Numbered] {
	s := algotest.NewSystem(Regenerating, protocol.Config{N: n}, 0)
	for id := range protocol.ID(n) {
		s.Step(id, protocol.NewLead(protocol.ID(n-1), 1))
	}
	return s
}

func TestNumberedText(t *testing.T) {
	for want, m := range map[string]Numbered{
		"TOKEN(5.1)": {Token, Number{5, 1}}, "ASK(5.1)": {Ask, Number{5, 1}}, "HAVE(5.1)": {Have, Number{5, 1}},
		"HAVENOT(5.1)": {HaveNot, Number{5, 1}}, "LOST": {Kind: Lost},
	} {
		if got := Regenerating.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A stage is processes of which one is looked at, event by event.
type stage struct {
	*algotest.System[Numbered]
	out protocol.Out[Numbered]
}

// give gives p one event, and returns what it sends.
func (s *stage) give(p *Keeper, in protocol.Input, m Numbered) (sent []Numbered) {
	s.out.Reset()
	p.Step(protocol.Event[Numbered]{Input: in, Msg: m}, &s.out)
	for _, e := range s.out.Effects {
		if e.Do == protocol.Send {
			sent = append(sent, e.Msg)
		}
	}
	return sent
}

// rules are what a process does with one event, where that matters only in runs that are too
// long for the checker here: with four processes, or several leaders.
func rules() string {
	hears := func(from protocol.ID) protocol.Input { return protocol.Input{Kind: protocol.Receive, From: from} }
	dies := func(j protocol.ID) protocol.Input { return protocol.Input{Kind: protocol.Suspect, From: j} }
	leads := func(j protocol.ID, epoch uint64) protocol.Input {
		return protocol.NewLead(j, epoch)
	}
	last := func(do func(s *stage, p *Keeper) []Numbered, want ...Numbered) func(id protocol.ID) bool {
		return func(id protocol.ID) bool {
			s := &stage{System: keepers(4)}
			return slices.Equal(do(s, s.Procs[id].(*Keeper)), want)
		}
	}
	ask := Numbered{Ask, Number{1, 1}}
	for name, holds := range map[string]bool{
		"who does not lead asks for nothing": last(func(s *stage, p *Keeper) []Numbered {
			return s.give(p, hears(0), Numbered{Kind: Lost})
		})(1),
		"a token is passed on with its own number": last(func(s *stage, p *Keeper) []Numbered {
			return s.give(p, hears(0), Numbered{Token, Number{1, 1}})
		}, Numbered{Token, Number{1, 1}})(1),
		"who does not lead tells the leader": last(func(s *stage, p *Keeper) []Numbered {
			return s.give(p, dies(2), Numbered{})
		}, Numbered{Kind: Lost})(1),
		"a leader is news once": last(func(s *stage, p *Keeper) []Numbered { return s.give(p, leads(3, 1), Numbered{}) })(3),
		"a new leader hears of a crash": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, dies(2), Numbered{})
			return s.give(p, leads(0, 2), Numbered{})
		}, Numbered{Kind: Lost})(1),
		"a new leader hears of nothing else": last(func(s *stage, p *Keeper) []Numbered {
			return s.give(p, leads(0, 2), Numbered{})
		})(1),
		"the dead are not asked": last(func(s *stage, p *Keeper) []Numbered {
			return s.give(p, dies(0), Numbered{})
		}, ask, ask)(3),
		"an old question has no answer": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, hears(2), Numbered{Ask, Number{2, 1}})
			return s.give(p, hears(3), ask)
		})(1),
		"a token that was found is not made anew": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, dies(0), Numbered{})
			s.give(p, hears(1), Numbered{Have, Number{1, 1}})
			return s.give(p, hears(2), Numbered{HaveNot, Number{1, 1}})
		})(3),
		"an answer to an old question says nothing": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, dies(0), Numbered{})
			s.give(p, hears(1), Numbered{Kind: Lost})
			s.give(p, hears(1), Numbered{HaveNot, Number{1, 1}})
			return s.give(p, hears(2), Numbered{HaveNot, Number{1, 1}})
		})(3),
		"a newer question ends the search": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, dies(0), Numbered{})
			s.give(p, hears(2), Numbered{Ask, Number{2, 1}})
			s.give(p, hears(1), Numbered{HaveNot, Number{2, 1}})
			return s.give(p, hears(2), Numbered{HaveNot, Number{2, 1}})
		})(3),
		"who has answered a newer leader asks no more": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, hears(2), Numbered{Ask, Number{2, 1}})
			return s.give(p, hears(2), Numbered{Kind: Lost})
		})(3),
		"a newer leader ends the search": last(func(s *stage, p *Keeper) []Numbered {
			s.give(p, dies(0), Numbered{})
			s.give(p, leads(2, 2), Numbered{})
			s.give(p, hears(1), Numbered{HaveNot, Number{1, 1}})
			return s.give(p, hears(2), Numbered{HaveNot, Number{1, 1}})
		})(3),
		"numbers are ordered by epoch": Number{1, 5}.Before(Number{2, 1}) && !Number{2, 1}.Before(Number{1, 5}) &&
			Number{2, 1}.Before(Number{2, 2}) && !Number{2, 2}.Before(Number{2, 2}),
	} {
		if !holds {
			return "rules by story, it is not so that " + name
		}
	}
	return noNumbers()
}

// noNumbers is what a process does without numbers that has a token, and gets another one.
func noNumbers() string {
	s := algotest.NewSystem(NoEpoch, protocol.Config{N: 2}, 0)
	two := protocol.Event[Numbered]{Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: Numbered{Token, Number{}}}
	p := s.Procs[0].(*Keeper)
	p.where, p.token, p.number = protocol.InCrit, true, Number{1, 1}
	var out protocol.Out[Numbered]
	if p.Step(two, &out); len(out.Effects) != 1 || out.Effects[0].Msg.Number != (Number{}) || !p.token {
		return "rules by story, the second token does not go on"
	}
	p.where, p.token = protocol.InRem, false
	out.Reset()
	if p.Step(two, &out); len(out.Effects) != 1 || out.Effects[0].Msg.Number != (Number{1, 1}) {
		return "rules by story, a number gets older"
	}
	p.where, p.token = protocol.InCrit, true
	p.Step(protocol.Event[Numbered]{Input: protocol.Input{Kind: protocol.Suspect, From: 1}}, &out)
	out.Reset()
	if p.Step(two, &out); len(out.Effects) != 0 {
		return "rules by story, the second token goes where nobody is"
	}
	return ""
}

func TestRules(t *testing.T) {
	if fault := rules(); fault != "" {
		t.Error(fault)
	}
}

func TestRegeneratingMutants(t *testing.T) {
	model := func(c check.Config) mutant.Check {
		c.MaxMemory = 16 << 20
		return mutant.Decided(regenerate, c)
	}
	mutant.Test(t, mutant.Config{
		Inside: []string{"Keeper", "Number"},
		// One mutant is endless; all checks together take a tenth of this.
		Patience: 2 * time.Second,
		Checks: []mutant.Check{
			model(crashing(2, 1)),
			model(crashing(3, 1)),
			func() (string, error) { return rules(), nil },
			mutant.Panics("tokenring: ", func() {
				s := keepers(1)
				s.Procs[0].Step(protocol.Event[Numbered]{Input: protocol.Input{Kind: protocol.Receive}}, &protocol.Out[Numbered]{})
			}),
			model(crashing(3, 2)),
			model(crashing(3, 1, 2)),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("pass keeps the token", "out.Send(next, Numbered{Token, p.number})\n\t\tp.token = false", "out.Send(next, Numbered{Token, p.number})"),
			mutant.Edit("ask repeats a number", "p.number.Count + 1}", "p.number.Count}"),
			mutant.Edit("onAsk keeps the old number", "p.number = n\n\tp.found() // the own", "p.found() // the own"),
			mutant.Edit("onAsk goes on with its own search", "p.found() // the own question, if there is one, is old", ""),
			mutant.Edit("a leader that lost its epoch goes on", "p.epoch, p.leader = epoch, leader\n\tp.found()", "p.epoch, p.leader = epoch, leader"),
		},
	})
}

var regenerateOptions = algotest.Options{
	Exhaustive: []check.Config{crashing(2, 1), crashing(3, 1)}, Allocations: 0.01,
}

// noEpochOptions: exclusion is all that is lost without the numbers.
var noEpochOptions = algotest.Options{
	Exhaustive: regenerateOptions.Exhaustive, Allocations: 0.01,
	Lacking: []check.Config{{Config: protocol.Config{N: 3}, Crash: 1}},
}

func TestRegeneratingConformance(t *testing.T) { algotest.Run(t, regenerate, regenerateOptions) }
func TestNoEpochConformance(t *testing.T)      { algotest.Run(t, noEpoch, noEpochOptions) }
func FuzzReadNumbered(f *testing.F)            { algotest.FuzzRead(f, regenerate, regenerateOptions) }

func FuzzLoadKeeper(f *testing.F) { algotest.FuzzLoadState(f, regenerate, regenerateOptions) }

// A run with contention in which a process crashes, event by event.
func TestRegeneratingGolden(t *testing.T) {
	algotest.Golden(t, regenerate, "regenerate", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
		Faults: []scenario.Step{{At: 3 * time.Millisecond, Verb: scenario.Crash, Procs: []protocol.ID{0}}},
	})
}
