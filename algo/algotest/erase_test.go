package algotest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// An erased algorithm does what the algorithm does, and says the same of every state and
// message. Between them these two make each claim that an algorithm can make.
func TestErased(t *testing.T) {
	server, three := protocol.Config{N: 4}, protocol.Config{N: 3}
	linked, permuting := reliable.Wrap(suzukikasami.Algorithm), sigma.Algorithm
	permuting.Fits = func(m sigma.Message, n int, proposed bool) bool { return m.Owner < protocol.ID(n) || proposed }
	permuting.Snapshot = func(m sigma.Message) (string, bool) { return fmt.Sprint(m.Owner), m.Owner > 0 }
	for _, err := range []error{
		differs(permuting, server, 2, nil), differs(linked, three, 0, nil),
		runsDiffer(sigma.Algorithm, sim.Config{Config: server, Clients: 3, AmnesiaEvery: 5e7}),
		runsDiffer(linked, sim.Config{Config: three, Loss: 0.1}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	one := func(v uint64) uint64 { return v + 1 }
	for name, change := range map[string]func(a *protocol.Algorithm[any]){
		"Idempotent": func(a *protocol.Algorithm[any]) { a.Idempotent = nil },
		"Lasts":      func(a *protocol.Algorithm[any]) { a.Lasts = func(any) bool { return true } },
		"Stale": func(a *protocol.Algorithm[any]) {
			stale := a.Stale
			a.Stale = func(from, to protocol.Process[any], ch protocol.Channel, m any) bool { return stale(to, from, ch, m) }
		},
		"Confluent": func(a *protocol.Algorithm[any]) {
			a.Confluent = func(protocol.Process[any], protocol.ID, any, bool) bool { return true }
		},
		"MapState": func(a *protocol.Algorithm[any]) {
			a.MapState = func(protocol.Process[any], func(protocol.Counter, uint64) uint64) {}
		},
		"MapMsg": func(a *protocol.Algorithm[any]) {
			mapped := a.MapMsg
			a.MapMsg = func(ch protocol.Channel, m *any, f func(protocol.Counter, uint64) uint64) {
				kept := *m
				mapped(ch, &kept, f)
			}
		},
		"Interchangeable": func(a *protocol.Algorithm[any]) { a.Interchangeable = nil },
		"Permute": func(a *protocol.Algorithm[any]) {
			a.Permute = func(protocol.Process[any], func(protocol.ID) protocol.ID) {}
		},
		"Bounds": func(a *protocol.Algorithm[any]) {
			of := a.Bounds[0].Of
			a.Bounds = slices.Clone(a.Bounds) // it has those of the other algorithm
			a.Bounds[0].Of = func(p protocol.Stateful) uint64 { return one(of(p)) }
		},
		"Invariants": func(a *protocol.Algorithm[any]) {
			a.Invariants = slices.Clone(a.Invariants)
			seen := &a.Invariants[len(a.Invariants)-1]
			err := seen.Err
			seen.Err = func(v *protocol.View) error {
				less := *v
				less.InFlight = func(func(protocol.Channel, any) bool) {}
				return err(&less)
			}
		},
		"Unsettled": func(a *protocol.Algorithm[any]) { a.Unsettled = func([]protocol.Stateful) int { return 7 } },
		"Unwrap": func(a *protocol.Algorithm[any]) {
			create := a.New
			a.New = func(id protocol.ID, c protocol.Config) protocol.Process[any] { return closed{create(id, c)} }
		},
		"Fits": func(a *protocol.Algorithm[any]) { a.Fits = func(any, int, bool) bool { return true } },
		"Snapshot": func(a *protocol.Algorithm[any]) {
			a.Snapshot = func(any) (string, bool) { return "", false }
		},
	} {
		t.Run("without "+name, func(t *testing.T) {
			var err error
			switch have := name + " true"; {
			case slices.Contains(has(permuting), have) || name == "Unwrap":
				err = differs(permuting, server, 2, change)
			case slices.Contains(has(linked), have):
				err = differs(linked, three, 0, change)
			}
			if err == nil {
				t.Error("nobody sees that it is wrong")
			}
		})
	}
}

// A closed process does not tell what it wraps.
type closed struct{ protocol.Process[any] }

// differs says what is different in an erased algorithm, of which change makes another one.
func differs[M any](a protocol.Algorithm[M], c protocol.Config, clients int, change func(*protocol.Algorithm[any])) (err error) {
	a.Invariants = append(slices.Clip(a.Invariants), protocol.Invariant{Name: "seen", Err: seen(a)})
	e := protocol.Erase(a)
	if change != nil {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r) // such as that of what it does not have
			}
		}()
		had := fmt.Sprint(has(a))
		if change(&e); fmt.Sprint(has(e)) != had {
			return fmt.Errorf("it has %s, and not %s", fmt.Sprint(has(e)), had)
		}
	}
	s, u := NewSystem(a, c, clients), NewSystem(e, c, clients)
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 300 {
		if want, got := told(a, c, s), told(e, c, u); got != want {
			return fmt.Errorf("%s: after %d steps\n%s\nand not\n%s", a.Name, step, got, want)
		}
		from, to := protocol.ID(r.IntN(len(s.Procs))), protocol.ID(r.IntN(len(s.Procs)))
		switch in := len(s.InFlight(from, to)); {
		case in > 0:
			k := r.IntN(in)
			s.Deliver(from, to, k)
			u.Deliver(from, to, k)
		case (from < protocol.ID(c.N)) != (a.Users == protocol.Members):
		case s.Users[from] == protocol.InRem:
			s.Try(from)
			u.Try(from)
		case s.Users[from] == protocol.InCrit:
			s.Exit(from)
			u.Exit(from)
		}
	}
	return nil
}

// has lists the functions of an algorithm, and which of them there are.
func has[M any](a protocol.Algorithm[M]) (list []string) {
	for _, v := range []reflect.Value{reflect.ValueOf(a), reflect.ValueOf(a.Model)} {
		for i := range v.NumField() {
			if k := v.Field(i).Kind(); k == reflect.Func || k == reflect.Slice {
				list = append(list, fmt.Sprint(v.Type().Field(i).Name, " ", !v.Field(i).IsNil()))
			}
		}
	}
	return list
}

// seen writes all that an invariant sees.
func seen[M any](a protocol.Algorithm[M]) func(v *protocol.View) error {
	return func(v *protocol.View) error {
		b := fmt.Appendf(nil, "%v %v %v %v", v.Config, v.Users, v.Registers, v.Lost)
		for _, p := range v.Procs {
			if b = append(b, '|'); p != nil {
				b = protocol.AppendState(b, p)
			}
		}
		for ch, m := range protocol.InFlight[M](v) {
			b = a.Append(fmt.Appendf(b, " %v ", ch), m)
		}
		return errors.New(string(b))
	}
}

// told is all that an algorithm says of one state of a system.
func told[M any](a protocol.Algorithm[M], c protocol.Config, s *System[M]) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%v", has(a))
	move := func(k protocol.Counter, v uint64) uint64 { say("%v %d", k, v); return v + 3 }
	turn := func(j protocol.ID) protocol.ID {
		if say("#%d", j); j < protocol.ID(c.N) {
			return (j + 1) % protocol.ID(c.N)
		}
		return j
	}
	for i, p := range s.Procs {
		state := protocol.AppendState(nil, p)
		copied := func() protocol.Process[M] {
			q := a.New(protocol.ID(i), c)
			if rest, err := protocol.LoadState(state, q); err != nil || len(rest) > 0 {
				say("LoadState: %v, %d bytes left", err, len(rest))
			}
			return q
		}
		say("%d: %q %v", i, state, s.Users[i])
		say("%s", protocol.Show(p))
		if q, ok := protocol.As[protocol.Inspector](p); ok {
			say("%v", q.Inspect())
		}
		if q, ok := protocol.As[protocol.Queuer](p); ok {
			say("%d", q.Waiting())
		}
		for _, l := range a.Bounds {
			say("%s: %d of %d", l.Name, l.Of(p), l.Max)
		}
		if q := copied(); a.MapState != nil {
			a.MapState(q, move)
			say("%q", protocol.AppendState(nil, q))
		}
		if q := copied(); a.Permute != nil {
			a.Permute(q, turn)
			say("%q", protocol.AppendState(nil, q))
		}
	}
	for from := range s.Procs {
		for to := range s.Procs {
			ch := protocol.Channel{From: protocol.ID(from), To: protocol.ID(to)}
			for _, m := range s.InFlight(ch.From, ch.To) {
				code := a.Append(nil, m)
				read, rest, err := a.Read(code)
				say("%v %q %d %d %s, read %q %q %v", ch, code, a.KindOf(m), a.Ints(m), a.Text(m), a.Append(nil, read), rest, err)
				if a.Fits != nil {
					say("%v %v %v", a.Fits(m, 1, false), a.Fits(m, 9, false), a.Fits(m, 0, true))
				}
				if a.Snapshot != nil {
					object, ok := a.Snapshot(m)
					say("%q %v", object, ok)
				}
				if a.Idempotent != nil {
					say("%v", a.Idempotent(m))
				}
				if a.Lasts != nil {
					say("%v", a.Lasts(m))
				}
				if a.Stale != nil {
					say("%v %v", a.Stale(s.Procs[from], s.Procs[to], ch, m), a.Stale(nil, s.Procs[to], ch, m))
				}
				if a.Confluent != nil {
					say("%v %v", a.Confluent(s.Procs[to], ch.From, m, false), a.Confluent(s.Procs[to], ch.From, m, true))
				}
				if moved := m; a.MapMsg != nil {
					a.MapMsg(ch, &moved, move)
					say("%q", a.Append(nil, moved))
				}
			}
		}
	}
	absent := slices.Clone(s.Procs)
	if a.Users == protocol.Clients {
		absent[len(absent)-1] = nil // a client that crashed
	}
	for _, procs := range [][]protocol.Process[M]{s.Procs, absent} {
		if a.Unsettled != nil {
			say("%d", a.Unsettled(protocol.States(procs)))
		}
		lost := make([][]bool, len(procs))
		for i := range lost {
			lost[i] = make([]bool, c.N)
		}
		v := protocol.View{Config: c, Procs: protocol.States(procs), Users: s.Users, Lost: lost, Registers: []uint64{5}}
		v.InFlight = func(yield func(protocol.Channel, any) bool) {
			for from := range procs {
				for to := range procs {
					ch := protocol.Channel{From: protocol.ID(from), To: protocol.ID(to)}
					for _, m := range s.InFlight(ch.From, ch.To) {
						if !yield(ch, m) {
							return
						}
					}
				}
			}
		}
		for _, i := range a.Invariants {
			say("%s %v: %v", i.Name, i.Stable, i.Err(&v))
		}
	}
	return b.String()
}

// runsDiffer compares the log of a simulation, and a hunt.
func runsDiffer[M any](a protocol.Algorithm[M], c sim.Config) error {
	var want, got bytes.Buffer
	c.Entries, c.Seed, c.Trace = []int{5}, 1, &want
	if _, err := sim.Run(a, c); err != nil {
		return err
	}
	c.Trace = &got
	if _, err := sim.Run(protocol.Erase(a), c); err != nil {
		return err
	}
	if want.Len() == 0 || !bytes.Equal(got.Bytes(), want.Bytes()) {
		return fmt.Errorf("%s: logs of %d and %d bytes differ", a.Name, got.Len(), want.Len())
	}
	h := hunt.Config{Seed: 1, Runs: 40}
	x, err := hunt.Run(a, h)
	if err != nil {
		return err
	}
	y, err := hunt.Run(protocol.Erase(a), h)
	if err != nil {
		return err
	}
	x.Seconds, x.RunsPerS, y.Seconds, y.RunsPerS = 0, 0, 0, 0
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("%s: hunts differ: %+v and %+v", a.Name, x, y)
	}
	return nil
}
