package sigma

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/poundlock/poundlock/protocol"
)

// BenchmarkQueue is what a message costs a server at which many wait: an arrival
// and the exit of the owner, who is followed by the next one; a repeated REQUEST;
// a message of somebody unknown.
func BenchmarkQueue(b *testing.B) {
	for _, waiters := range []int{0, 10, 10_000} {
		c := protocol.Config{N: 4, Options: map[string]int64{"fence": FenceOn}}
		var out protocol.Out[Message]
		server := func() (step func(protocol.ID, Message), next *uint64) {
			s, at := Algorithm.New(0, c), uint64(1e15)
			step = func(from protocol.ID, m Message) {
				out.Reset()
				in := protocol.Input{Kind: protocol.Receive, From: from, Now: 1e15}
				s.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
			}
			out.Reset()
			s.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Start, Arg: 1, Now: 1e15}}, &out)
			for range 1 + waiters {
				step(protocol.ID(at), Message{Kind: Request, Time: at})
				at++
			}
			return step, &at
		}
		b.Run(fmt.Sprintf("turn/%d", waiters), func(b *testing.B) {
			step, at := server()
			oldest := *at - uint64(waiters) - 1
			b.ReportAllocs()
			for b.Loop() {
				step(protocol.ID(*at), Message{Kind: Request, Time: *at})
				step(protocol.ID(oldest), Message{Kind: Release, Time: oldest})
				*at++
				oldest++
			}
		})
		b.Run(fmt.Sprintf("inquiry/%d", waiters), func(b *testing.B) {
			step, at := server()
			b.ReportAllocs()
			for b.Loop() {
				step(protocol.ID(*at-1), Message{Kind: Inquiry, Time: *at - 1})
			}
		})
		b.Run(fmt.Sprintf("stranger/%d", waiters), func(b *testing.B) {
			step, at := server()
			b.ReportAllocs()
			for b.Loop() {
				step(5, Message{Kind: Inquiry, Time: *at})
			}
		})
	}
}

// A server of a lock that is held, and that nobody waits for, is this large: 100 000
// locks are no small number.
func TestServerSize(t *testing.T) {
	if got := unsafe.Sizeof(Server{}); got > 80 {
		t.Errorf("a server has %d bytes for each lock, want at most 80", got)
	}
	w, _ := holder()
	if q := w.server(s1).queue; q != nil {
		t.Errorf("nobody waits, and there is a queue: %v", q)
	}
}
