package node_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// An observed connection tells before it is closed from here.
type observed struct {
	net.Conn
	closing func()
}

func (o *observed) Close() error {
	o.closing()
	return o.Conn.Close()
}

// suspicions are the processes that have heard Suspect, in their order.
func suspicions(d *diary) (who []string) {
	for _, e := range d.take() {
		if e.Kind == protocol.Suspect {
			who = append(who, fmt.Sprint(e))
		}
	}
	return who
}

// A session that ends with its connection ends at the client before that closes it, whatever the reason, and at the member at once: so the member
// never gives away what the client counts on. Without the option nothing of that ends a session.
func TestEndWithConnection(t *testing.T) {
	const lease = 10 * time.Second
	for name, story := range map[string]struct {
		break_ func(c *node.Node, wire *cable, raw net.Conn)
		within time.Duration // until the member suspects the client
		plain  string        // who has suspected whom by then, without the option
		ended  string        // and with it
	}{
		"killed": { // the system closes the connection, and the test knows nothing else of a process that is gone
			break_: func(_ *node.Node, _ *cable, raw net.Conn) { raw.Close() },
			plain:  "[]", ended: "[client suspect s1 suspect]",
		},
		"moved": {
			break_: func(c *node.Node, _ *cable, _ net.Conn) {
				if err := c.SetTable(1, []node.Peer{{Name: "s1", Addr: "elsewhere"}}); err != nil {
					panic(err)
				}
			},
			plain: "[]", ended: "[client suspect s1 suspect]",
		},
		"silent": {
			break_: func(_ *node.Node, wire *cable, _ net.Conn) { wire.Cut(true) },
			within: lease * 6 / 10, plain: "[]", ended: "[client suspect s1 suspect]",
		},
		"closed": {
			break_: func(c *node.Node, _ *cable, _ net.Conn) { c.Close() },
			plain:  "[s1 suspect]", ended: "[s1 suspect]",
		},
	} {
		for _, option := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,option=%v", name, option), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var wire cable
					var d diary
					var client *node.Node
					var mu sync.Mutex
					var raw net.Conn
					early := false
					c := wire.members(t, 1, node.HostOf(keeper(d.add)), nil)
					c.Lease, c.EndWithConnection = lease, option
					c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
						conn, err := wire.dial(ctx, p)
						if err != nil {
							return nil, err
						}
						mu.Lock()
						defer mu.Unlock()
						raw = conn
						return &observed{conn, func() { early = early || client.Alive() > 0 || !d.has(client.ID(), protocol.Suspect, 0) }}, nil
					}
					client = start(t, c)
					must(t, client.WaitAlive(t.Context(), 1))
					u := newProbe()
					must(t, client.Try(node.Mutex, "a", u, false))
					<-u.crit
					time.Sleep(lease + lease/100) // it lives by heartbeats, of which none is under way now
					d.take()
					mu.Lock()
					first := raw
					mu.Unlock()
					story.break_(client, &wire, first)
					synctest.Wait()
					time.Sleep(story.within)
					synctest.Wait()
					want := story.plain
					if option {
						want = story.ended
					}
					got := suspicions(&d)
					if name == "killed" {
						slices.Sort(got) // nobody is there any more whose order counts
					}
					if fmt.Sprint(got) != want {
						t.Errorf("%v, want %s", got, want)
					}
					if option && early && name != "closed" {
						t.Error("the client closed a connection while it counted on the session")
					}
				})
			})
		}
	}
}

// A member ends a session only with the connection that it has, when the client has closed that, and where the client asked for it.
func TestEndOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		wire.members(t, 1, node.HostOf(keeper(nil)), nil)
		h := greeting
		plain := wire.visit(t, h)
		plain.until(transport.WelcomeItem)
		plain.conn.Close()
		synctest.Wait()
		h.Resume = true
		again := wire.visit(t, h)
		again.until(transport.WelcomeItem) // it goes on

		h.EndsWithConnection = true
		second := wire.visit(t, h)
		second.until(transport.WelcomeItem)
		again.conn.Close() // it was replaced
		synctest.Wait()
		third := wire.visit(t, h)
		third.until(transport.WelcomeItem)
		if _, err := third.conn.Write([]byte{0, 0, 1, 0, transport.Version}); err != nil { // a frame that does not end
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second) // then the member closes the connection
		fourth := wire.visit(t, h)
		fourth.until(transport.WelcomeItem)
		fourth.conn.Close()
		synctest.Wait()
		wire.visit(t, h).refused(transport.UnknownSession)
	})
}

// A middle box that ends a server's half of a connection, and not the client's, makes that server forget the client. One of four
// servers may: nobody gets in beside the client. Where it does so to all of them somebody does, until the client has noticed: that is what the
// documents warn of.
func TestMiddleBoxThatLies(t *testing.T) {
	const lease = 10 * time.Second
	for _, lies := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			var wire cable
			var mu sync.Mutex
			behind := map[string]net.Conn{} // the server's half, by server
			c := wire.members(t, 4, node.HostOf(sigma.Algorithm), nil)
			c.Lease = lease
			next := start(t, c)
			c.Secret, c.EndWithConnection = node.NewSecret(), true
			c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				far, err := wire.dial(ctx, p)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				behind[p.Name] = far
				mu.Unlock()
				near, half := net.Pipe()
				go func() { // what the client says; its end is passed on
					io.Copy(far, half)
					far.Close()
					io.Copy(io.Discard, half)
					half.Close()
				}()
				go io.Copy(half, far) // what the server says; its end is not
				return near, nil
			}
			holder := start(t, c)
			for _, n := range []*node.Node{holder, next} {
				must(t, n.WaitAlive(t.Context(), 4))
			}
			u, v := newProbe(), newProbe()
			must(t, holder.Try(node.Mutex, "a", u, false))
			<-u.crit
			must(t, next.Try(node.Mutex, "a", v, false))
			synctest.Wait()
			for k := range lies {
				mu.Lock()
				behind[fmt.Sprint("s", k+1)].Close()
				mu.Unlock()
			}
			began := time.Now()
			synctest.Wait()
			beside := len(v.crit) > 0 && len(u.ejected) == 0
			if want := lies > 1; beside != want {
				t.Errorf("%d lies: two are inside: %v, want %v", lies, beside, want)
			}
			if lies > 1 {
				<-u.ejected
				t.Logf("the holder notices after %v of a lease of %v", time.Since(began), lease)
				if took := time.Since(began); took > lease {
					t.Errorf("the holder noticed after %v", took)
				}
				holder.Exit("a")
				<-u.rem
				return
			}
			time.Sleep(3 * lease)
			if len(v.crit) > 0 || len(u.ejected) > 0 {
				t.Errorf("one lie: the next one is inside: %v, the holder is ejected: %v", len(v.crit) > 0, len(u.ejected) > 0)
			}
			holder.Exit("a")
			<-u.rem
			<-v.crit
		})
	}
}
