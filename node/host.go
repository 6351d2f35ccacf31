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

// An Instance is one process of one lock. None of its methods panics: a panic of
// the algorithm is an error.
type Instance interface {
	// Step gives the event to the process; msg is the encoded message of a
	// Receive. Effects reach the sink in order. ErrMessage says that msg is
	// malformed and that nothing happened; any other error that the process
	// panicked, that effects are missing, and that it must not be used again.
	Step(in protocol.Input, msg []byte, sink Sink) error
	// AppendState appends the canonical state: equal states, equal bytes. After an
	// error the process must not be used again.
	AppendState(b []byte) ([]byte, error)
	// Waiting is how many requests wait in the queue of a member. It costs little.
	Waiting() int
	// Load replaces the state of a process that New has just made by an encoded one:
	// it goes on where the other one was, and gets no Start. After an error it must
	// not be used.
	Load(state []byte) error
	// Standing is what a member knows about holders and waiters. An error leaves
	// the process as it was.
	Standing() (protocol.Standing, error)
}

// A Sink receives the effects of a step. It does not panic.
type Sink interface {
	// Received comes first where the event is a Receive: the message is of that kind,
	// an index of Info.Messages.
	Received(kind int)
	// Snapshot comes next where the message brings a copy of the object. An error refuses the message.
	Snapshot(object string) error
	// Effect is one effect; msg is of that kind where there is a message, and its bytes
	// are valid during the call only.
	Effect(a protocol.Act, kind int, msg []byte)
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
	out   protocol.Out[M]
	codec protocol.Codec
	msg   []byte
}

func (h *host[M]) Info() protocol.Info { return h.algorithm.Info }

func (h *host[M]) New(id protocol.ID, c protocol.Config) Instance {
	i := &instanceOf[M]{host: h, client: id >= protocol.ID(c.N), members: int32(c.N)}
	if err := h.guard(func() { i.process = h.algorithm.New(id, c) }); err != nil {
		return broken{err}
	}
	_, i.queues = protocol.As[protocol.Queuer](i.process)
	return i
}

// A broken instance is one whose process could not be made.
type broken struct{ error }

func (i broken) Step(protocol.Input, []byte, Sink) error  { return i.error }
func (i broken) AppendState(b []byte) ([]byte, error)     { return b, i.error }
func (i broken) Waiting() int                             { return 0 }
func (i broken) Load([]byte) error                        { return i.error }
func (i broken) Standing() (s protocol.Standing, _ error) { return s, i.error }

// guard calls code of the algorithm and turns a panic into an error: one lock
// that fails, not a node.
func (h *host[M]) guard(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("node: %s panicked: %v\n%s", h.algorithm.Name, p, debug.Stack())
		}
	}()
	f()
	return nil
}

type instanceOf[M any] struct {
	host    *host[M]
	process protocol.Process[M]
	members int32
	client  bool
	queues  bool // it is a protocol.Queuer: to look each time takes longer than to ask it
}

func (i *instanceOf[M]) Step(in protocol.Input, msg []byte, sink Sink) error {
	s := i.host.scratch.Get().(*scratch[M])
	s.out.Reset()
	if err := i.step(in, msg, sink, s); err != nil {
		return err
	}
	for k := range s.out.Effects {
		e := &s.out.Effects[k]
		s.msg = s.msg[:0]
		kind := 0
		if e.Do == protocol.Send || e.Do == protocol.Broadcast {
			err := i.host.guard(func() {
				i.host.algorithm.Fields(e.Msg, s.codec.Appending(s.msg))
				s.msg = s.codec.Bytes()
				kind = i.host.algorithm.KindOf(e.Msg)
			})
			if err != nil {
				return err
			}
		}
		sink.Effect(e.Act, kind, s.msg)
	}
	i.host.scratch.Put(s)
	return nil
}

func (i *instanceOf[M]) step(in protocol.Input, msg []byte, sink Sink, s *scratch[M]) error {
	var malformed error
	err := i.host.guard(func() {
		ev := protocol.Event[M]{Input: in}
		if in.Kind == protocol.Receive {
			var rest []byte
			ev.Msg = i.host.algorithm.Visit(ev.Msg, s.codec.Loading(msg))
			if rest, malformed = s.codec.Rest(); malformed == nil && len(rest) != 0 {
				malformed = fmt.Errorf("%d bytes too many", len(rest))
			}
			if malformed == nil {
				kind := i.host.algorithm.KindOf(ev.Msg)
				sink.Received(kind)
				if malformed = i.foreign(kind); malformed == nil && !i.fits(ev.Msg) {
					malformed = fmt.Errorf("no process of %d members sends this %s", i.members, i.host.algorithm.Messages[kind].Name)
				}
				if malformed == nil {
					malformed = i.brings(ev.Msg, sink)
				}
			}
		}
		if malformed == nil {
			i.process.Step(ev, &s.out)
		}
	})
	if malformed != nil {
		return fmt.Errorf("%w: %w", ErrMessage, malformed)
	}
	return err
}

// fits reports whether a process of this system can have sent a message.
func (i *instanceOf[M]) fits(m M) bool {
	return i.host.algorithm.Fits == nil || i.host.algorithm.Fits(m, int(i.members), false)
}

// brings shows the sink what a message brings.
func (i *instanceOf[M]) brings(m M, sink Sink) error {
	if i.host.algorithm.Snapshot == nil {
		return nil
	}
	object, ok := i.host.algorithm.Snapshot(m)
	if !ok {
		return nil
	}
	if err := sink.Snapshot(object); err != nil {
		return fmt.Errorf("%s: %w", i.host.algorithm.Messages[i.host.algorithm.KindOf(m)].Name, err)
	}
	return nil
}

// foreign is the error of a message that the other end never sends.
func (i *instanceOf[M]) foreign(index int) error {
	kind := i.host.algorithm.Messages[index]
	if kind.From == protocol.OnlyMembers && !i.client || kind.From == protocol.OnlyClients && i.client {
		return fmt.Errorf("%s comes from the other side only", kind.Name)
	}
	return nil
}

func (i *instanceOf[M]) AppendState(b []byte) ([]byte, error) {
	s := i.host.scratch.Get().(*scratch[M])
	err := i.host.guard(func() {
		i.process.State(s.codec.Appending(b))
		b = s.codec.Bytes()
	})
	i.host.scratch.Put(s)
	return b, err
}

func (i *instanceOf[M]) Waiting() (k int) {
	if i.queues {
		p, _ := protocol.As[protocol.Queuer](i.process)
		// A panic there is one in the next step, too, or harms nobody.
		_ = i.host.guard(func() { k = p.Waiting() })
	}
	return k
}

func (i *instanceOf[M]) Load(state []byte) error {
	var rest []byte
	var malformed error
	err := i.host.guard(func() { rest, malformed = protocol.LoadState(state, i.process) })
	if err == nil && malformed == nil && len(rest) > 0 {
		malformed = fmt.Errorf("%d bytes too many", len(rest))
	}
	return errors.Join(err, malformed)
}

func (i *instanceOf[M]) Standing() (s protocol.Standing, err error) {
	if p, ok := protocol.As[protocol.Inspector](i.process); ok {
		err = i.host.guard(func() { s = p.Inspect() })
	}
	return s, err
}
