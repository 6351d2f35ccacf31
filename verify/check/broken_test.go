package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func always(protocol.Process[uint8], protocol.ID, uint8, bool) bool { return true }

// Each reduction that is broken hides a violation which the full search finds, and
// which is found again, or the claim refuted, when nothing is broken.
func TestBrokenReductions(t *testing.T) {
	for _, test := range []struct {
		name     string
		step     program
		property string
		broken   func(c *check.Config)
		fifo     bool
	}{
		{
			// Two processes play ping-pong for ever; the third one does what is forbidden.
			"what answers is confluent too",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Start && p.id == 0:
					out.Send(1, 1)
				case ev.Kind == protocol.Receive:
					out.Send(ev.From, 1)
				case ev.Kind == protocol.Try && p.id == 2:
					panic("never try this")
				}
			},
			check.Model,
			func(c *check.Config) { c.Break(true, false, false) },
			false,
		},
		{
			// p1 is inside until M(1) arrives, and p2 from the arrival of M(2) on.
			"sections do not matter",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Try && p.id == 0:
					out.Crit(0)
					out.Send(2, 3)
				case ev.Kind == protocol.Receive && ev.Msg == 3:
					out.Send(0, 1)
					out.Send(1, 2)
				case ev.Kind == protocol.Receive && ev.Msg == 1:
					out.Ejected()
				case ev.Kind == protocol.Receive && ev.Msg == 2 && p.r[0] == 1:
					out.Crit(0)
				case ev.Kind == protocol.Try && p.id == 1:
					p.r[0] = 1
				case ev.Kind == protocol.Exit:
					p.r[0] = 0
					out.Rem()
				}
			},
			check.Exclusion,
			func(c *check.Config) { c.Break(false, true, true) },
			false,
		},
		{
			// Who is heard of first gets in, and p1 must not.
			"claims are believed",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Start && p.id < 2:
					out.Send(2, uint8(p.id))
				case ev.Kind == protocol.Receive && p.r[0] == 0:
					p.r[0] = uint64(ev.From) + 1
				case ev.Kind == protocol.Receive && p.r[0] == 2:
					p.r[1] = 1
				case ev.Kind == protocol.Try && p.r[1] == 1:
					panic("p2 was the first")
				}
			},
			check.Model,
			func(c *check.Config) { c.Break(false, false, true) },
			false,
		},
		{
			// What arrives stops the timer of p3, and p3 must not try when it has fired.
			"a timer that is stopped fires",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Start && p.id == 0:
					out.Send(2, 1)
				case ev.Kind == protocol.Start && p.id == 2:
					out.SetTimer(1, 0, 0)
				case ev.Kind == protocol.Receive:
					out.StopTimer(1)
				case ev.Kind == protocol.Timeout:
					p.r[0] = 1
				case ev.Kind == protocol.Try && p.r[0] == 1:
					panic("too late")
				}
			},
			check.Model,
			func(c *check.Config) { c.Break(false, false, true) },
			false,
		},
		{
			// p3 sends M(2) and M(3) in an order that depends on whether M(1) has arrived.
			"channels do not keep an order",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Start && p.id == 0:
					out.Send(2, 1)
				case ev.Kind == protocol.Receive && p.id == 2:
					p.r[0] = 1
				case ev.Kind == protocol.Try && p.id == 2:
					out.Send(1, uint8(2+p.r[0]))
					out.Send(1, uint8(3-p.r[0]))
				case ev.Kind == protocol.Receive && ev.Msg == 3:
					p.r[0] = 1
				case ev.Kind == protocol.Receive && p.r[0] == 0:
					panic("M(2) came first")
				}
			},
			check.Model,
			func(c *check.Config) { c.Break(false, false, true) },
			true,
		},
		{
			// Nobody asks whether users see what is well-formed, so the run goes on after M(2).
			"a run ends with what is not well-formed",
			func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
				switch {
				case ev.Kind == protocol.Start && p.id < 2:
					out.Send(2, uint8(p.id)+1)
				case ev.Kind == protocol.Receive && ev.Msg == 1:
					p.r[0] = 1
				case ev.Kind == protocol.Receive:
					p.r[1] = 1 + p.r[0]
					out.Rem()
				case ev.Kind == protocol.Try && p.r[1] == 1:
					panic("M(1) was the second")
				}
			},
			check.Model,
			func(c *check.Config) { c.Break(false, false, true) },
			false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, c := algorithm(peers, test.step), config(3)
			c.FIFO = test.fifo
			// What would answer is the only message of its test that no claim is made for.
			a.Confluent = always
			switch test.name {
			case "sections do not matter", "channels do not keep an order", "a run ends with what is not well-formed":
				a.Confluent = func(_ protocol.Process[uint8], _ protocol.ID, m uint8, _ bool) bool { return m == 1 }
			}
			c.Properties = []string{test.property}
			if v := run(t, a, c); v.Verdict != check.Violated || v.Property != test.property {
				t.Fatalf("without a reduction: %s", v.Verdict)
			}
			c.Reduce = []string{check.ReduceOrder}
			if v, err := check.Run(a, c); err == nil && v.Verdict != check.Violated || err != nil && !errors.Is(err, check.ErrClaim) {
				t.Errorf("reduced: %s, %v; want violated, or a claim refuted", v.Verdict, err)
			}
			test.broken(&c)
			if v := run(t, a, c); v.Verdict != check.Holds {
				t.Errorf("%s: %s; a comparison with the full search catches nothing", test.name, v.Verdict)
			}
		})
	}
}

// voting lets a client in that two of three servers vote for; each votes once.
func voting(change func(p *toy, ev protocol.Event[uint8])) program {
	return func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Broadcast(1)
		case ev.Kind == protocol.Receive && p.id < 3 && p.r[0] == 0:
			p.r[0] = uint64(ev.From)
			out.Send(ev.From, 2)
		case ev.Kind == protocol.Receive && p.id >= 3:
			p.r[1] |= 1 << ev.From
			if ones(p.r[1]) == 2 {
				out.Crit(0)
			}
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
		change(p, ev)
	}
}

// Claims of members that are interchangeable are refuted when they are false.
func TestFalseSymmetry(t *testing.T) {
	nothing := func(*toy, protocol.Event[uint8]) {}
	votes := func(p protocol.Process[uint8], f func(protocol.ID) protocol.ID) {
		if t := p.(*toy); t.id >= 3 {
			set := uint64(0)
			for j := range protocol.ID(3) {
				set |= t.r[1] >> j & 1 << f(j)
			}
			t.r[1] = set
		}
	}
	for _, test := range []struct {
		name string
		want string
		make func(a *protocol.Algorithm[uint8])
	}{
		{"true", "", func(*protocol.Algorithm[uint8]) {}},
		{"a server knows its id", "exchanging two", func(a *protocol.Algorithm[uint8]) {
			*a = algorithm(clients, voting(func(p *toy, ev protocol.Event[uint8]) {
				if p.id == 2 && ev.Kind == protocol.Receive {
					p.r[2] = 1
				}
			}))
		}},
		{"a server begins otherwise", "does not begin like", func(a *protocol.Algorithm[uint8]) {
			inner := a.New
			a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
				p := inner(id, c).(*toy)
				p.r[3] = uint64(id)
				return p
			}
		}},
		{"a client's votes keep their names", "exchanging two", func(a *protocol.Algorithm[uint8]) {
			a.Permute = func(protocol.Process[uint8], func(protocol.ID) protocol.ID) {}
		}},
		{"an invariant tells servers apart", "exchanged only", func(a *protocol.Algorithm[uint8]) {
			a.Invariants = []protocol.Invariant{{Name: "toy/first", Err: func(v *protocol.View) error {
				if toyIn(v.Procs[0]).r[0] > toyIn(v.Procs[1]).r[0] && toyIn(v.Procs[2]).r[0] > 0 {
					return protocol.ErrShort
				}
				return nil
			}}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, c := algorithm(clients, voting(nothing)), config(3)
			test.make(&a)
			a.Interchangeable = func(protocol.Config) bool { return true }
			if a.Permute == nil {
				a.Permute = votes
			}
			c.Clients, c.Reduce = 2, []string{check.ReduceSymmetry}
			c.Properties = []string{check.Exclusion}
			if len(a.Invariants) > 0 {
				c.Properties = []string{a.Invariants[0].Name}
			}
			v, err := check.Run(a, c)
			if test.want == "" {
				k := c
				k.Reduce = nil
				if full := run(t, a, k); err != nil || v.Verdict != check.Holds || full.Verdict != check.Holds || v.States >= full.States {
					t.Errorf("%s (%v), %d states, want holds with fewer than %d", v.Verdict, err, v.States, full.States)
				}
				return
			}
			if !errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want a false claim: %q", err, test.want)
			}
		})
	}
}

// Members that are down, and properties that a reduction does not keep.
func TestNotReduced(t *testing.T) {
	a := algorithm(clients, voting(func(*toy, protocol.Event[uint8]) {}))
	for _, test := range []struct {
		want string
		make func(a *protocol.Algorithm[uint8], c *check.Config)
	}{
		{"not reduced by order: no message is claimed", func(_ *protocol.Algorithm[uint8], c *check.Config) {}},
		{"not reduced by symmetry: members are not", func(_ *protocol.Algorithm[uint8], c *check.Config) {}},
		{"not reduced by order: toy/all needs every order", func(a *protocol.Algorithm[uint8], c *check.Config) {
			a.Confluent = func(protocol.Process[uint8], protocol.ID, uint8, bool) bool { return false }
			a.Invariants = []protocol.Invariant{{Name: "toy/all", Err: func(*protocol.View) error { return nil }}}
		}},
		{"not reduced by symmetry: 1 members are", func(a *protocol.Algorithm[uint8], c *check.Config) {
			a.Interchangeable = func(protocol.Config) bool { return true }
			a.Permute = func(protocol.Process[uint8], func(protocol.ID) protocol.ID) {}
			c.Down = []protocol.ID{0, 2}
		}},
		{"with these options members are not", func(a *protocol.Algorithm[uint8], c *check.Config) {
			a.Interchangeable = func(protocol.Config) bool { return false }
			a.Permute = func(protocol.Process[uint8], func(protocol.ID) protocol.ID) {}
		}},
	} {
		b, c := a, config(3)
		c.Clients = 2
		test.make(&b, &c)
		full := run(t, b, c)
		c.Reduce = []string{check.ReduceOrder, check.ReduceSymmetry}
		v := run(t, b, c)
		if !strings.Contains(v.Bounds, test.want) || v.States != full.States {
			t.Errorf("%d states, want %d with %q\n%s", v.States, full.States, test.want, v.Bounds)
		}
	}
	c := config(2)
	c.Clients, c.Reduce = 2, []string{"magic"}
	if _, err := check.Run(a, c); err == nil || !strings.Contains(err.Error(), `"magic": want order or symmetry`) {
		t.Errorf("an unknown reduction: %v", err)
	}
}
