package node

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/poundlock/poundlock/protocol"
)

// A Host makes the processes of one algorithm, message type erased. HostOf
// returns one; the catalog exports one for each algorithm.
type Host interface {
	Info() protocol.Info
	// New makes process id of one lock, before its Start.
	New(id protocol.ID, c protocol.Config) Instance
}

// An Instance is one process of one lock.
type Instance interface {
	// Step gives the event to the process; msg is the encoded message of a
	// Receive. Effects reach the sink in order. ErrMessage says that msg is
	// malformed and that nothing happened; any other error that the process
	// panicked, had no effect, and must not be used again.
	Step(in protocol.Input, msg []byte, sink Sink) error
	// AppendState appends the canonical state: equal states, equal bytes.
	AppendState(b []byte) []byte
	// Standing is what a member knows about holders and waiters.
	Standing() protocol.Standing
}

// A Sink receives the effects of a step. The bytes of a message are valid during
// the call only.
type Sink interface {
	Effect(a protocol.Act, msg []byte)
}

// ErrMessage says that a message is malformed.
var ErrMessage = errors.New("node: malformed message")

// HostOf returns the host of an algorithm. It may be used by many goroutines;
// each of its instances by one at a time.
func HostOf[M any](a protocol.Algorithm[M]) Host {
	h := &host[M]{algorithm: a}
	h.scratch.New = func() any { return new(scratch[M]) }
	return h
}

type host[M any] struct {
	algorithm protocol.Algorithm[M]
	scratch   sync.Pool // of *scratch[M]
}

// A scratch is the memory of one step, kept from step to step.
type scratch[M any] struct {
	out protocol.Out[M]
	msg []byte
}

func (h *host[M]) Info() protocol.Info { return h.algorithm.Info }

func (h *host[M]) New(id protocol.ID, c protocol.Config) Instance {
	return &instanceOf[M]{h, h.algorithm.New(id, c)}
}

type instanceOf[M any] struct {
	host    *host[M]
	process protocol.Process[M]
}

func (i *instanceOf[M]) Step(in protocol.Input, msg []byte, sink Sink) error {
	ev := protocol.Event[M]{Input: in}
	if in.Kind == protocol.Receive {
		m, rest, err := i.host.algorithm.Read(msg)
		if err == nil && len(rest) != 0 {
			err = fmt.Errorf("%d bytes too many", len(rest))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMessage, err)
		}
		ev.Msg = m
	}
	s := i.host.scratch.Get().(*scratch[M])
	s.out.Reset()
	if err := i.step(ev, &s.out); err != nil {
		return err
	}
	for k := range s.out.Effects {
		e := &s.out.Effects[k]
		s.msg = s.msg[:0]
		if e.Do == protocol.Send || e.Do == protocol.Broadcast {
			s.msg = i.host.algorithm.Append(s.msg, e.Msg)
		}
		sink.Effect(e.Act, s.msg)
	}
	i.host.scratch.Put(s)
	return nil
}

// step turns a panic of the process into an error: one lock that fails, not a
// node.
func (i *instanceOf[M]) step(ev protocol.Event[M], out *protocol.Out[M]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("node: %s panicked: %v\n%s", i.host.algorithm.Name, p, debug.Stack())
		}
	}()
	i.process.Step(ev, out)
	return nil
}

func (i *instanceOf[M]) AppendState(b []byte) []byte { return i.process.AppendState(b) }

func (i *instanceOf[M]) Standing() protocol.Standing {
	if i.host.algorithm.Inspect == nil {
		return protocol.Standing{}
	}
	return i.host.algorithm.Inspect(i.process)
}
