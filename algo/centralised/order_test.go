package centralised

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// Whoever has heard of a request did so from the coordinator, which had queued it: the
// happened-before order is kept, though nobody has a clock, nor promises it. Entries are
// bounded, since else there is no bound on those that a process has not heard of.
func TestOrder(t *testing.T) {
	holds(t, causal.Of(Algorithm), order(3))
	holds(t, causal.Of(WithDenied), order(2))
}

// A process that hears of a request in another way overtakes it: entries do not follow
// the order in which requests are sent. The lecture, centralised algorithm, ordering.
func TestOrderOfTalkers(t *testing.T) {
	v, err := check.Run(causal.Of(talking(Algorithm)), order(2))
	want := []string{"try p1", "deliver p1 p3 said", "try p3"}
	if err != nil || v.Property != causal.Order || !slices.Equal(v.Trace, want) {
		t.Errorf("%s is %s (%s), %v, after %q, want %q", v.Property, v.Verdict, v.Bounds, err, v.Trace, want)
	}
}

func order(entries int) check.Config {
	return check.Config{
		Config: protocol.Config{N: 3}, Entries: []int{entries}, Properties: []string{causal.Order}, MaxMemory: 64 << 20,
	}
}

// A spoken message is one of the algorithm, or what a user says to all others as soon as
// its process has made its request.
type spoken struct {
	inner Message
	said  bool
}

type talker struct {
	protocol.Process[Message]
	out protocol.Out[Message]
}

// talking is a with users that talk, which the algorithm does not hear.
func talking(a protocol.Algorithm[Message]) protocol.Algorithm[spoken] {
	return protocol.Algorithm[spoken]{
		Info: a.Info,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[spoken] {
			return &talker{Process: a.New(id, c)}
		},
		Fields: func(m spoken, c *protocol.Codec) spoken {
			if c.Bool(&m.said); !m.said {
				m.inner = a.Visit(m.inner, c)
			}
			return m
		},
		KindOf: func(m spoken) int { return a.KindOf(m.inner) },
		Ints:   func(spoken) int { return 0 },
		Text: func(m spoken) string {
			if m.said {
				return "said"
			}
			return a.Text(m.inner)
		},
	}
}

// Step implements protocol.Process.
func (p *talker) Step(ev protocol.Event[spoken], out *protocol.Out[spoken]) {
	if ev.Msg.said {
		return
	}
	p.out.Reset()
	p.Process.Step(protocol.Event[Message]{Input: ev.Input, Msg: ev.Msg.inner}, &p.out)
	for _, e := range p.out.Effects {
		out.Effects = append(out.Effects, protocol.Effect[spoken]{Act: e.Act, Msg: spoken{inner: e.Msg}})
	}
	if ev.Kind == protocol.Try {
		out.Broadcast(spoken{said: true})
	}
}
