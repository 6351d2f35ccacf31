package network

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// of is an experiment with the default forms of some algorithms only, and few entries.
func of(e lab.Experiment, names ...string) lab.Experiment {
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		p.Configurations = nil
		for _, name := range names {
			p.Configurations = append(p.Configurations, trial{catalog.Find(name, ""), 3}.configuration([]int{3}))
		}
		return p
	}
	return e
}

// Where the messages of an entry are one number, a network has as many as its simulation and its claim. How long
// things take there is for those who run the experiment to judge.
func TestNetwork(t *testing.T) {
	r, err := lab.Run(t.Context(), of(Classics, "ricart-agrawala", "lamport", "sigma"), lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, row := range r.Tables[0].Rows {
		if row[3] == "messages" && row[0] != "sigma" {
			if row[len(row)-1] != lab.Equal {
				t.Errorf("%v", row)
			}
			equal++
		}
	}
	if equal != 2 || len(r.Tables[1].Rows) != 3 || len(r.Figures[0].Lines) != 4 {
		t.Errorf("%d rows of messages, want 2; %v", equal, r.Tables[1].Rows)
	}
	for _, row := range r.Tables[1].Rows {
		for i, c := range r.Tables[1].Columns {
			if row[i] == nil {
				t.Errorf("%v has no %s", row[0], c.Name)
			}
		}
	}
	labtest.Documented(t, Classics, r.Tables...)
	labtest.Section(t, Groups)
}

// All that nodes run is tried: each in one experiment.
func TestForms(t *testing.T) {
	tried := map[string]int{}
	for _, e := range Experiments {
		for _, c := range e.Plan(lab.Default).Configurations {
			tried[strings.Join(c.Labels, "/")]++
		}
	}
	for _, e := range catalog.All {
		i := e.Info()
		name := i.Name + "/" + i.Variant
		_, err := e.OnNetwork(stopped(t), trial{e, 1}.config(3, 1))
		deadlocks := slices.Contains(i.Lacks, "deadlock") || slices.Contains(i.Refuted, "deadlock") || slices.Contains(i.Refuted, "exclusion")
		refused := err != nil && strings.Contains(err.Error(), sim.ErrConfig.Error())
		if want := !refused && !deadlocks; want != (tried[name] == 1) {
			t.Errorf("%s is tried %d times: %v", name, tried[name], err)
		}
	}
}

// stopped is a context that has ended.
func stopped(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// What lets two in on a network has no costs, and what costs more than it claims differs.
func TestDiffers(t *testing.T) {
	broken := trial{double{catalog.Find("ricart-agrawala", "")}, 2}
	if _, err := broken.try(t.Context(), 3, 1); err == nil || !strings.Contains(err.Error(), "two are inside") {
		t.Errorf("error %v", err)
	}
	c := trial{liar{catalog.Find("ricart-agrawala", "")}, 2}.configuration([]int{3})
	s, err := c.Try(t.Context(), 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := (lab.Cell{Configuration: &c, Point: 3, Samples: []lab.Sample{s}}).Verdict(); v != lab.Differs {
		t.Errorf("verdict %s, want %s", v, lab.Differs)
	}
}

// double lets two in on a network.
type double struct{ catalog.Entry }

func (double) OnNetwork(context.Context, sim.Config) (sim.Result, error) {
	return sim.Result{ViolationCount: 1, Violations: []string{"two are inside"}}, nil
}

// liar claims one message too few.
type liar struct{ catalog.Entry }

func (l liar) Info() protocol.Info {
	i := l.Entry.Info()
	i.Claims = []protocol.Claim{protocol.Exactly(protocol.HighLoad, protocol.Messages, protocol.Linear(2, -3), "2(N-1)-1")}
	return i
}
