package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
)

// A sleeper is a client that dials members on demand, and four of these.
type sleeper struct {
	t     *testing.T
	wire  cable
	log   proctest.Log
	c     node.Config
	node  *node.Node
	dials atomic.Int32 // so far
}

const (
	sleepIdle  = time.Minute
	sleepDelay = time.Millisecond // of what the client receives
)

// newSleeper starts a sleeper. change adapts its configuration.
func newSleeper(t *testing.T, change func(*node.Config)) *sleeper {
	t.Helper()
	g := &sleeper{t: t}
	g.wire.Delay = sleepDelay
	g.c = g.wire.members(t, 4, node.HostOf(sigma.Algorithm), nil)
	g.c.Idle = sleepIdle
	g.c.Log = slog.New(slog.NewTextHandler(&g.log, nil))
	g.c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
		g.dials.Add(1)
		return g.wire.dial(ctx, p)
	}
	if change != nil {
		change(&g.c)
	}
	g.node = start(t, g.c)
	return g
}

// want says how many members are to have a session with the client, and how often it has dialed in all.
func (g *sleeper) want(sessions, dials int) {
	g.t.Helper()
	synctest.Wait()
	there := 0
	for _, m := range g.wire.running {
		there += len(m.Sessions())
	}
	if here := g.node.Alive(); here != sessions || there != sessions || int(g.dials.Load()) != dials {
		g.t.Errorf("%d sessions here, %d at members, %d dials; want %d, %d", here, there, g.dials.Load(), sessions, dials)
	}
}

// enter has somebody enter a lock, and reports how long that took.
func (g *sleeper) enter(name string) (u *probe, took time.Duration) {
	g.t.Helper()
	began := time.Now()
	u = newProbe()
	must(g.t, g.node.Try(node.Mutex, name, u, false))
	<-u.crit
	return u, time.Since(began)
}

func (g *sleeper) leave(name string, u *probe) {
	g.t.Helper()
	g.node.Exit(name)
	if why := <-u.rem; why != "" || len(u.ejected) > 0 {
		g.t.Errorf("out because of %q, ejected %d times", why, len(u.ejected))
	}
}

// A client that dials on demand has no session until something is wanted, and none when nothing has been for a while. What is wanted then waits
// for dials, and for nothing else. That is no trouble, which a log would tell of.
func TestOnDemand(t *testing.T) {
	for _, option := range []bool{false, true} { // with it a session ends with its connection, or before
		synctest.Test(t, func(t *testing.T) { onDemand(t, newSleeper(t, func(c *node.Config) { c.EndWithConnection = option })) })
	}
}

func onDemand(t *testing.T, g *sleeper) {
	t.Helper()
	time.Sleep(2 * sleepIdle)
	g.want(0, 0)
	for k := range 3 {
		u, took := g.enter("a")
		if took > 4*sleepDelay {
			t.Errorf("entered after %v", took)
		}
		g.leave("a", u)
		time.Sleep(sleepIdle / 2)
		u, _ = g.enter("a")
		g.want(4, 4*(k+1))
		g.leave("a", u)
		time.Sleep(sleepIdle - time.Nanosecond)
		g.want(4, 4*(k+1))
		time.Sleep(sleepDelay) // the good-byes are on their way
		g.want(0, 4*(k+1))
		if k := g.node.Instances(); k != 0 {
			t.Errorf("%d processes of locks", k)
		}
		time.Sleep(10 * sleepIdle)
		g.want(0, 4*(k+1))
	}
	st := g.node.Stats()
	if st.SessionsBegan != 12 || st.SessionsEnded["idle"] != 12 {
		t.Errorf("%d sessions began, ended: %v", st.SessionsBegan, st.SessionsEnded)
	}
	for _, m := range g.wire.running {
		if st := m.Stats(); st.SessionsEnded["bye"] != 3 {
			t.Errorf("ended at a member: %v", st.SessionsEnded)
		}
	}
	if strings.Contains(g.log.String(), "WARN") {
		t.Errorf("the log:\n%s", g.log.String())
	}
}

// Without Idle a client dials at once, and stays.
func TestWithoutDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSleeper(t, func(c *node.Config) { c.Idle = 0 })
		time.Sleep(10 * sleepIdle)
		g.want(4, 4)
		if g.node.Rest() != node.Awake {
			t.Errorf("it rests: %v", g.node.Rest())
		}
	})
}

// What is wanted keeps the sessions, whatever it is, and however long it takes.
func TestWanted(t *testing.T) {
	for name, want := range map[string]func(g *sleeper) (end func()){
		"a user inside": func(g *sleeper) func() {
			u, _ := g.enter("a")
			return func() { g.leave("a", u) }
		},
		"a user that waits": func(g *sleeper) func() {
			other := g.c
			other.Secret, other.Idle, other.Dial = node.NewSecret(), 0, g.wire.dial
			first := start(g.t, other)
			u, v := newProbe(), newProbe()
			must(g.t, first.Try(node.Mutex, "a", u, false))
			<-u.crit
			must(g.t, g.node.Try(node.Mutex, "a", v, false))
			return func() {
				must(g.t, first.Close())
				<-v.crit
				g.leave("a", v)
			}
		},
		"two users, of which one leaves": func(g *sleeper) func() {
			u, _ := g.enter("a")
			v, _ := g.enter("b")
			g.leave("a", u)
			return func() { g.leave("b", v) }
		},
		"a wait": func(g *sleeper) func() {
			ctx, cancel := context.WithCancel(g.t.Context())
			over := make(chan error)
			go func() { over <- g.node.WaitAlive(ctx, 5) }()
			return func() {
				cancel()
				if err := <-over; !errors.Is(err, context.Canceled) {
					g.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSleeper(t, nil)
				end := want(g)
				time.Sleep(10*sleepIdle + time.Second)
				synctest.Wait()
				if k := g.node.Alive(); k != 4 || g.dials.Load() != 4 {
					t.Fatalf("%d sessions, %d dials", k, g.dials.Load())
				}
				end()
				time.Sleep(sleepIdle + time.Second)
				g.want(0, 4)
			})
		})
	}
}

// Whoever comes as the sessions are about to end, in that instant, or while the good-byes are on their way, gets in without delay, and stays.
func TestWantedAsItRests(t *testing.T) {
	for _, after := range []time.Duration{
		-sleepDelay, -time.Nanosecond, 0, time.Nanosecond, sleepDelay / 2, sleepDelay, 3 * sleepDelay / 2, 2 * sleepDelay, 3 * sleepDelay,
	} {
		for range 20 { // in the same instant either may come first
			synctest.Test(t, func(t *testing.T) {
				g := newSleeper(t, nil)
				u, _ := g.enter("a")
				g.leave("a", u)
				time.Sleep(sleepIdle + after)
				began := time.Now()
				var all []*probe
				for _, name := range []string{"a", "b", "c"} {
					u, _ := g.enter(name)
					all = append(all, u)
				}
				if took := time.Since(began); took > 10*sleepDelay {
					t.Errorf("%v: entered after %v", after, took)
				}
				time.Sleep(3 * sleepIdle)
				for k, name := range []string{"a", "b", "c"} {
					g.leave(name, all[k])
				}
				time.Sleep(2 * sleepIdle)
				synctest.Wait()
				if k := g.node.Alive(); k != 0 {
					t.Errorf("%v: %d sessions", after, k)
				}
			})
		}
	}
}

// A call from a client that rests has members dialed, and finds nothing old there.
func TestCallAsItRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSleeper(t, nil)
		must(t, g.node.WaitAlive(t.Context(), 4))
		time.Sleep(sleepIdle)
		for _, after := range []time.Duration{0, sleepDelay / 2, sleepIdle} {
			time.Sleep(after)
			_, err := g.node.Call(t.Context(), 2, []byte("x"))
			if err == nil || !strings.Contains(err.Error(), "not answered here") {
				t.Errorf("after %v: %v, want what the member says", after, err)
			}
		}
	})
}

// What a member said before is not said again when it is dialed anew.
func TestFailuresOfOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		g := newSleeper(t, func(c *node.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				if p.Name == "s4" && down.Load() {
					return nil, errors.New("it is down")
				}
				return dial(ctx, p)
			}
		})
		for range 2 {
			if _, err := g.node.Call(t.Context(), 3, nil); err == nil || !strings.Contains(err.Error(), "it is down") {
				t.Error(err)
			}
			time.Sleep(2 * sleepIdle)
			if r := g.node.Rest(); r != node.Resting {
				t.Errorf("it rests with three of four: %v", r)
			}
		}
		down.Store(false)
		if _, err := g.node.Call(t.Context(), 3, nil); err == nil || strings.Contains(err.Error(), "it is down") {
			t.Errorf("%v: it is up", err)
		}
	})
}

// A member that does not answer the good-bye, or that is just being dialed, keeps nobody. Its session there ends with the lease.
func TestRestsBesideSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Bool
		g := newSleeper(t, nil)
		dial := g.c.Dial
		g.c.Secret = node.NewSecret()
		g.c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
			if p.Name == "s4" && late.Load() {
				time.Sleep(2 * time.Second) // less than a handshake may take
			}
			return dial(ctx, p)
		}
		late.Store(true)
		slow := start(t, g.c)
		must(t, slow.WaitAlive(t.Context(), 3))
		if r := slow.Rest(); r != node.Awake {
			t.Errorf("a quorum is there: %v", r)
		}
		time.Sleep(time.Second) // s4 is being dialed
		slow.Rests()
		synctest.Wait()
		if r := slow.Rest(); r != node.Resting || slow.Alive() != 0 {
			t.Errorf("%v, %d sessions", r, slow.Alive())
		}
		time.Sleep(5 * time.Second) // s4 has answered
		synctest.Wait()
		if slow.Alive() != 0 {
			t.Error("a session began while nothing was wanted")
		}
		for k, m := range g.wire.running {
			if len(m.Sessions()) > 0 {
				t.Errorf("s%d has a session", k+1)
			}
		}
	})
}

// While no quorum can be reached the dials go on, and Rest says so from the failures that leave none to the first quorum.
func TestNoRestWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSleeper(t, nil)
		rest := func(want node.Rest) {
			t.Helper()
			synctest.Wait()
			if got := g.node.Rest(); got != want {
				t.Errorf("after %v: %v, want %v", time.Duration(g.c.Boot()), got, want)
			}
		}
		rest(node.Unused)
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.node.WaitAlive(now, 3); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		rest(node.Unused)
		g.want(0, 0)
		g.node.Want()
		rest(node.Unused) // until there is an answer
		time.Sleep(5 * sleepDelay)
		rest(node.Awake)
		time.Sleep(sleepIdle)
		rest(node.Resting)
		g.wire.Cut(true)
		g.node.Want()
		rest(node.Resting)
		time.Sleep(10 * time.Second) // longer than an attempt
		rest(node.Awake)
		time.Sleep(3 * sleepIdle)
		rest(node.Awake)
		if k := g.dials.Load(); k < 50 {
			t.Errorf("%d dials", k)
		}
		g.wire.Cut(false)
		time.Sleep(10 * time.Second)
		rest(node.Awake)
		time.Sleep(2 * sleepIdle)
		rest(node.Resting)
		if slices.ContainsFunc(g.node.PeerStats(), func(p node.PeerStats) bool { return !p.Resting || p.Connected }) {
			t.Error(g.node.PeerStats())
		}
	})
}

// A client that closes as it begins to rest says its good-byes, too.
func TestCloseAsItRests(t *testing.T) {
	for _, after := range []time.Duration{0, time.Nanosecond, sleepDelay} {
		synctest.Test(t, func(t *testing.T) {
			g := newSleeper(t, nil)
			u, _ := g.enter("a")
			g.leave("a", u)
			time.Sleep(after)
			g.node.Rests()
			must(t, g.node.Close())
			synctest.Wait()
			for k, m := range g.wire.running {
				if len(m.Sessions()) > 0 {
					t.Errorf("after %v: s%d has a session", after, k+1)
				}
			}
		})
	}
}

// A release that no member has acknowledged as the client rests is none the less: whoever waits follows at once.
func TestRestsWithRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSleeper(t, func(c *node.Config) { c.Idle = time.Nanosecond })
		u, _ := g.enter("a")
		other := g.c
		other.Secret, other.Idle, other.Dial = node.NewSecret(), 0, g.wire.dial
		next, v := start(t, other), newProbe()
		must(t, next.WaitAlive(t.Context(), 4))
		must(t, next.Try(node.Mutex, "a", v, false))
		time.Sleep(time.Second)
		began := time.Now()
		g.leave("a", u)
		<-v.crit
		if took := time.Since(began); took > 10*sleepDelay {
			t.Errorf("the next one entered after %v", took)
		}
	})
}

// Idle is for clients.
func TestWrongIdle(t *testing.T) {
	peers := []node.Peer{{Name: "s1", Addr: "s1"}}
	for _, c := range []node.Config{{ID: 0, Idle: time.Second}, {Secret: 1, Idle: -1}} {
		c.Hosts, c.Peers = mutexes(node.HostOf(keeper(nil))), peers
		if _, err := node.Start(c); err == nil || !strings.Contains(err.Error(), fmt.Sprint("the idle time ", c.Idle)) {
			t.Errorf("%v", err)
		}
	}
}
