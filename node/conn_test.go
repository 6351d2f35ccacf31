package node

import (
	"bufio"
	"errors"
	"net"
	"testing"
	"time"
)

// What arrives while an acknowledgement is being made is still to be acknowledged.
func TestLateDebt(t *testing.T) {
	c := newConn(nil, nil, nil, false, time.Second)
	defer c.acker.Stop()
	owes := func() (received int, soon bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.unacked, c.ack
	}
	c.oweAck(2)
	c.oweAck(3) // after two were counted
	c.paidAck(2)
	if received, soon := owes(); received != 3 || !soon {
		t.Fatalf("%d messages are to be acknowledged, soon: %v; want 3", received, soon)
	}
	<-c.wake // the writer is called, though nothing more arrives
	c.paidAck(3)
	if received, soon := owes(); received != 0 || soon {
		t.Errorf("%d messages are to be acknowledged, soon: %v; want none", received, soon)
	}
	c.oweAck(1)
	c.paidAck(1)
	c.acknowledge() // its time has come
	select {
	case <-c.wake:
		t.Error("the writer is called for nothing")
	default:
	}
}

// A connection that ends while its reader has something else to do is not waited for again, though it is closed only later.
func TestInterrupted(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	c := newConn(nil, near, bufio.NewReader(near), true, time.Minute)
	c.isSession = true
	c.close(errMoved)
	if _, _, err := c.readFrame(time.Minute); !errors.Is(err, errMoved) {
		t.Errorf("%v, want %v", err, errMoved)
	}
}
