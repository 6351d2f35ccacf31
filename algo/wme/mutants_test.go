package wme

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// stories are those of claims of the paper, and of what a process does that lacks something.
var stories = []func(protocol.Algorithm[Message]) string{
	costs, nextOwner, ejected, returns, overtaken, askedEarly, votedWaits, oldRequests,
}

// Each guard removed once. The defects of the algorithm as printed are in TestErrata.
func TestMutants(t *testing.T) {
	var checks []mutant.Check
	for _, story := range slices.Concat(stories, guards, healings, steps) {
		checks = append(checks, func() (string, error) { return told(story), nil })
	}
	// What is printed has so many states: each rule of it makes a difference. Without E4a nothing falls where two vote.
	literal := check.Config{Config: protocol.Config{N: 2}, Entries: []int{2, 1}, Properties: []string{history.Failed}}
	checks = append(checks, mutant.Panics("wme: ", outOfOrder), retold, searched,
		mutant.Reduced(LiteralFirst, literal, 541), mutant.Reduced(LiteralSecond, literal, 297),
		mutant.Reduced(lacking1(e12), model(2, 1, 0, 1, history.Failed, 1, 1), 9830),
		mutant.Model(lacking1(e4a), with(small(2, 1, 0), 1, 0)))
	of := func(c check.Config) {
		c.Properties, c.MaxMemory, c.Workers = nil, 64<<20, 1
		for _, a := range forms {
			checks = append(checks, judging(mutant.Model(a, c)))
		}
	}
	of(with(small(2, 1, 0), 1, 0))
	of(with(small(3, 0, 1, 0), 0, 1))
	of(rarely(with(small(2, 1, 0), 1, 0)))
	for _, a := range forms {
		checks = append(checks, stormy(a, own, 300, false), stormy(a, own, 300, true))
	}
	of(with(small(2, 2, 1), 1, 0))
	of(with(small(3, 1, 0, 0), 1, 0))
	for _, a := range forms {
		checks = append(checks, stormy(consensus.With(a), agreeing, 300, true))
	}
	mutant.Test(t, mutant.Config{
		Share:    20,
		Checks:   checks,
		Patience: 8 * time.Second,
		Needed: []string{
			history.OneCopy, history.Fresh, history.Outcome, history.Failed, history.Lagging, "stuck", "deadlock",
			"cost", "service", "refusal",
		},
		Survivors: map[string]string{
			"Process.onVote: !p.proposed dropped":                "who has proposed keeps its own vote alone, which is no majority",
			"Process.execute: first || p.corrects(e11a) -> true": harmless["E11a"],
			"Process.execute: p.corrects(e11a) dropped":          harmless["E11a"],
			"Process.onAck: !p.corrects(e6) dropped":             "the next record commits what is acknowledged too late: E6 takes both",
			"Process.onDoInvoke: p.corrects(e6) dropped":         "the next record commits what DOINVOKE comes too late for: E14a takes both",
			"Process.onHealing: m.Kind == Sync dropped":          "no other of these messages has an ID",
			"Process.onHealing: m.Kind == Sync dropped #2": "operations of a later epoch wait for it, too, and fill then what they would fill now; " +
				"what the decision lacks is asked for anyway",
			"Process.onHealing: m.Kind == Fetch -> true":                                                  "it is the last kind that is left",
			"Process.restore: p.late -> false":                                                            notHere,
			"Process.store: e.msg.Kind == Sync -> true":                                                   notHere,
			"Process.store: e.msg.Kind == Sync -> false":                                                  notHere,
			"Process.store: o.from == e.from && o.msg.Kind == Sync -> false":                              notHere,
			"Process.store: o.from == e.from dropped":                                                     notHere,
			"Process.useEarly: p.joined() && p.missed > 0 && p.missed <= p.curSN+1 && !p.full() -> false": notHere,
			"Process.useEarly: p.joined() dropped #2":                                                     notHere,
			"Process.useEarly: p.missed <= p.curSN+1 dropped":                                             notHere,
			"Process.useEarly: !p.full() dropped":                                                         notHere,
			"Process.isEarly: m.Number > p.curSN && p.full() dropped":                                     notHere,
			"Process.isEarly: m.Number > p.curSN dropped":                                                 notHere,
			"Process.shed: i >= 0 && p.heal && (len(p.early) > maxEarly || size > p.room) -> false":       notHere,
			"Process.shed: i >= 0 dropped":                                                                notHere,
			"Process.shed: p.heal dropped":                                                                notHere,
			"Process.shed: len(p.early) > maxEarly dropped":                                               notHere,
			"Process.shed: size > p.room dropped":                                                         notHere,
			"Process.shed: m.Kind == Sync -> true":                                                        notHere,
			"Process.shed: m.Kind == Sync -> false":                                                       notHere,
			"Process.shed: m.Kind == Ack || m.Kind == DoInvoke -> true":                                   notHere,
			"Process.shed: m.Kind == Ack || m.Kind == DoInvoke -> false":                                  notHere,
			"Process.shed: m.Kind == Ack dropped":                                                         notHere,
			"Process.shed: m.Kind == DoInvoke dropped":                                                    notHere,
			"Process.shed: m.Epoch > p.curEp -> true":                                                     notHere,
			"Process.shed: m.Epoch > p.curEp -> false":                                                    notHere,
			"Process.shed: p.missed == 0 || time < p.missed -> true":                                      notHere,
			"Process.shed: p.missed == 0 || time < p.missed -> false":                                     notHere,
			"Process.shed: p.missed == 0 dropped":                                                         notHere,
			"Process.shed: time < p.missed dropped":                                                       notHere,
			"Process.full: p.current() -> true":                                                           notHere,
			"Process.full: len(p.opHist)-i >= p.keep || size(p.opHist[i:]) >= p.room -> true":             notHere,
			"Process.full: len(p.opHist)-i >= p.keep || size(p.opHist[i:]) >= p.room -> false":            notHere,
			"Process.full: len(p.opHist)-i >= p.keep dropped":                                             notHere,
			"Process.full: size(p.opHist[i:]) >= p.room dropped":                                          notHere,
			"Message.size: b != nil -> false":                                                             notHere,
			"Process.trim: i > k -> false":                                                                notHere,
			"Process.trim: sum > p.room -> false":                                                         notHere,
		},
		Outside: map[string]string{
			"form": "the catalogue", "option": "the catalogue",
			"unsettled": "spaces losses",
		},
	})
}

// judging is a check of mutants. Other tests judge the algorithm as written, which takes longer.
func judging(c mutant.Check) mutant.Check {
	return func() (string, error) {
		if mutant.Alive() == "" && !lane.Long.Runs() {
			return "", nil
		}
		return c()
	}
}

// retold is what goes wrong in the counterexamples of the algorithm as printed, or does not go wrong any more in what is printed.
func retold() (string, error) {
	for _, e := range append(slices.Clip(errata), notUniform) {
		if harmless[e.file] != "" {
			if fault := stormed(e.form, 0, 50); fault != "" {
				return fmt.Sprintf("claim by storm, what is harmless in what is printed does harm: %s: %s", e.file, fault), nil
			}
		}
		if e.model.N == 0 {
			continue
		}
		if _, fault, steps := e.replay(e.corrected()); fault != "" {
			return fmt.Sprintf("%s by replay, %d steps, %s: %s", kindOf(fault), steps, e.file, fault), nil
		}
		if _, fault, _ := e.replay(e.form); fault == "" && e.file != notUniform.file {
			return "claim by replay, what is printed goes well in " + e.file, nil
		}
	}
	return "", nil
}

// searched is whether the checker finds other counterexamples in what is printed than those of the files.
func searched() (string, error) {
	for _, e := range errata {
		if e.model.Entries == nil {
			continue
		}
		if property, steps, err := e.search(); err != nil || property != e.property {
			return fmt.Sprintf("claim by check, %s in %d steps in %s: %v", property, steps, e.file, err), nil
		}
	}
	return "", nil
}

// kindOf is the property that a fault is of.
func kindOf(fault string) string {
	property, _, _ := strings.Cut(fault, ":")
	switch property {
	case history.OneCopy, history.Contiguous, history.Precedence, history.Fresh, history.Outcome, history.Failed, history.Lagging, "stuck":
		return property
	}
	return "model"
}

func agreeing(p protocol.Process[frame]) *Process { return bare(p) }

// stormy is what so many storms find, in which sessions end, with what is on its way, or do not.
func stormy[M any](a protocol.Algorithm[M], bare func(protocol.Process[M]) *Process, worlds uint64, loses bool) mutant.Check {
	return judging(func() (string, error) {
		for seed := range worlds {
			w := newStorm(a, bare, seed)
			w.loses = loses && w.config.Options[heal.Name] == 1
			if fault := w.run(400); fault != "" {
				return fmt.Sprintf("%s by storm, seed %d: %s", kindOf(fault), seed, fault), nil
			}
		}
		return "", nil
	})
}

// notHere is about what there is room for, which the checks of this table never run out of.
const notHere = "not judged here: bounds of the memory, which TestModelsRoom, TestStormRoom and the stories beside them judge"
