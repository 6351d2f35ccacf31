package check_test

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A toy is a process with a few registers and a program given by the test: each
// test says what its processes do and nothing else.
type toy struct {
	id   protocol.ID
	n    int
	r    [4]uint64
	step func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8])
}

func (p *toy) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) { p.step(p, ev, out) }

// State implements protocol.Process.
func (p *toy) State(c *protocol.Codec) { c.Words(p.r[:]) }

type program = func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8])

// toyIn is the toy that p wraps.
func toyIn(p any) *toy {
	t, _ := protocol.As[*toy](p)
	return t
}

// algorithm makes an algorithm of toys. A message is one byte.
func algorithm(i protocol.Info, step program) protocol.Algorithm[uint8] {
	i.Name = "toy"
	return protocol.Algorithm[uint8]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
			return &toy{id: id, n: c.N, step: step}
		},
		Fields: func(m uint8, c *protocol.Codec) uint8 {
			protocol.Upto(c, &m, math.MaxUint8)
			return m
		},
		KindOf: func(uint8) int { return 0 },
		Ints:   func(uint8) int { return 1 },
		Text:   func(m uint8) string { return fmt.Sprintf("M(%d)", m) },
	}
}

var (
	peers   = protocol.Info{}
	clients = protocol.Info{
		Users: protocol.Clients, Cancels: true, Detector: protocol.LeaseDetector,
		Tolerates: protocol.Crash | protocol.Amnesia,
	}
)

func config(n int) check.Config { return check.Config{Config: protocol.Config{N: n}} }

// enter lets every user in at once.
func enter(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Try:
		out.Crit(0)
	case protocol.Exit:
		out.Rem()
	}
}

// wait lets nobody in.
func wait(*toy, protocol.Event[uint8], *protocol.Out[uint8]) {}
