package node_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// attempts are when a client that has no session tries to connect to a member that does this with each connection.
func attempts(t *testing.T, length time.Duration, answer func(net.Conn)) (at []time.Duration, why error) {
	t.Helper()
	var network cable
	l, err := network.Listen("s1")
	must(t, err)
	defer l.Close()
	began := time.Now()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			at = append(at, time.Since(began))
			go answer(conn)
		}
	}()
	client := start(t, node.Config{
		Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(keeper(nil))), Peers: []node.Peer{{Name: "s1", Addr: "s1"}},
		Dial: network.dial, Boot: virtual(),
	})
	time.Sleep(length)
	_, why = client.Call(t.Context(), 0, nil)
	must(t, client.Close())
	return at, why
}

// A connection that is closed without an answer says nothing about TLS.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, why := attempts(t, 20*time.Second, func(conn net.Conn) {
			(&stranger{t, conn}).hear()
			conn.Close()
		})
		if why == nil || !strings.Contains(why.Error(), "closed the connection without an answer") || strings.Contains(why.Error(), "TLS") {
			t.Error(why)
		}
		if len(at) < 20 {
			t.Errorf("%d attempts in 20s at a member that is about to restart: %v", len(at), at)
		}
	})
}

// A client waits longer and longer for a member that has no room, never as long as another one, and at most crowdBackoff.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := func(conn net.Conn) {
			s := &stranger{t, conn}
			s.hear()
			s.say((&transport.Refuse{Code: transport.Full, What: "no room"}).Append)
			conn.Close()
		}
		at, why := attempts(t, 2*time.Minute, full)
		if why == nil || !strings.Contains(why.Error(), "no room") {
			t.Error(why)
		}
		waits := map[time.Duration]bool{}
		for i := range at[1:] {
			wait := at[i+1] - at[i]
			waits[wait] = true
			if wait > 4*time.Second || i > 10 && wait < 2*time.Second {
				t.Errorf("attempt %d comes after %v", i+1, wait)
			}
		}
		if len(at) < 30 || len(at) > 70 || len(waits) < len(at)/2 {
			t.Errorf("%d attempts in two minutes, after %d different waits", len(at), len(waits))
		}
	})
}

// A connection that breaks soon after a crowd is made again before the lease is over.
func TestBackOffAfterCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 2 * time.Second
		var network cable
		l, err := network.Listen("s1")
		must(t, err)
		defer l.Close()
		began := time.Now()
		var mu sync.Mutex
		var broke time.Time
		var again []time.Duration
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				mu.Lock()
				if !broke.IsZero() {
					again = append(again, time.Since(broke))
				}
				mu.Unlock()
				go func(conn net.Conn) {
					s := &stranger{t, conn}
					items, err := s.hear()
					if err != nil {
						return
					}
					h, err := transport.ReadHello(items[0].Body)
					must(t, err)
					if time.Since(began) < 30*time.Second {
						s.say((&transport.Refuse{Code: transport.Full, What: "no room"}).Append)
						conn.Close()
						return
					}
					w := transport.Welcome{Incarnation: 7, Session: h.Session, Received: 0, Lease: lease}
					s.say(w.Append)
					time.Sleep(lease / 4)
					mu.Lock()
					broke = time.Now()
					mu.Unlock()
					conn.Close()
				}(conn)
			}
		}()
		client := start(t, node.Config{
			Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(keeper(nil))), Peers: []node.Peer{{Name: "s1", Addr: "s1"}},
			Dial: network.dial, Boot: virtual(), Lease: lease,
		})
		time.Sleep(time.Minute)
		mu.Lock()
		if len(again) == 0 || again[0] > lease/2 {
			t.Errorf("connected again after %v, under a lease of %v", again[:min(3, len(again))], lease)
		}
		mu.Unlock()
		must(t, client.Close())
	})
}
