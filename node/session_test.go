package node_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// members starts n members of host that listen on the cable, and returns what a
// client of theirs needs. Everybody has the same clock.
func (c *cable) members(t *testing.T, n int, host node.Host, change func(*node.Config)) node.Config {
	t.Helper()
	client := node.Config{Hosts: mutexes(host), Dial: c.dial, Boot: virtual()}
	for k := range n {
		name := fmt.Sprint("s", k+1)
		client.Peers = append(client.Peers, node.Peer{Name: name, Addr: name})
	}
	for k, p := range client.Peers {
		l, err := c.Listen(p.Addr)
		must(t, err)
		m := client
		m.ID, m.Listener = protocol.ID(k), l
		if change != nil {
			change(&m)
		}
		c.running = append(c.running, start(t, m))
	}
	client.Secret = node.NewSecret()
	return client
}

// visit has a stranger say hello to the member called s1.
func (c *cable) visit(t *testing.T, h transport.Hello) *stranger {
	t.Helper()
	conn, err := c.memory.Dial(t.Context(), "s1")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	s := &stranger{t, conn}
	s.say(h.Append)
	return s
}

// A member that gives a session up, for a reason that the client has not heard of,
// suspects the client when its lease is over or when it begins a new session, and
// not earlier: the client may still be inside.
func TestGivenUpClientKeepsItsLease(t *testing.T) {
	const lease, after = 10 * time.Second, 4 * time.Second
	name := fmt.Sprintf("%01000d", 0)
	for what, most := range map[string]int64{"full window": 0, "full node": 1 << 20} {
		for _, returns := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,returns=%v", what, returns), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var wire cable
					var d diary
					wire.members(t, 1, node.HostOf(keeper(d.add)), func(c *node.Config) { c.MaxUnacked, c.MaxLocks = most, 5000 })
					s := wire.visit(t, greeting)
					s.until(transport.WelcomeItem)
					began := time.Now()
					go io.Copy(io.Discard, s.conn)
					for k := range uint64(5000) { // more than 4 MB of answers that nobody acknowledges
						if _, err := s.conn.Write(frame(message(k+1, 1, name, enter))); err != nil {
							break
						}
					}
					suspected := func() (at time.Duration) {
						synctest.Wait()
						for _, e := range d.take() {
							if e.Kind == protocol.Suspect {
								return e.When.Sub(began)
							}
						}
						return -1
					}
					synctest.Wait()
					if _, err := s.conn.Write(frame()); err == nil {
						t.Error("the session goes on")
					}
					time.Sleep(after)
					if at := suspected(); at >= 0 {
						t.Fatalf("suspected after %v", at)
					}
					if returns {
						h := greeting
						h.Session++
						wire.visit(t, h).until(transport.WelcomeItem)
						if at := suspected(); at != after {
							t.Errorf("the new session began after %v, the suspicion came after %v", after, at)
						}
						return
					}
					h := greeting
					h.Resume = true
					wire.visit(t, h).refused(transport.UnknownSession)
					time.Sleep(2 * lease)
					if at := suspected(); at < lease || at > lease+time.Second {
						t.Errorf("suspected after %v, the lease was %v", at, lease)
					}
				})
			})
		}
	}
}

// More may wait for a client that may have more locks.
func TestWindowOfManyLocks(t *testing.T) {
	for locks, goesOn := range map[int]bool{5000: false, 0: true} { // 0: as many as usual
		synctest.Test(t, func(t *testing.T) {
			var wire cable
			wire.members(t, 1, node.HostOf(keeper(nil)), func(c *node.Config) { c.MaxLocks = locks })
			s := wire.visit(t, greeting)
			s.until(transport.WelcomeItem)
			go io.Copy(io.Discard, s.conn)
			name := fmt.Sprintf("%01000d", 0)
			var err error
			for k := uint64(0); k < 5000 && err == nil; k++ { // 5 MB of answers
				_, err = s.conn.Write(frame(message(k+1, 1, name, enter)))
			}
			synctest.Wait()
			if err == nil {
				_, err = s.conn.Write(frame())
			}
			if (err == nil) != goesOn {
				t.Errorf("%d locks: the session goes on: %v, want %v", locks, err == nil, goesOn)
			}
		})
	}
}

// A client that is cut off while the servers have much to tell it is alone inside
// for as long as it may believe so.
func TestCutWithFullWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		c := wire.members(t, 4, node.HostOf(sigma.Algorithm), func(c *node.Config) { c.MaxLocks = 2000 })
		a := start(t, c)
		c.Secret = node.NewSecret()
		c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) { return wire.memory.Dial(ctx, p.Addr) }
		b := start(t, c)
		must(t, a.WaitAlive(t.Context(), 4))
		must(t, b.WaitAlive(t.Context(), 4))
		name := func(k int) string { return fmt.Sprintf("%0990d", k) }
		const locks = 1500 // their messages are more than a window holds
		held := make([]*probe, locks)
		for k := range held {
			held[k] = newProbe()
			must(t, a.Try(node.Mutex, name(k), held[k], false))
		}
		for _, u := range held {
			<-u.crit
		}
		wants := newProbe()
		must(t, b.Try(node.Mutex, name(7), wants, false))
		time.Sleep(100 * time.Millisecond)
		wire.Cut(true)
		<-wants.crit
		select {
		case <-held[7].ejected:
		default:
			t.Error("two are inside")
		}
		wire.Cut(false)
		a.Close()
		b.Close()
	})
}

// An attempt to resume that its client gave up, late on the network, does not end
// the session that went on without it.
func TestStaleResume(t *testing.T) {
	servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), nil)
	first := visit(t, peers[0].Addr)
	first.say(greeting.Append)
	first.until(transport.WelcomeItem)
	first.conn.Close()
	h := greeting
	h.Resume = true
	late, live := visit(t, peers[0].Addr), visit(t, peers[0].Addr)
	live.say(h.Append)
	live.until(transport.WelcomeItem)
	live.say(message(1, 1, "a", enter))
	live.until(transport.MessageItem)
	live.say(transport.Item{Type: transport.AckItem, Seq: 1}.Append, transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	live.until(transport.PongItem)
	late.say(h.Append)
	late.refused(transport.Stale)
	live.say(transport.Item{Type: transport.PingItem, Seq: 2}.Append)
	live.until(transport.PongItem)
	if locks := servers[0].Locks(); len(locks) != 1 || len(locks[0].Standing.Holders) != 1 {
		t.Errorf("locks: %+v", locks)
	}
}

// Status tells everybody the ids of clients. Whoever says to be one of them, in
// whatever life and session, takes nothing from it, also at a member that has just restarted and knows nobody.
func TestImpostor(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	victim := node.NewSecret()
	c := start(t, node.Config{Secret: victim, Hosts: mutexes(host), Peers: peers})
	must(t, c.WaitAlive(t.Context(), 4))
	u := newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	<-u.crit
	before := sessionNumbers(c)
	impostor := func() {
		for _, secret := range []uint64{1, victim - 1, victim + 1, 1<<64 - 1} {
			for _, resume := range []bool{false, true} {
				for _, number := range []uint64{1, 2} {
					h := greeting
					h.From, h.Incarnation, h.Session, h.Resume = c.ID(), secret, number, resume
					h.Members, h.Kinds = "s1,s2,s3,s4", runs("sigma")
					s := visit(t, peers[0].Addr)
					s.say(h.Append)
					s.refused(transport.Misfit)
				}
			}
		}
	}
	impostor()
	if after := sessionNumbers(c); !slices.Equal(before, after) || len(u.ejected) != 0 {
		t.Errorf("sessions %v became %v", before, after)
	}
	must(t, servers[0].Close())
	l, err := transport.Listen(peers[0].Addr)
	must(t, err)
	servers[0] = start(t, node.Config{ID: 0, Hosts: mutexes(host), Peers: peers, Listener: l})
	impostor()
	eventually(t, "the client has a session at the server that restarted", func() bool { return len(servers[0].Sessions()) == 1 })
	if len(u.ejected) != 0 {
		t.Error("the holder is ejected")
	}
	c.Exit("a")
	<-u.rem
}

// A client hears of the lapse of each of its leases before the member at the other
// end does, also while its log hangs.
func TestLapseDespiteStalledLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		var d diary
		c := wire.members(t, 4, node.HostOf(keeper(d.add)), nil)
		c.Log = slog.New(stalling{slog.DiscardHandler})
		a := start(t, c)
		defer a.Close()
		must(t, a.WaitAlive(t.Context(), 4))
		u := newProbe()
		must(t, a.Try(node.Mutex, "a", u, false))
		<-u.crit
		time.Sleep(10 * time.Second)
		d.take()
		wire.Cut(true)
		time.Sleep(time.Minute)
		wire.Cut(false)
		var here, there [4]time.Time
		for _, e := range d.take() {
			switch {
			case e.Kind != protocol.Suspect:
			case e.At < 4:
				there[e.At] = e.When
			default:
				here[e.From] = e.When
			}
		}
		for k := range here {
			if here[k].IsZero() || !here[k].Before(there[k]) {
				t.Errorf("s%d: the client at %v, the member at %v", k+1, here[k], there[k])
			}
		}
	})
}

// stalling is a log that hangs for a while at each end of a session, as one across
// the network does when that is cut.
type stalling struct{ slog.Handler }

func (stalling) Enabled(context.Context, slog.Level) bool { return true }

func (stalling) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "session ended" {
		time.Sleep(time.Second)
	}
	return nil
}

// A user is told of the sessions that its critical section counts on, also of one
// that ended at the moment of the entry: its support was one of those that let it in.
// Then it is told that it is gone.
func TestSessionsAtEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire cable
		c := wire.members(t, 1, node.HostOf(keeper(func(e keeperEvent) {
			if e.Kind == protocol.Receive && e.Msg == answer {
				wire.Cut(true)
				time.Sleep(time.Minute) // the lease ends meanwhile
			}
		})), nil)
		a := start(t, c)
		defer a.Close()
		must(t, a.WaitAlive(t.Context(), 1))
		u := &witness{probe: newProbe()}
		must(t, a.Try(node.Mutex, "a", u, false))
		<-u.crit
		synctest.Wait()
		if got := fmt.Sprint(u.told); got != "[map[0:1] map[]]" || a.Alive() != 0 {
			t.Errorf("told of the sessions %s, %d are alive", got, a.Alive())
		}
		wire.Cut(false)
	})
}

// A witness is a probe that keeps what it is told of sessions.
type witness struct {
	*probe
	told []map[protocol.ID]uint64
}

func (w *witness) Crit(e node.Entry) {
	w.told = append(w.told, e.Sessions)
	w.probe.Crit(e)
}

func (w *witness) Supported(sessions map[protocol.ID]uint64) { w.told = append(w.told, sessions) }

// A lease that was renewed after the watcher saw it lapsed goes on.
func TestRenewedWhileEnding(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	before := sessionNumbers(c)
	servers[0].EndLapsed(c.ID())
	c.EndLapsed(0)
	if after := sessionNumbers(c); !slices.Equal(before, after) || len(servers[0].Sessions()) != 1 {
		t.Errorf("sessions %v became %v", before, after)
	}
}

func sessionNumbers(n *node.Node) (all []uint64) {
	for _, s := range n.Sessions() {
		all = append(all, s.Number)
	}
	return all
}

// A patientKeeper takes its time to answer, unless a client leaves.
type patientKeeper struct{ protocol.Process[uint8] }

func (p patientKeeper) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	p.Process.Step(ev, out)
	for k := range out.Effects {
		out.Effects[k].After = int64(time.Second)
	}
	if ev.Kind == protocol.Receive && ev.Msg == leave {
		out.Send(ev.From, leave)
	}
}

// A message that can wait goes with the next frame, or soon.
func TestMessageThatCanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := keeper(nil)
		a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
			return patientKeeper{keeper(nil).New(id, c)}
		}
		var wire cable
		wire.members(t, 1, node.HostOf(a), nil)
		s := wire.visit(t, greeting)
		s.until(transport.WelcomeItem)
		expect := func(want string, after time.Duration) {
			t.Helper()
			began := time.Now()
			got := ""
			for got == "" {
				items, err := s.hear()
				must(t, err)
				for _, i := range items {
					if i.Type == transport.MessageItem {
						got += fmt.Sprint(i.Body)
					}
				}
			}
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s after %v, want %s after %v", got, took, want, after)
			}
		}
		synctest.Wait() // the writer has nothing to do any more
		s.say(message(1, 1, "a", enter))
		expect("[2]", 40*time.Millisecond)
		time.Sleep(time.Second)
		s.say(message(2, 1, "a", enter), transport.Item{Type: transport.AckItem, Seq: 1}.Append)
		time.Sleep(10 * time.Millisecond)
		s.say(message(3, 1, "a", leave))
		expect("[2][1]", 0)
		s.conn.Close()
	})
}
