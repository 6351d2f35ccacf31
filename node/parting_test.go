package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
)

// A client that has said good-bye to a member does not take the session up again while
// it waits for another one: the member would not know it, and the log would say that
// it has lost its memory.
func TestGoodByeIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		var silent faultnet.Cable
		var log proctest.Log
		c := wire.members(t, 4, node.HostOf(sigma.Algorithm), nil)
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
			conn, err := wire.dial(ctx, p)
			if err == nil && p.Name == "s4" {
				conn = silent.Wrap(conn)
			}
			return conn, err
		}
		n := start(t, c)
		must(t, n.WaitAlive(t.Context(), 4))
		silent.Cut(true)
		must(t, n.Try(node.Mutex, "a", newProbe(), false)) // which s4 does not acknowledge
		synctest.Wait()
		began := time.Now()
		must(t, n.Close())
		if took := time.Since(began); took < time.Second {
			t.Errorf("closed after %v: s4 was not waited for", took)
		}
		if text := log.String(); strings.Contains(text, "peer=s1") {
			t.Errorf("the log has something about a member that is well:\n%s", text)
		}
	})
}

// A client that closes while a member hands its table over says good-bye to the
// successor. To a member that is gone it says nothing, and does not wait either.
func TestGoodByeToSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		c := f.clients(1, host, nil)[0]
		must(t, c.WaitAlive(t.Context(), 4))
		frozen, err := f.nodes[0].Freeze()
		must(t, err)
		var table bytes.Buffer
		_, err = frozen.Write(&table)
		must(t, err)
		next, _, err := node.Restore(f.configs[0], &table)
		must(t, err)
		time.Sleep(300 * time.Millisecond) // the client's attempts become rare
		l, err := f.listen(f.peers[0].Addr)
		must(t, err)
		must(t, f.nodes[0].Close())
		f.nodes[0] = next.Node()
		next.Thaw()
		must(t, next.Node().Serve(l))
		must(t, c.Close())
		end := time.Now().Add(5 * time.Second) // half a lease
		for len(f.nodes[0].Sessions()) > 0 {
			if time.Now().After(end) {
				t.Fatal("the successor still has a session with the client")
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// late notices the end of a connection late, and before that writes into it in vain, as TCP
// does.
type late struct {
	net.Conn
}

func (l late) Write(b []byte) (int, error) {
	_, _ = l.Conn.Write(b)
	return len(b), nil
}

func (l late) Read(b []byte) (int, error) {
	k, err := l.Conn.Read(b)
	if err != nil {
		time.Sleep(50 * time.Millisecond)
	}
	return k, err
}

// A client that closes before it has noticed that a member, which hands its table over, has
// broken the connection says good-bye to the successor all the same.
func TestGoodByeOnBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		c := f.clients(1, host, func(c *node.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				conn, err := dial(ctx, p)
				if err == nil {
					conn = late{conn}
				}
				return conn, err
			}
		})[0]
		must(t, c.WaitAlive(t.Context(), 4))
		f.handOver(0)
		must(t, c.Close())
		time.Sleep(5 * time.Second) // half a lease
		if k := len(f.nodes[0].Sessions()); k > 0 {
			t.Errorf("the successor has %d sessions", k)
		}
	})
}

// A good-bye that was heard is said once.
func TestGoodByeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		c := f.clients(1, host, func(c *node.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, p)
			}
		})[0]
		must(t, c.WaitAlive(t.Context(), 4))
		must(t, c.Close())
		if k := dials.Load(); k != 4 {
			t.Errorf("%d connections to four members", k)
		}
		synctest.Wait()
		for k, n := range f.nodes {
			if got := len(n.Sessions()); got > 0 {
				t.Errorf("s%d has %d sessions", k+1, got)
			}
		}
	})
}

// Who closes does not wait for members that are gone.
func TestGoodByeToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		var gone atomic.Bool
		c := wire.members(t, 1, node.HostOf(keeper(nil)), nil)
		c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("connection refused")
			}
			return wire.dial(ctx, p)
		}
		n := start(t, c)
		must(t, n.WaitAlive(t.Context(), 1))
		gone.Store(true)
		wire.Cut(false) // breaks the connection
		time.Sleep(2 * time.Second)
		if len(n.Sessions()) != 1 {
			t.Fatal("the lease is over")
		}
		began := time.Now()
		must(t, n.Close())
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v to close", took)
		}
	})
}

// A client that closes before a member's welcome has come says good-bye to that one, too:
// it would count as a client there until its lease lapses.
func TestGoodByeToLateWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSlowBubble(t, 10*time.Second, 100*time.Millisecond, 1, 1)
		defer b.close()
		n := start(t, node.Config{
			Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(keeper(func(keeperEvent) {}))),
			Peers: []node.Peer{{Name: "s1", Addr: "s1"}}, Dial: b.cable.dial, Boot: virtual(),
		})
		synctest.Wait()
		if k := len(b.server.Sessions()); k != 2 || n.Alive() != 0 {
			t.Fatalf("%d sessions at the member, %d here: nothing is tested", k, n.Alive())
		}
		must(t, n.Close())
		synctest.Wait()
		if k := len(b.server.Sessions()); k != 1 {
			t.Errorf("the member has %d sessions, want that of the other client", k)
		}
	})
}
