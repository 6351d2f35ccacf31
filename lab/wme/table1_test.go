package wme

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/statemachine"
	weak "github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
	"github.com/poundlock/poundlock/protocol"
)

func run(t *testing.T, e lab.Experiment, o lab.Options) lab.Report {
	t.Helper()
	r, err := lab.Run(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every count is that of its formula, and what is committed is what comes out, byte for byte.
// docs/experiments.md says what each column is.
func TestTable1(t *testing.T) {
	r := run(t, Table1, lab.Options{})
	if want := 4 * 7 * len(sizes) * 2; r.Verdicts[lab.Equal] != want || len(r.Verdicts) != 1 {
		t.Errorf("verdicts: %s, want %d equal", r.Summary(), want)
	}
	for _, name := range labtest.Stale(t, r) {
		t.Errorf("%s is not what comes out: poundlock-lab lab run %s --out docs/figures", name, Table1.Name)
	}
	labtest.Documented(t, Table1, r.Tables...)
}

// One size alone has the same rows, also one that is not in the plan.
func TestOneSize(t *testing.T) {
	all := run(t, Table1, lab.Options{}).Tables[0].Rows
	rowsOf := func(n int) (list [][]any) {
		for _, row := range all {
			if row[2] == n {
				list = append(list, row)
			}
		}
		return list
	}
	one := run(t, Table1, lab.Options{Point: 5}).Tables[0].Rows
	if !slices.EqualFunc(one, rowsOf(5), slices.Equal[[]any]) || len(one) != 4*7 {
		t.Errorf("with N=5 alone: %v", one)
	}
	if r := run(t, Table1, lab.Options{Point: 17}); r.Verdicts[lab.Equal] != 4*7*2 {
		t.Errorf("with N=17: %s", r.Summary())
	}
}

// talkative tells each commit twice, which changes nothing but what it costs.
func talkative() protocol.Algorithm[weak.Message] {
	a := weak.Second
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[weak.Message] {
		return twice{weak.Second.New(id, c)}
	}
	return a
}

type twice struct {
	protocol.Process[weak.Message]
}

func (p twice) Step(ev protocol.Event[weak.Message], out *protocol.Out[weak.Message]) {
	p.Process.Step(ev, out)
	for _, e := range out.Effects {
		if e.Do == protocol.Broadcast && e.Msg.Kind == weak.DoInvoke {
			out.Broadcast(e.Msg)
		}
	}
}

// What costs more, or takes longer, than its formula differs, and nothing else does.
func TestDiffers(t *testing.T) {
	differing := func(change func(*row)) (names []string) {
		t.Helper()
		changed := slices.Clone(rows)
		for i := range changed {
			change(&changed[i])
		}
		e := Table1
		e.Plan = func(lab.Scale) lab.Plan { return table1(changed) }
		r := run(t, e, lab.Options{Point: 5})
		for _, row := range r.Tables[0].Rows {
			for i, measure := range []string{"steps", "messages"} {
				if row[9+i] != lab.Equal {
					names = append(names, row[0].(string)+": "+row[1].(string)+": "+measure)
				}
			}
		}
		if r.Differs() != len(names) || r.Verdicts[lab.Differs] != len(names) {
			t.Errorf("verdicts: %s, want %d that differ", r.Summary(), len(names))
		}
		return names
	}
	got := differing(func(r *row) {
		if r.protocol == "wme-2" {
			r.watch = watching(talkative())
		}
	})
	want := []string{"wme-2: invoke, to the outcome: messages", "wme-2: invoke, to the last replica: messages"}
	if !slices.Equal(got, want) {
		t.Errorf("commits told twice: %q differ, want %q", got, want)
	}
	got = differing(func(r *row) {
		if r.protocol == "state-machine" {
			r.watch = watching(statemachine.Announced)
		}
	})
	if len(got) != 2*7 || !strings.HasPrefix(got[0], "state-machine: ") {
		t.Errorf("decisions that the coordinator announces, where all tell all: %q differ", got)
	}
}

// A run that is not nice, or in which the action does not happen, is no measurement.
func TestNoMeasurement(t *testing.T) {
	deaf := weak.First
	deaf.New = func(id protocol.ID, c protocol.Config) protocol.Process[weak.Message] {
		if id == 0 {
			return silent{weak.First.New(id, c)}
		}
		return weak.First.New(id, c)
	}
	for _, r := range rows {
		switch r.action.name {
		case enterHeld.name:
			r.story = story{users: 1, entries: 1}
			if _, err := r.try(t.Context(), 3, 1); err == nil || !strings.Contains(err.Error(), "nobody does it") {
				t.Errorf("%s: nobody enters again: %v", r.protocol, err)
			}
		case lastCopy.name:
			r.watch = watching(deaf)
			if _, err := r.try(t.Context(), 3, 1); err == nil {
				t.Errorf("%s: the copy of process 0 executes nothing, and that is not noticed", r.protocol)
			}
		}
	}
}

// A silent process executes nothing.
type silent struct {
	protocol.Process[weak.Message]
}

func (p silent) Step(ev protocol.Event[weak.Message], out *protocol.Out[weak.Message]) {
	p.Process.Step(ev, out)
	out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[weak.Message]) bool {
		return e.Do == protocol.Invoke
	})
}
