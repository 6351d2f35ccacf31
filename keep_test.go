package poundlock

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tries counts the requests for locks.
func (f *fakeNode) tries() int { return count(f.logged(), "try") }

func count(log []string, what string) (n int) {
	for _, line := range log {
		if strings.HasPrefix(line, what) {
			n++
		}
	}
	return n
}

// TestKeep: a lock that is kept is there at once for the next goroutine of this client, with a larger token where it is
// alone, until somebody else waits, or the time is up, or it is lost, revoked or wanted in another way.
func TestKeep(t *testing.T) {
	const keep = time.Second
	for name, way := range map[string]struct {
		lock func(c *Client) *Mutex
		ends func(t *testing.T, c *Client, f *fakeNode, g *Grant) // a lock that is kept
	}{
		"alone until its time is up": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(*testing.T, *Client, *fakeNode, *Grant) { time.Sleep(keep) },
		},
		"shared until its time is up": {
			func(c *Client) *Mutex { return c.RWMutex("a").Keep(keep).readers() },
			func(*testing.T, *Client, *fakeNode, *Grant) { time.Sleep(keep) },
		},
		"of a group until it is wanted": {
			func(c *Client) *Mutex { return c.Groups("a").Keep(keep).m.In("red") },
			func(_ *testing.T, _ *Client, f *fakeNode, _ *Grant) { f.wanted("a") },
		},
		"alone until it is wanted": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(_ *testing.T, _ *Client, f *fakeNode, _ *Grant) { f.wanted("a") },
		},
		"alone until it is lost": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(_ *testing.T, _ *Client, f *fakeNode, _ *Grant) { f.eject("a") },
		},
		"alone until its leases have lapsed": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(t *testing.T, c *Client, f *fakeNode, _ *Grant) {
				f.mu.Lock()
				for k := range f.sessions {
					f.sessions[k].Number++
				}
				f.mu.Unlock()
				lock(t, c.Mutex("a").Keep(keep)).Unlock()
				synctest.Wait()
				if f.tries() != 2 || c.Stats().Losses != 0 {
					t.Errorf("the next one joined a lock that was lost: %v", f.logged())
				}
				time.Sleep(keep)
			},
		},
		"alone until an operator wants it": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(t *testing.T, c *Client, _ *fakeNode, g *Grant) {
				if got := c.release(t, "a", g.s.holds[0].stay.request, -1); got.Outcome != "told" || got.GraceMS != 0 {
					t.Errorf("answer %+v", got)
				}
			},
		},
		"alone until one attempt of another kind": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(t *testing.T, c *Client, _ *fakeNode, _ *Grant) {
				g, err := c.Mutex("a").TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				g.Unlock()
			},
		},
		"alone until a reader comes": {
			func(c *Client) *Mutex { return c.Mutex("a").Keep(keep) },
			func(t *testing.T, c *Client, _ *fakeNode, _ *Grant) { lock(t, c.RWMutex("a").readers()).Unlock() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				m := way.lock(c)
				var tokens []uint64
				var g *Grant
				for range 3 {
					g = lock(t, m)
					tokens = append(tokens, g.Token())
					if g.Group() != strings.Join(m.groups, ",") {
						t.Errorf("the group is %q", g.Group())
					}
					g.Unlock()
					synctest.Wait()
				}
				if f.tries() != 1 || f.exits() != 0 {
					t.Errorf("three locks: %v", f.logged())
				}
				if rising := slices.IsSorted(tokens) && tokens[0] < tokens[2]; rising != (m.groups == nil) {
					t.Errorf("tokens %v of group %q", tokens, m.groups)
				}
				if k := c.Stats().Held; k != 0 {
					t.Errorf("%d locks are held", k)
				}
				way.ends(t, c, f, g)
				synctest.Wait()
				if f.exits() != f.tries() {
					t.Errorf("it does not give the lock up: %v", f.logged())
				}
				if k := c.lineCount(); k != 0 {
					t.Errorf("%d lines are left", k)
				}
			})
		})
	}
}

// TestKeepsInTurn: who waits in this client for a lock that is kept has it from hand to hand, those who are alone one after
// the other, until somebody else waits.
func TestKeepsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Mutex("a").Keep(time.Minute)
		g := lock(t, m)
		inside := make(chan *Grant)
		for range 2 {
			go func() { inside <- lock(t, m) }()
			synctest.Wait()
		}
		g.Unlock()
		second := <-inside
		synctest.Wait()
		if f.tries() != 1 || second.Token() <= g.Token() {
			t.Errorf("the second has token %d after %d: %v", second.Token(), g.Token(), f.logged())
		}
		select {
		case <-inside:
			t.Error("two are alone at once")
		default:
		}
		f.wanted("a")
		second.Unlock()
		third := <-inside
		if f.tries() != 2 {
			t.Errorf("the third has not asked for it: %v", f.logged())
		}
		third.Unlock()
		// A lock that was lost is not kept.
		last := lock(t, m)
		f.eject("a")
		synctest.Wait()
		last.Unlock()
		synctest.Wait()
		if f.exits() != f.tries() {
			t.Errorf("a lost lock is kept: %v", f.logged())
		}
	})
}

// TestKeepSpends: a lock that is kept is given up when its tokens are used.
func TestKeepSpends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Mutex("a").Keep(time.Minute)
		g := lock(t, m)
		g.s.holds[0].stay.used = 1e6 - 1
		g.Unlock()
		g = lock(t, m)
		if first := g.s.holds[0].stay.token; g.Token() != first+1e6-1 {
			t.Errorf("the last token is %d, of those from %d on", g.Token(), first)
		}
		g.Unlock()
		synctest.Wait()
		if f.exits() != 1 {
			t.Errorf("it is kept without a token: %v", f.logged())
		}
	})
}
