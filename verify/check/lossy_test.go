package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// ask enters when each other process has answered: it counts answers, and believes each.
func ask(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	const question, answer = 1, 2
	switch ev.Kind {
	case protocol.Try:
		out.Broadcast(question)
	case protocol.Receive:
		if ev.Msg == question {
			out.Send(ev.From, answer)
			return
		}
		if p.r[0]++; p.r[0] >= uint64(p.n-1) {
			out.Crit(0)
		}
	case protocol.Exit:
		out.Rem()
	}
}

// bearing is an algorithm of toys whose model has lossy channels, rightly or not.
func bearing(step program) protocol.Algorithm[uint8] {
	return algorithm(protocol.Info{Tolerates: protocol.Loss | protocol.Duplication}, step)
}

// A budget of one lost message shows one way to wait for ever, and only then.
func TestLoss(t *testing.T) {
	c := config(2)
	c.Entries, c.Properties = []int{1, 0}, []string{check.Deadlock}
	if v, err := check.Run(bearing(ask), c); err != nil || v.Verdict != check.Holds {
		t.Fatal(v, err)
	}
	c.Loss = 1
	v, err := check.Run(bearing(ask), c)
	if err != nil || v.Verdict != check.Violated || strings.Join(v.Trace, "; ") != "try p1; lose p1 p2 M(1)" {
		t.Fatal(v, err)
	}
	if !strings.Contains(v.Bounds, "loss=1") {
		t.Error(v.Bounds)
	}
	// Its trace is a prefix.
	names := scenario.Names{Members: 2}
	if c.Prefix, err = names.Parse(strings.NewReader(strings.Join(v.Trace, "\n"))); err != nil {
		t.Fatal(err)
	}
	if v, err = check.Run(bearing(ask), c); err != nil || v.Verdict != check.Violated || len(v.Trace) != 2 {
		t.Error(v, err)
	}
	c.Loss = 0
	if _, err = check.Run(bearing(ask), c); err == nil || !strings.Contains(err.Error(), "no budget left") {
		t.Errorf("a loss that there is no budget for: %v", err)
	}
}

// A repeated answer is counted for another one. The same holds on FIFO channels, where
// the copy stands behind the message.
func TestDup(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		c := config(3)
		c.Entries, c.Dup, c.FIFO = []int{1, 0, 0}, 1, fifo
		v, err := check.Run(bearing(ask), c)
		if err != nil || v.Property != check.WellFormed || len(v.Trace) == 0 {
			t.Fatalf("fifo=%v: %+v, %v", fifo, v, err)
		}
		if !strings.Contains(strings.Join(v.Trace, "; "), "duplicate ") {
			t.Errorf("fifo=%v: %v", fifo, v.Trace)
		}
	}
}

// What may arrive any number of times is not repeated.
func TestDupOfIdempotent(t *testing.T) {
	c := config(2)
	c.Entries = []int{1, 0}
	a := bearing(func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try {
			out.Broadcast(1)
		}
		enter(nil, ev, out)
	})
	a.Idempotent = func(uint8) bool { return true }
	alone, err := check.Run(a, c)
	c.Dup = 1
	again, err2 := check.Run(a, c)
	if err != nil || err2 != nil || alone.States != again.States || alone.Verdict != check.Holds {
		t.Errorf("%d states, and %d with copies: %v %v", alone.States, again.States, err, err2)
	}
}

func TestChannelErrors(t *testing.T) {
	c := config(2)
	c.Loss = 1
	if _, err := check.Run(algorithm(peers, ask), c); !errors.Is(err, protocol.ErrReliable) {
		t.Errorf("a loss that the model excludes: %v", err)
	}
	c.Loss, c.FIFO = 0, true
	a := bearing(ask)
	a.Stale = func(protocol.Process[uint8], protocol.Process[uint8], protocol.Channel, uint8) bool { return false }
	if _, err := check.Run(a, c); err == nil || !strings.Contains(err.Error(), "FIFO channels") {
		t.Errorf("FIFO channels of messages that stay: %v", err)
	}
}

// That a message is stale is verified where it is said.
func TestStaleClaim(t *testing.T) {
	const question, answer = 1, 2
	knows := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.Broadcast(question)
		case protocol.Receive:
			switch {
			case ev.Msg == question:
				out.Send(ev.From, answer)
			case p.r[0] == 0:
				p.r[0] = 1
				out.Crit(0)
			}
		case protocol.Exit:
			out.Rem()
		}
	}
	for name, test := range map[string]struct {
		stale func(from, to *toy, m uint8) bool
		want  string
	}{
		"what the sender knows to have arrived": {func(from, to *toy, m uint8) bool {
			return m == question && from.r[0] == 1 || m == answer && to.r[0] == 1
		}, ""},
		"an answer that nobody has yet": {func(_, _ *toy, m uint8) bool { return m == answer }, "M(2) is stale, and yet it does something"},
		"a question":                    {func(_, _ *toy, m uint8) bool { return m == question }, "M(1) is stale, and yet it does something"},
	} {
		a := bearing(knows)
		a.Idempotent = func(uint8) bool { return true }
		a.Stale = func(from, to protocol.Process[uint8], _ protocol.Channel, m uint8) bool {
			return test.stale(from.(*toy), to.(*toy), m)
		}
		c := config(2)
		c.Entries = []int{1, 0}
		v, err := check.Run(a, c)
		switch {
		case test.want == "" && (err != nil || v.Verdict != check.Holds):
			t.Errorf("%s: %+v, %v", name, v, err)
		case test.want != "" && (!errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
