package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

const (
	maxCalls        = 64 // control requests that are answered at once
	maxCallsOfOne   = 16 // of one connection
	maxCallsWaiting = 64 // of this end, on one connection
)

// An answer ends a call.
type answer struct {
	body []byte
	err  error
}

// Call sends a control request to a process that this node has a session with,
// a member as a rule, and waits for the answer. Its errors do not name the process. It is not repeated: when the
// connection breaks, it fails. For one that is on its way it waits.
func (n *Node) Call(ctx context.Context, to protocol.ID, request []byte) ([]byte, error) {
	if len(request) > transport.MaxRequest {
		return nil, fmt.Errorf("a request of %d bytes exceeds %d", len(request), transport.MaxRequest)
	}
	n.demand.want()
	defer n.demand.done()
	c, err := n.sessions.reach(ctx, to)
	if err != nil {
		return nil, &connectionError{err}
	}
	reply := make(chan answer, 1)
	number, err := c.call(request, reply)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-reply:
		if a.err != nil {
			return nil, a.err
		}
		return a.body, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, number)
		c.mu.Unlock()
		return nil, &silence{context.Cause(ctx)}
	}
}

func (c *conn) call(request []byte, reply chan<- answer) (number uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return 0, c.why
	}
	if len(c.calls) >= maxCallsWaiting {
		return 0, errors.New("too many calls wait for answers")
	}
	c.number++
	c.calls[c.number] = reply
	c.out = append(c.out, transport.Item{Type: transport.CallItem, Seq: c.number, Body: request}.Append(nil))
	c.signal()
	return c.number, nil
}

func (c *conn) answered(number uint64, kind uint8, body []byte) {
	c.mu.Lock()
	reply := c.calls[number]
	delete(c.calls, number)
	c.mu.Unlock()
	if reply == nil {
		return // the caller has given up
	}
	if kind != 0 {
		reply <- answer{err: errors.New(string(body))}
		return
	}
	reply <- answer{body: bytes.Clone(body)}
}

// serve answers a request of the peer on a goroutine of its own. A peer with too
// many open requests breaks the rules; a node with too many says so.
func (c *conn) serve(number uint64, request []byte) error {
	c.mu.Lock()
	c.serving++
	over := c.serving > maxCallsWaiting
	mine := c.serving <= maxCallsOfOne
	c.mu.Unlock()
	if over {
		return errors.New("too many requests at once")
	}
	if c.n.c.Call == nil {
		c.reply(number, 1, []byte("control requests are not answered here"))
		return nil
	}
	if mine {
		select {
		case c.n.calls <- struct{}{}:
		default:
			mine = false
		}
	}
	if !mine {
		c.reply(number, 1, []byte("too many requests at once, try again"))
		return nil
	}
	request = bytes.Clone(request) // the frame need not be kept for it
	c.n.wg.Go(func() {
		defer func() { <-c.n.calls }()
		b, err := c.n.answer(c.s.id, request)
		if err != nil {
			c.reply(number, 1, []byte(err.Error()))
			return
		}
		c.reply(number, 0, b)
	})
	return nil
}

// maxAnswer is how large the answers of this node may be.
func (n *Node) maxAnswer() int {
	if n.roles.member() {
		return transport.MaxBody
	}
	return transport.MaxRequest
}

// answer asks Config.Call. A panic fails this request only.
func (n *Node) answer(from protocol.ID, request []byte) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			n.c.Log.Error("an answer panicked", "peer", n.roles.name(from), "panic", p, "stack", string(debug.Stack()))
			err = errors.New("the request failed here, its reason is in the log")
		}
	}()
	b = n.c.Call(from, request)
	if most := n.maxAnswer(); len(b) > most {
		return nil, fmt.Errorf("the answer of %d bytes exceeds %d", len(b), most)
	}
	return b, nil
}

// reply queues an answer. One that the peer does not read breaks the connection
// instead of filling memory.
func (c *conn) reply(number uint64, kind uint8, body []byte) {
	item := transport.Item{Type: transport.ReplyItem, Kind: kind, Seq: number, Body: body}.Append(nil)
	c.mu.Lock()
	c.serving--
	over := len(c.out) >= maxCallsWaiting
	if !over {
		c.out = append(c.out, item)
	}
	c.mu.Unlock()
	if over {
		c.close(errors.New("too many answers are not read"))
		return
	}
	c.signal()
}
