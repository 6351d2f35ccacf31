package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
)

// wanted tells the user of a lock that somebody waits who does not share it.
func (f *fakeNode) wanted(name string) {
	f.mu.Lock()
	u := f.users[name].(node.Sharer)
	f.mu.Unlock()
	u.Wanted()
}

// letIn grants what is held back.
func (f *fakeNode) letIn(name string) {
	f.mu.Lock()
	if f.users[name] != nil && !f.inside[name] {
		f.grant(name)
	}
	f.mu.Unlock()
	synctest.Wait()
}

// A call is one that waits, on a goroutine of its own.
type call struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once it has returned
	g      *Grant
	failed error
}

func (x *call) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// grant and err are what it has returned.
func (x *call) grant() *Grant {
	if x.over() {
		return x.g
	}
	return nil
}

func (x *call) err() error {
	if x.over() {
		return x.failed
	}
	return nil
}

// begin calls lock, and returns when it has come as far as it can.
func begin(t *testing.T, lock func(context.Context) (*Grant, error)) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	x := &call{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.g, x.failed = lock(ctx)
	}()
	synctest.Wait()
	return x
}

// wantInside: those of the calls that are named are inside, and the others wait.
func wantInside(t *testing.T, all map[string]*call, names string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for name, x := range all {
		if x.err() != nil {
			t.Errorf("%s: %v", name, x.err())
		}
		if x.grant() != nil && x.grant().Context().Err() == nil {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != names {
		t.Errorf("inside are %v, want %s", got, names)
	}
}

func (x *call) unlock(t *testing.T) {
	t.Helper()
	g := x.grant()
	if g == nil {
		t.Fatalf("not inside: %v", x.err())
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

func wantLog(t *testing.T, f *fakeNode, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := f.logged(); !slices.Equal(got, want) {
		t.Errorf("the node saw %v, want %v", got, want)
	}
}

func wantNoLines(t *testing.T, c *Client) {
	t.Helper()
	synctest.Wait()
	if k := c.lineCount(); k != 0 {
		t.Errorf("%d lines are left", k)
	}
}

// TestJoin: who wants the group that its client holds is inside at once, whichever call it makes, and the node
// hears of the first and of the last one only.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.RWMutex("a")
		first := lock(t, m.readers())
		f.down() // nor must a server be there
		var grants []*Grant
		for _, read := range []func(context.Context) (*Grant, error){
			m.RLock, m.TryRLock, c.Mutex("a").In(Shared).Lock, c.Mutex("a").In(Shared).As("user").TryLock,
			func(ctx context.Context) (*Grant, error) { return c.Groups("a").Lock(ctx, Shared) },
			func(ctx context.Context) (*Grant, error) { return c.Groups("a").TryLock(ctx, Shared) },
		} {
			begin := time.Now()
			g, err := read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if time.Since(begin) != 0 || g.Token() != first.Token() || g.Group() != Shared || !g.LeaseEnd().Equal(first.LeaseEnd()) {
				t.Errorf("after %v: token %d, group %q until %v", time.Since(begin), g.Token(), g.Group(), g.LeaseEnd())
			}
			grants = append(grants, g)
		}
		if err := m.RDo(t.Context(), func(ctx context.Context, _ *Grant) error { return ctx.Err() }); err != nil {
			t.Error(err)
		}
		if err := first.Unlock(); err != nil { // also the one whose call did the Try
			t.Error(err)
		}
		wantIs(t, first.Unlock(), ErrUnlocked)
		for _, g := range grants {
			wantLog(t, f, "try a")
			if g.Context().Err() != nil || g.LeaseEnd().IsZero() {
				t.Error("lost as another one unlocked")
			}
			if err := g.Unlock(); err != nil || g.Context().Err() == nil || !g.LeaseEnd().IsZero() {
				t.Errorf("Unlock: %v; context %v, held until %v", err, g.Context().Err(), g.LeaseEnd())
			}
		}
		wantLog(t, f, "try a", "exit a")
		wantNoLines(t, c)
	})
}

// TestNoJoin: nobody joins another group, nor one that is alone, nor does an exclusive one join anybody.
func TestNoJoin(t *testing.T) {
	for _, x := range []struct{ holds, wants string }{{"r", "q"}, {"r", ""}, {"", "r"}, {"", ""}} {
		synctest.Test(t, func(t *testing.T) {
			c, f := newFake(t)
			g := lock(t, c.Mutex("a").In(x.holds))
			_, err := c.Mutex("a").In(x.wants).TryLock(t.Context())
			wantIs(t, err, ErrNotAcquired)
			next := begin(t, c.Mutex("a").In(x.wants).Lock)
			if next.over() {
				t.Fatalf("%q is inside beside %q", x.wants, x.holds)
			}
			g.Unlock()
			wantInside(t, map[string]*call{"next": next}, "next")
			next.unlock(t)
			wantLog(t, f, "try a", "exit a", "try a", "exit a")
			wantNoLines(t, c)
		})
	}
}

// TestOrder runs scripts of one line. A word is a call: +NAME begins one of the group that is the first letter of its
// name, w: alone; -NAME unlocks, xNAME cancels it while it waits, rNAME downgrades it to r. in lets the process in, wanted says that somebody else
// waits, give makes the process give up. After | stands who is inside then.
func TestOrder(t *testing.T) {
	for name, script := range map[string]string{
		"those who wait come in together":                     "+r1 +r2 +r3 | in | r1 r2 r3 -r1 -r2 | r3 +r4 | r3 r4",
		"as a session begins, all of its group":               "+r1 +w1 +r2 +q1 +r3 | in | r1 r2 r3",
		"then a waiter closes it":                             "+r1 in | r1 +w1 +r2 | r1 -r1 | in | w1 +r3 -w1 in | r2 r3",
		"one who tries is served before those behind":         "+r1 +w1 in -r1 +r2 +w2 in | w1 -w1 in | r2 +r3 | r2 -r2 in | w2 -w2 in | r3",
		"each group in its turn":                              "+r1 +q1 +p1 +q2 +p2 +r2 in | r1 r2 -r1 -r2 in | q1 q2 -q1 -q2 in | p1 p2",
		"a waiter that gives up opens it":                     "+r1 in +w1 +r2 +r3 +w2 +r4 | r1 xw1 | r1 r2 r3 xw2 | r1 r2 r3 r4 +r5 | r1 r2 r3 r4 r5",
		"wanted closes it":                                    "+r1 in +r2 wanted | r1 r2 +r3 | r1 r2 -r1 | r2 -r2 | in | r3",
		"wanted before closes it to those who come later":     "+r1 +r2 wanted +r3 in | r1 r2 r3 +r4 | r1 r2 r3",
		"wanted is no more with the next one":                 "+r1 in wanted +r2 -r1 in | r2 +r3 | r2 r3",
		"a waiter that gives up opens nothing that is wanted": "+r1 in wanted +w1 +r2 xw1 | r1",
		"the Try goes on for others":                          "+r1 +r2 +r3 xr1 xr2 in | r3",
		"for those behind one who does not share, too":        "+r1 +w1 +r2 xr1 in | r2 -r2 in | w1",
		"until the last of them gives up":                     "+r1 +r2 +w1 xr1 xr2 in | w1",
		"without others it ends":                              "+r1 +w1 +q1 xr1 in | w1 -w1 in | q1",
		"and one who waits may give up":                       "+r1 +r2 +r3 xr2 in | r1 r3",
		"who comes down lets all of its group in, once":       "+w1 in +r1 +w2 +r2 +q1 rw1 | r1 r2 w1 +r3 | r1 r2 w1 -w1 -r1 -r2 in | w2 -w2 in | q1 -q1 in | r3",
		"and who comes later, until somebody else waits":      "+w1 in rw1 +r1 | r1 w1 wanted +r2 | r1 w1 -w1 | r1 -r1 in | r2",
		"also one that waits here":                            "+w1 in +w2 rw1 +r1 | w1 -w1 in | w2 -w2 in | r1",
		"a process that gives up does so for one":             "+r1 +r2 +r3 give in | r2 r3",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				f.hold = true
				all := map[string]*call{}
				words := strings.Fields(script)
				for i := 0; i < len(words); i++ {
					word := words[i]
					switch who := word[1:]; {
					case word == "in":
						f.letIn("a")
					case word == "wanted":
						f.wanted("a")
					case word == "give":
						f.mu.Lock()
						f.rem("a", errors.New("clock 3s ahead"))
						f.mu.Unlock()
						synctest.Wait()
						for name, x := range all {
							if x.err() != nil {
								delete(all, name)
							}
						}
					case word == "|":
						var inside []string
						for ; i+1 < len(words) && all[words[i+1]] != nil; i++ {
							inside = append(inside, words[i+1])
						}
						t.Log(strings.Join(words[:i+1], " "))
						wantInside(t, all, strings.Join(inside, " "))
					case word[0] == 'r' && all[who] != nil:
						if err := all[who].grant().Downgrade("r"); err != nil {
							t.Error(err)
						}
					case word[0] == '+' && who[0] == 'w':
						all[who] = begin(t, c.Mutex("a").Lock)
					case word[0] == '+':
						all[who] = begin(t, c.Mutex("a").In(who[:1]).Lock)
					case all[who] == nil || word[0] == '-' && all[who].grant() == nil:
						t.Fatalf("%s: it is not inside", word)
					case word[0] == '-':
						all[who].unlock(t)
					default:
						all[who].cancel()
						synctest.Wait()
						wantIs(t, all[who].err(), ErrNotAcquired, context.Canceled)
						delete(all, who)
					}
				}
				f.mu.Lock()
				f.hold = false
				f.mu.Unlock()
				for len(all) > 0 { // everybody comes in at last
					before := len(all)
					for name, x := range all {
						if x.grant() != nil {
							x.grant().Unlock()
							delete(all, name)
						}
					}
					synctest.Wait()
					if f.letIn("a"); len(all) == before {
						t.Fatalf("%d wait for ever", before)
					}
				}
				wantNoLines(t, c)
			})
		})
	}
}

// TestGiveUpLeavesTheLine: at once, or else a Try would be handed over to nobody.
func TestGiveUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		g := lock(t, c.Mutex("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := newSection(ctx, &c.usual, 1)
		defer s.leave()
		s.pending.wants = Shared
		_, err := c.takeTurn(&wait{client: c, shards: c.shards, ctx: ctx, section: s}, "a", false)
		wantIs(t, err, context.DeadlineExceeded)
		if !c.stays.Get("a").waiters.empty() {
			t.Error("it waits")
		}
		g.Unlock()
	})
}

// TestTryGoesWithExit: who waits need not wake to try. When the one before has left, the Try is there before the node goes on, so that it goes
// out with the Exit. The first attempt that waits so, and does not wait for others, is one, too.
func TestTryGoesWithExit(t *testing.T) {
	for name, again := range map[string]func(*Mutex, context.Context) (*Grant, error){"Lock": (*Mutex).Lock, "TryLock": (*Mutex).TryLock} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				m := c.Mutex("a")
				g := lock(t, m)
				var rem node.User
				f.atExit = func(u node.User) { rem = u }
				g.Unlock()
				x := begin(t, func(ctx context.Context) (*Grant, error) { return again(m, ctx) })
				f.mu.Lock()
				f.hold = true
				delete(f.users, "a")
				delete(f.inside, "a")
				f.log = nil
				f.mu.Unlock()
				rem.Rem(nil)
				if got := f.logged(); !slices.Equal(got, []string{"try a"}) {
					t.Errorf("as the one before has left the node was told %v", got)
				}
				synctest.Wait()
				if x.over() {
					t.Errorf("it did not wait: %v", x.failed)
				}
				f.letIn("a")
				if x.grant() == nil {
					t.Errorf("no grant: %v", x.err())
				}
			})
		})
	}
}

// TestTryBeforeCancel: who gives up as somebody else tries for it is heard of after that, or nobody would cancel the Try.
func TestTryBeforeCancel(t *testing.T) {
	c, f := newFake(t)
	f.hold = true
	lock := func() (cancel func(), err chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		err = make(chan error, 1)
		go func() {
			_, failed := c.Mutex("a").Lock(ctx)
			err <- failed
		}()
		return cancel, err
	}
	wait := func(what string, ok func(s *stay) bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			c.mu.Lock()
			done := ok(c.stays.Get("a"))
			c.mu.Unlock()
			if done {
				return
			}
			if time.Now().After(end) {
				t.Fatal(what, f.logged())
			}
		}
	}
	cancelFirst, first := lock()
	wait("the first one does not try", func(s *stay) bool { return s != nil && s.state == trying })
	cancelNext, next := lock()
	wait("the next one does not wait", func(s *stay) bool { return !s.waiters.empty() })
	f.beforeTry = func() {
		cancelNext()
		time.Sleep(20 * time.Millisecond) // for its goroutine
	}
	cancelFirst()
	wantIs(t, <-first, context.Canceled)
	select {
	case err := <-next:
		wantIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		t.Error("the next one does not return")
	}
	wait("a line is left", func(s *stay) bool { return s == nil })
	if got := f.logged(); !slices.Equal(got, []string{"try a", "cancel a", "try a", "cancel a"}) {
		t.Errorf("the node was told %v", got)
	}
}

// TestNextGivesUp: who is next gives up as the one before gives up, and so on. Whoever does not has the lock; and where all do, all return,
// and nothing is left of them: the Try of each comes before its Cancel.
func TestNextGivesUp(t *testing.T) {
	for rest := range 2 {
		t.Run(fmt.Sprintf("all but %d", rest), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				f.hold = true
				for range 100 {
					ctx, cancel := context.WithCancel(t.Context())
					errs := make(chan error, 7)
					for range cap(errs) {
						go func() {
							_, err := c.Mutex("a").Lock(ctx)
							errs <- err
						}()
					}
					synctest.Wait()
					var last *call
					if rest > 0 {
						last = begin(t, c.Mutex("a").Lock)
					}
					cancel()
					for range cap(errs) {
						wantIs(t, <-errs, ErrNotAcquired, context.Canceled)
					}
					synctest.Wait()
					f.mu.Lock()
					tries, left := 0, len(f.users)
					for _, call := range f.log {
						switch call {
						case "try a":
							tries++
						case "cancel a":
							tries--
						}
					}
					f.log = nil
					f.mu.Unlock()
					if tries != rest || left != rest || c.lineCount() != rest {
						t.Fatalf("%d tries are not cancelled, the node has %d users, and the client %d lines: want %d", tries, left, c.lineCount(), rest)
					}
					if rest > 0 {
						f.letIn("a")
						if last.grant() == nil {
							t.Fatalf("the last one has not got it: %v", last.err())
						}
						last.unlock(t)
						synctest.Wait()
						f.mu.Lock()
						f.log = nil
						f.mu.Unlock()
					}
				}
			})
		})
	}
}

// TestTriesOfMany: a hundred readers that come and go are one Try, however many names they hold.
func TestTriesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		keep := lock(t, c.Locks("a", "b").In("r"))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				m := c.Locks([][]string{{"a"}, {"b"}, {"b", "a"}}[i%3]...).In("r").As(fmt.Sprint(i))
				for range 10 {
					g, err := m.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					if err := g.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		keep.Unlock()
		wantLog(t, f, "try a", "try b", "exit b", "exit a")
		wantNoLines(t, c)
	})
}

// TestStatsOfMany: what is counted are grants, not what they rest on.
func TestStatsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		m := c.RWMutex("a")
		calls := []*call{begin(t, m.RLock), begin(t, m.RLock), begin(t, m.RLock)}
		if s := c.Stats(); s.Wanted != 3 || s.Held != 0 {
			t.Errorf("%d wanted and %d held, while 3 wait", s.Wanted, s.Held)
		}
		time.Sleep(time.Second)
		f.letIn("a")
		time.Sleep(time.Second)
		calls = append(calls, begin(t, m.RLock))
		if s := c.Stats(); s.Wanted != 0 || s.Held != 4 || s.Grants != 4 || s.Waits.Count != 4 || s.Waits.Sum != 3 {
			t.Errorf("%+v with 4 inside", s)
		}
		time.Sleep(time.Second)
		calls[0].unlock(t)
		if s := c.Stats(); s.Held != 3 || s.Holds.Count != 1 || s.Holds.Sum != 2 {
			t.Errorf("%+v with 3 inside", s)
		}
		f.eject("a")
		synctest.Wait()
		if s := c.Stats(); s.Held != 0 || s.Losses != 3 {
			t.Errorf("%+v after a loss", s)
		}
		for _, x := range calls[1:] {
			wantIs(t, x.grant().Unlock(), ErrLost)
		}
		if s := c.Stats(); s.Held != 0 || s.Holds.Count != 4 || s.Holds.Sum != 2+2+2+1 {
			t.Errorf("%+v after all", s)
		}
	})
}

// TestLossOfAll: each of those that share hears of a loss, and the next ones come when the last of them has left.
func TestLossOfAll(t *testing.T) {
	for name, lose := range map[string]func(c *Client, f *fakeNode, g *Grant){
		"ejected": func(_ *Client, f *fakeNode, _ *Grant) { f.eject("a") },
		"ejected, while they are asked to leave": func(c *Client, f *fakeNode, g *Grant) {
			c.release(f.t, "a", g.s.holds[0].stay.request, -1)
			f.eject("a")
		},
		"out": func(_ *Client, f *fakeNode, _ *Grant) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rem("a", errors.New("the lock failed"))
		},
		"the leases lapse, as one unlocks": func(_ *Client, f *fakeNode, g *Grant) {
			time.Sleep(2 * time.Hour)
			wantIs(f.t, g.Unlock(), ErrLost)
		},
		"the leases lapse, as one comes": func(c *Client, f *fakeNode, _ *Grant) {
			time.Sleep(2 * time.Hour)
			_, err := c.RWMutex("a").RLock(context.Background())
			wantIs(f.t, err, ErrNotAcquired, ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				m := c.RWMutex("a")
				grants := []*Grant{lock(t, m.readers()), lock(t, m.readers()), lock(t, m.readers())}
				lose(c, f, grants[0])
				synctest.Wait()
				for i, g := range grants {
					wantIs(t, context.Cause(g.Context()), ErrLost)
					if !g.LeaseEnd().IsZero() {
						t.Errorf("%d: held until %v", i, g.LeaseEnd())
					}
				}
				f.mu.Lock()
				for i := range f.sessions {
					f.sessions[i].LeaseEnd = time.Now().Add(time.Hour)
				}
				f.mu.Unlock()
				next := begin(t, m.RLock) // does not join what is lost
				for _, g := range grants {
					if next.over() {
						t.Error("the next one is inside beside those who lost it")
					}
					if err := g.Unlock(); !errors.Is(err, ErrUnlocked) {
						wantIs(t, err, ErrLost)
					}
				}
				wantInside(t, map[string]*call{"next": next}, "next")
				next.unlock(t)
				wantNoLines(t, c)
			})
		})
	}
}

// TestCloseWithMany: each of them is told, and the lock is given up once.
func TestCloseWithMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.RWMutex("a")
		grants := []*Grant{lock(t, m.readers()), lock(t, m.readers())}
		writer := begin(t, m.Lock)
		reader := begin(t, m.RLock)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		wantIs(t, writer.err(), ErrClosed)
		wantIs(t, reader.err(), ErrClosed)
		for _, g := range grants {
			wantIs(t, context.Cause(g.Context()), ErrLost, ErrClosed)
			wantIs(t, g.Unlock(), ErrLost, ErrClosed)
		}
		wantLog(t, f, "try a", "exit a")
		wantNoLines(t, c)
	})
}

// TestMaxHoldOfOne ends this one only: the lock stays with the others, and others still join.
func TestMaxHoldOfOne(t *testing.T) {
	for _, obedient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, f := newFake(t)
			c.config.MaxHold, c.config.Grace = time.Minute, 3*time.Second
			m := c.RWMutex("a").readers()
			first := lock(t, m)
			time.Sleep(30 * time.Second)
			second := lock(t, m)
			<-first.Context().Done()
			wantIs(t, context.Cause(first.Context()), ErrLost, ErrMaxHold)
			if left := time.Until(first.LeaseEnd()); left != 3*time.Second || !first.LeaveBy().Equal(first.LeaseEnd()) {
				t.Errorf("held for another %v", left)
			}
			if second.Context().Err() != nil || !second.LeaveBy().IsZero() {
				t.Errorf("the second one: %v, to leave by %v", context.Cause(second.Context()), second.LeaveBy())
			}
			third := lock(t, m)
			if obedient {
				wantIs(t, first.Unlock(), ErrMaxHold)
			} else {
				time.Sleep(4 * time.Second)
			}
			if !first.LeaseEnd().IsZero() {
				t.Errorf("given up, and held until %v", first.LeaseEnd())
			}
			if err := second.Unlock(); err != nil {
				t.Error(err)
			}
			wantLog(t, f, "try a")
			if !obedient {
				wantIs(t, first.Unlock(), ErrLost, ErrMaxHold)
			}
			if err := third.Unlock(); err != nil {
				t.Error(err)
			}
			wantLog(t, f, "try a", "exit a")
			wantNoLines(t, c)
		})
	}
}

// TestForcedReleaseOfMany asks each of them, says when the last one leaves at the latest, and lets nobody join meanwhile.
func TestForcedReleaseOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		c.config.MaxHold, c.config.Grace, c.config.ReleaseGrace = time.Minute, 10*time.Second, 0
		m := c.RWMutex("a")
		f.holdNames = map[string]bool{"b": true, "c": true}
		grants := []*Grant{lock(t, m.readers())}
		both := begin(t, c.Locks("a", "b").In(Shared).Lock)
		grants = append(grants, lock(t, m.readers()))
		time.Sleep(50 * time.Second)
		f.letIn("b")
		grants = append(grants, both.grant())                // which begins only now
		waits := begin(t, c.Locks("a", "c").In(Shared).Lock) // inside of a
		since := grants[0].s.holds[0].stay.request
		if got := c.release(t, "a", since, 30*time.Second); got.Outcome != control.Told || got.GraceMS != 30_000 {
			t.Errorf("answer %+v", got)
		}
		for i, left := range []time.Duration{20 * time.Second, 20 * time.Second, 30 * time.Second} { // MaxHold and its grace are not prolonged
			var revoked *RevokedError
			if cause := context.Cause(grants[i].Context()); !errors.As(cause, &revoked) || time.Until(grants[i].LeaveBy()) != left {
				t.Errorf("%d: %v, to leave within %v", i, cause, time.Until(grants[i].LeaveBy()))
			}
		}
		synctest.Wait()
		wantIs(t, waits.err(), ErrNotAcquired)
		next := begin(t, m.RLock)
		wantIs(t, grants[0].Unlock(), ErrLost)
		wantIs(t, grants[1].Unlock(), ErrLost)
		time.Sleep(29 * time.Second)
		if synctest.Wait(); next.over() {
			t.Error("the next one joins what is to be released")
		}
		time.Sleep(time.Second)
		wantInside(t, map[string]*call{"next": next}, "next")
		wantIs(t, grants[2].Unlock(), ErrLost)
		next.unlock(t)
		wantLog(t, f, "try a", "try b", "try c", "cancel c", "exit b", "exit a", "try a", "exit a")
		wantNoLines(t, c)
	})
}

// TestForcedReleaseOfWaiters ends the waits of all who wait with one request, and nobody else goes on with it.
func TestForcedReleaseOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		gate := make(chan struct{})
		f.beforeCancel = func() { <-gate }
		asked := []*call{begin(t, c.Mutex("a").In("r").Lock), begin(t, c.Mutex("a").In("r").Lock)}
		others := map[string]*call{"q": begin(t, c.Mutex("a").In("q").Lock)}
		time.Sleep(time.Second)
		if got := c.release(t, "a", uint64(time.Now().UnixNano()), -1); got.Outcome != control.Told || got.GraceMS != 0 {
			t.Errorf("answer %+v", got)
		}
		synctest.Wait()
		others["r"] = begin(t, c.Mutex("a").In("r").Lock)
		close(gate)
		synctest.Wait()
		for _, x := range asked {
			var revoked *RevokedError
			if wantIs(t, x.err(), ErrNotAcquired); !errors.As(x.err(), &revoked) {
				t.Errorf("error %v", x.err())
			}
		}
		wantInside(t, others, "")
		wantLog(t, f, "try a", "cancel a", "try a")
		f.letIn("a")
		wantInside(t, others, "q")
		others["q"].unlock(t)
		f.letIn("a")
		others["r"].unlock(t)
		wantNoLines(t, c)
	})
}

// TestCancelMeetsCritOfMany: the one whose call did the Try gave up, the process entered before it heard of that, and others
// who came in the meantime are inside.
func TestCancelMeetsCritOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		gate := make(chan struct{})
		f.beforeCancel = func() { <-gate }
		f.atCancel = func(node.User) { f.grant("a") }
		first := begin(t, c.RWMutex("a").RLock)
		first.cancel()
		synctest.Wait()
		other := begin(t, c.RWMutex("a").RLock)
		close(gate)
		synctest.Wait()
		wantIs(t, first.err(), ErrNotAcquired, context.Canceled)
		wantInside(t, map[string]*call{"other": other}, "other")
		wantLog(t, f, "try a", "cancel a")
		if k := c.Stats().Held; k != 1 {
			t.Errorf("%d are held", k)
		}
		other.unlock(t)
		wantLog(t, f, "try a", "cancel a", "exit a")
		wantNoLines(t, c)
	})
}

// TestTryRLock: what it does where it may not join, and what it says.
func TestTryRLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.RWMutex("a")
		refuses := func(lock func(context.Context) (*Grant, error), why string) {
			t.Helper()
			begin := time.Now()
			_, err := lock(t.Context())
			if wantIs(t, err, ErrNotAcquired); err == nil || err.Error() != `poundlock: lock "a" not acquired: `+why || time.Since(begin) != 0 {
				t.Errorf("after %v: %v, want %s", time.Since(begin), err, why)
			}
		}
		g := lock(t, c.Mutex("a").In("x"))
		refuses(m.TryRLock, `this client holds it in group "x"`)
		refuses(m.TryLock, `this client holds it in group "x"`)
		g.Unlock()

		g = lock(t, m.readers().As("alice"))
		f.mu.Lock()
		if label := f.users["a"].(node.Labelled).Label(); label != "alice" {
			t.Errorf("the servers see %q", label)
		}
		f.mu.Unlock()
		refuses(m.TryLock, `"alice" holds it in group "shared"`)
		writer := begin(t, m.Lock)
		refuses(m.TryRLock, `"alice" holds it in group "shared", which nobody may join now`)
		writer.cancel()
		synctest.Wait()
		if g, err := m.TryRLock(t.Context()); err != nil || g.Unlock() != nil {
			t.Error(err)
		}
		f.wanted("a")
		refuses(m.TryRLock, `"alice" holds it in group "shared", which nobody may join now`)
		g.Unlock()
		synctest.Wait()

		f.hold = true
		x := begin(t, m.RLock)
		refuses(m.TryRLock, `this client wants it in group "shared"`)
		f.letIn("a")
		x.unlock(t)

		x = begin(t, m.TryRLock) // nobody goes on with a Try that does not wait
		y := begin(t, m.RLock)
		time.Sleep(2 * time.Second)
		wantIs(t, x.err(), ErrNotAcquired, errPatience)
		wantInside(t, map[string]*call{"y": y}, "")
		if got := f.logged(); !slices.Equal(got[len(got)-3:], []string{"try a", "cancel a", "try a"}) {
			t.Errorf("the node saw %v", got)
		}
		f.letIn("a")
		y.unlock(t)

		// Once the last one has unlocked the lock is free, though the process has not said Rem yet.
		f.hold = false
		g = lock(t, m.readers())
		f.atExit = func(node.User) {
			time.AfterFunc(time.Millisecond, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.rem("a", nil)
			})
		}
		g.Unlock()
		if g, err := m.TryRLock(t.Context()); err != nil || g.Unlock() != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)

		g = lock(t, m.readers()) // and not if somebody waits for that
		writer = begin(t, m.Lock)
		g.Unlock()
		refuses(m.TryRLock, `this client holds it in group "shared"`)
		time.Sleep(time.Second)
		writer.unlock(t)
		time.Sleep(time.Second)
		wantNoLines(t, c)
	})
}

// TestRLocker: the goroutines that use one are inside together, as those of two are.
func TestRLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.RWMutex("a")
		one, two, writer := m.RLocker(t.Context()), m.RLocker(t.Context()), m.Locker(t.Context())
		one.Lock()
		one.Lock()
		two.Lock()
		entered := false
		go func() {
			writer.Lock()
			entered = true
			writer.Unlock()
		}()
		one.Unlock()
		two.Unlock()
		if synctest.Wait(); entered {
			t.Error("the writer is inside beside a reader")
		}
		one.Unlock()
		if synctest.Wait(); !entered {
			t.Error("the writer is not inside")
		}
		wantLog(t, f, "try a", "exit a", "try a", "exit a")

		c.config.MaxHold = time.Minute // the oldest grant goes first
		one.Lock()
		time.Sleep(30 * time.Second)
		one.Lock()
		time.Sleep(20 * time.Second)
		one.Unlock()
		time.Sleep(20 * time.Second)
		one.Unlock()
		defer func() {
			if recover() == nil {
				t.Error("Unlock of what is not locked returned")
			}
		}()
		one.Unlock()
	})
}
