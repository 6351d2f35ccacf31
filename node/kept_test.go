package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/transport"
)

// A Try that finds servers busy as the last acknowledgement comes must not wait for ever.
func TestKeptAsRoomComes(t *testing.T) {
	for range 200 {
		n, err := newNode(Config{
			Secret: 12345, Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}, {Name: "s2", Addr: "127.0.0.1:2"}},
			Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var all [2]*session
		for k := range all {
			s := newSession(n, 0, 1)
			s.id = 0
			if k == 1 {
				s = newSession(n, 1, 1)
			}
			s.agree(7, "", time.Minute, n.c.Boot())
			n.sessions.byPeer[s.id] = s
			all[k] = s
		}
		full, other := all[0], all[1]
		for k := range firstPace {
			if err := full.send(transport.MessageItem, Mutex, fmt.Sprint(k), []byte("x"), false); err != nil {
				t.Fatal(err)
			}
		}
		full.window.Take(nil, 1<<30)
		other.mu.Lock() // the goroutine of the Try is not on a processor here
		done := make(chan struct{})
		l := n.loops[0]
		u := &user{}
		go func() {
			n.pacer.try(l, event{op: opTry, name: "a"}, u)
			close(done)
		}()
		time.Sleep(5 * time.Millisecond)
		full.mu.Lock()
		looked := full.pace.full
		full.mu.Unlock()
		if !looked { // the order of a map: the other one is looked at first
			other.mu.Unlock()
			<-done
			n.cancel()
			continue
		}
		// As conn.control does with an AckItem of all that is on its way:
		acked := make(chan struct{})
		go func() {
			full.mu.Lock()
			full.window.Ack(firstPace)
			full.mu.Unlock()
			n.pacer.admit()
			close(acked)
		}()
		select {
		case <-acked:
		case <-time.After(20 * time.Millisecond): // it waits for the pacer, which is right
		}
		other.mu.Unlock()
		<-done
		<-acked
		if w := n.pacer.waiting.Load(); w != 0 {
			t.Errorf("%d Try waits, with nothing on its way to anybody, room %d", w, n.pacer.room())
		}
		// and so does whoever comes later
		n.pacer.try(l, event{op: opTry, name: "b"}, &user{})
		if w := n.pacer.waiting.Load(); w != 0 {
			t.Errorf("%d Tries wait", w)
		}
		n.cancel()
		return
	}
	t.Fatal("never that order")
}
