package check_test

import (
	"encoding/binary"
	"fmt"

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

func (p *toy) AppendState(b []byte) []byte {
	for _, v := range p.r {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func (p *toy) LoadState(b []byte) ([]byte, error) {
	for i := range p.r {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, protocol.ErrShort
		}
		p.r[i], b = v, b[n:]
	}
	return b, nil
}

type program = func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8])

// algorithm makes an algorithm of toys. A message is one byte.
func algorithm(i protocol.Info, step program) protocol.Algorithm[uint8] {
	i.Name = "toy"
	return protocol.Algorithm[uint8]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
			return &toy{id: id, n: c.N, step: step}
		},
		Append: func(b []byte, m uint8) []byte { return append(b, m) },
		Read: func(b []byte) (uint8, []byte, error) {
			if len(b) == 0 {
				return 0, nil, protocol.ErrShort
			}
			return b[0], b[1:], nil
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
