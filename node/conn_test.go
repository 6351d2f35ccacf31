package node

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
)

// What arrives while an acknowledgement is being made is still to be acknowledged.
func TestLateDebt(t *testing.T) {
	c := newConn(new(Node), nil, nil, false, time.Second)
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

// Connections that owe something acknowledge it between half of ackDelay and all of it later, with one timer.
func TestAcker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(Node)
		began := time.Now()
		var all sync.WaitGroup
		for k := range 5 {
			c := newConn(n, nil, nil, false, time.Second)
			all.Go(func() {
				time.Sleep(time.Duration(k) * 9 * time.Millisecond)
				owes := time.Now()
				c.oweAck(1)
				<-c.wake
				if took := time.Since(owes); took < ackDelay/2 || took > ackDelay {
					t.Errorf("what is owed after %v is acknowledged %v later", owes.Sub(began), took)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		if n.acker.set || len(n.acker.young)+len(n.acker.old) > 0 {
			t.Error("the timer goes on for nobody")
		}
		c := newConn(n, nil, nil, false, time.Second)
		c.oweAck(1)
		<-c.wake
	})
}

// A connection from a member that says nothing ends by itself: where no lease ends its session nobody else would notice.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 10 * time.Second
		n, err := newNode(Config{
			Peers: []Peer{{Name: "p1", Addr: "127.0.0.1:1"}, {Name: "p2", Addr: "127.0.0.1:2"}},
			Hosts: map[Kind]Host{Mutex: HostOf(ricartagrawala.Algorithm)},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer n.cancel()
		near, far := net.Pipe()
		defer far.Close()
		c := newConn(n, near, bufio.NewReader(near), false, lease)
		c.s = newSession(n, 1, 1)
		began := time.Now()
		if err := c.read(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != lease {
			t.Errorf("%v after %v, want a timeout after %v", err, time.Since(began), lease)
		}
		near.Close()
	})
}
