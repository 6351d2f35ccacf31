package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// lock acquires or ends the test.
func lock(t *testing.T, m *Mutex) *Grant {
	t.Helper()
	g, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *Client) lineCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stays.Len()
}

func wantIs(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %q is not %q", err, w)
		}
	}
}

func TestLocalUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		first := lock(t, c.Mutex("a"))
		var order []int
		for i := range 5 {
			go func() {
				g, err := c.Mutex("a").Lock(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // the lock protects it
				g.Unlock()
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatalf("%v entered while the lock was held", order)
		}
		other := lock(t, c.Mutex("b")) // another name does not wait
		if err := errors.Join(first.Unlock(), other.Unlock()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestCancelledInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Mutex("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := c.Mutex("a").Lock(ctx)
		wantIs(t, err, ErrNotAcquired, context.DeadlineExceeded)
		if d := time.Since(begin); d != time.Second {
			t.Errorf("waited %v", d)
		}
		g.Unlock()
		lock(t, c.Mutex("a")).Unlock()
		synctest.Wait()
		want := []string{"try a", "exit a", "try a", "exit a"}
		if got := f.logged(); !slices.Equal(got, want) {
			t.Errorf("the node saw %v, want %v", got, want)
		}
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestCancelledWhileTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Mutex("a").Lock(ctx)
		wantIs(t, err, ErrNotAcquired, context.Canceled)
		if _, err := c.Mutex("a").Lock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Lock with an ended context: %v", err)
		}
		if want := []string{"try a", "cancel a"}; !slices.Equal(f.logged(), want) {
			t.Errorf("the node saw %v, want %v", f.logged(), want)
		}
		f.hold = false
		lock(t, c.Mutex("a")).Unlock()
	})
}

// TestCancelMeetsCrit: the process entered before it heard of the cancellation,
// so the cancellation is an exit, and the next local user gets its turn.
func TestCancelMeetsCrit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		f.atCancel = func(node.User) { f.grant("a") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g, err := c.Mutex("a").Lock(ctx)
		if g != nil {
			t.Fatal("both a grant and an error")
		}
		wantIs(t, err, ErrNotAcquired, context.DeadlineExceeded)
		synctest.Wait()
		if want := []string{"try a", "cancel a", "exit a"}; !slices.Equal(f.logged(), want) {
			t.Errorf("the node saw %v, want %v", f.logged(), want)
		}
		f.hold = false
		lock(t, c.Mutex("a")).Unlock()
	})
}

// TestCancelMissesTheNext: the process gives up while its user is about to call
// Cancel, which must not hit the next user.
func TestCancelMissesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		f.beforeCancel = func() {
			f.mu.Lock()
			f.rem("a", errors.New("clock 3s ahead"))
			f.hold = false
			f.mu.Unlock()
			synctest.Wait() // the next user has come as far as it can
		}
		first, second := make(chan error), make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := c.Mutex("a").Lock(ctx)
			first <- err
		}()
		synctest.Wait()
		go func() {
			_, err := c.Mutex("a").Lock(t.Context())
			second <- err
		}()
		synctest.Wait()
		cancel()
		wantIs(t, <-first, ErrNotAcquired, context.Canceled)
		if err := <-second; err != nil {
			t.Error(err)
		}
		if want := []string{"try a", "cancel a", "try a"}; !slices.Equal(f.logged(), want) {
			t.Errorf("the node saw %v, want %v", f.logged(), want)
		}
	})
}

// TestTurnMeetsCancel: the turn comes while its user gives up, and goes on to
// the next one.
func TestTurnMeetsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.atExit = func(u node.User) { // as soon as it may
			f.mu.Lock()
			delete(f.users, "a")
			delete(f.inside, "a")
			f.mu.Unlock()
			u.Rem(nil)
		}
		met := 0
		for range 50 { // a scheduler on several processors may wake the user too early
			g := lock(t, c.Mutex("a"))
			ctx, cancel := context.WithCancel(t.Context())
			second, third := make(chan error, 1), make(chan error, 1)
			for _, x := range []struct {
				ctx    context.Context
				result chan error
			}{{ctx, second}, {t.Context(), third}} {
				go func() {
					g, err := c.Mutex("a").Lock(x.ctx)
					if err == nil {
						err = g.Unlock()
					}
					x.result <- err
				}()
				synctest.Wait()
			}
			cancel() // it wakes up for this, and finds the turn as well
			g.Unlock()
			if err := <-second; err != nil {
				met++
				wantIs(t, err, ErrNotAcquired, context.Canceled)
			}
			if err := <-third; err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if k := c.lineCount(); k != 0 {
				t.Fatalf("%d lines are left", k)
			}
		}
		if met == 0 {
			t.Error("the turn never met the cancellation")
		}
	})
}

func TestProcessGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		time.AfterFunc(time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rem("a", errors.New("clock 3s ahead"))
		})
		_, err := c.Mutex("a").Lock(t.Context())
		wantIs(t, err, ErrNotAcquired)
		if !strings.Contains(err.Error(), `lock "a" not acquired: clock 3s ahead`) {
			t.Errorf("error %q", err)
		}
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		f.setAlive(2)
		begin := time.Now()
		_, err := c.Mutex("a").Lock(t.Context())
		wantIs(t, err, ErrNoQuorum)
		if errors.Is(err, ErrNotAcquired) || !strings.Contains(err.Error(), "s3: no route to host") {
			t.Errorf("error %q", err)
		}
		if d := time.Since(begin); d < 10*time.Second || d > 12*time.Second {
			t.Errorf("waited %v for a quorum", d)
		}

		// A quorum that comes back starts the bound anew.
		begin = time.Now()
		time.AfterFunc(8*time.Second, func() { f.setAlive(3) })
		time.AfterFunc(12*time.Second, func() { f.setAlive(1) })
		_, err = c.Mutex("a").Lock(t.Context())
		wantIs(t, err, ErrNoQuorum)
		if d := time.Since(begin); d < 22*time.Second || d > 24*time.Second {
			t.Errorf("waited %v with an interruption", d)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Mutex("a").Lock(ctx)
		wantIs(t, err, ErrNoQuorum, context.DeadlineExceeded)

		// Those in the queue do not wait for ever either.
		f.setAlive(4)
		f.hold = false
		g := lock(t, c.Mutex("a"))
		f.setAlive(0)
		_, err = c.Mutex("a").Lock(t.Context())
		wantIs(t, err, ErrNoQuorum)
		g.Unlock()
	})
}

func TestTryLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Mutex("a")
		g := lock(t, m)
		begin := time.Now()
		_, err := m.TryLock(t.Context())
		wantIs(t, err, ErrNotAcquired)
		if time.Since(begin) != 0 {
			t.Error("TryLock waited for a local holder")
		}
		// Once unlocked the lock is free, though the process has not said Rem yet.
		f.atExit = func(node.User) {
			time.AfterFunc(time.Millisecond, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.rem("a", nil)
			})
		}
		g.Unlock()
		g, err = m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g.Unlock()
		time.Sleep(time.Second)

		f.hold = true
		time.AfterFunc(100*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rem("a", nil)
		})
		begin = time.Now()
		_, err = m.TryLock(t.Context())
		wantIs(t, err, ErrNotAcquired)
		if time.Since(begin) != 100*time.Millisecond {
			t.Errorf("TryLock returned after %v", time.Since(begin))
		}
		begin = time.Now()
		_, err = m.TryLock(t.Context()) // the servers are silent
		wantIs(t, err, ErrNotAcquired, errPatience)
		if time.Since(begin) != 1300*time.Millisecond {
			t.Errorf("TryLock returned after %v", time.Since(begin))
		}
		f.setAlive(2)
		_, err = m.TryLock(t.Context())
		wantIs(t, err, ErrNoQuorum)
	})
}

func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Mutex("a"))
		if g.LeaseEnd().IsZero() || g.Token() != 1 || g.Context().Err() != nil {
			t.Errorf("grant %d until %v, context %v", g.Token(), g.LeaseEnd(), g.Context().Err())
		}
		f.eject("a")
		<-g.Context().Done()
		wantIs(t, context.Cause(g.Context()), ErrLost)
		if !g.LeaseEnd().IsZero() {
			t.Errorf("a lost grant is certain until %v", g.LeaseEnd())
		}
		entered := false
		go func() {
			g, err := c.Mutex("a").Lock(context.Background())
			if err == nil {
				entered = true
				g.Unlock()
			}
		}()
		time.Sleep(time.Minute)
		if entered {
			t.Error("the next local user entered before the loser left")
		}
		wantIs(t, g.Unlock(), ErrLost)
		synctest.Wait()
		if !entered {
			t.Error("the turn was not passed")
		}
		if err := g.Unlock(); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("second Unlock: %v", err)
		}
	})
}

func TestUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		g, err := c.Mutex("a").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // the end of Lock's context changes nothing
		if g.Context().Err() != nil || g.Context().Value(key{}) != "value" {
			t.Errorf("context: %v, value %v", g.Context().Err(), g.Context().Value(key{}))
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		if context.Cause(g.Context()) != context.Canceled || !g.LeaseEnd().IsZero() {
			t.Errorf("after Unlock: cause %v, certain until %v", context.Cause(g.Context()), g.LeaseEnd())
		}
		wantIs(t, g.Unlock(), ErrUnlocked)
		if got := f.logged(); !slices.Equal(got, []string{"try a", "exit a"}) {
			t.Errorf("the node saw %v", got)
		}
	})
}

// TestUnlockAfterPause: the machine was stopped for longer than the leases, and
// the user comes before the process has noticed.
func TestUnlockAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		g := lock(t, c.Mutex("a"))
		time.Sleep(2 * time.Hour)
		wantIs(t, g.Unlock(), ErrLost)
		wantIs(t, context.Cause(g.Context()), ErrLost)
	})
}

// TestStoppedBeforeLockReturns: the process was stopped between its entry and the
// return of Lock, for so long that too few of its leases are left to be inside, and
// its node has not noticed.
func TestStoppedBeforeLockReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for live := range 4 {
			c, f := newFake(t)
			f.known, f.sessions = f.sessions, f.sessions[:live]
			g, err := c.Mutex("a").Lock(t.Context())
			switch {
			case live < 2:
				wantIs(t, err, ErrLost)
			case err != nil:
				t.Error(err)
			default:
				if end := g.LeaseEnd(); !end.After(time.Now()) {
					t.Errorf("%d leases: certain for %v", live, time.Until(end))
				}
				g.Unlock()
			}
			synctest.Wait()
			if k := c.lineCount(); k != 0 {
				t.Errorf("%d leases: %d lines are left", live, k)
			}
		}
	})
}

func TestLeaseEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		for _, x := range []struct {
			entry string // minutes of the lease at each server that supports the user, "-" without
			now   string // of the lease at each server later; * another session
			want  int    // minutes; -1: in the past
			early bool   // it is later already when Lock returns
			again bool   // the user is told that all sessions of now support it
		}{
			// Two supports must live.
			{entry: "9 9 9 9", now: "9 8 7 6", want: 8},
			{entry: "9 9 9 9", now: "9 8 7 *", want: 8},
			{entry: "9 9 9 9", now: "9 8 * -", want: 8},
			{entry: "9 9 9 9", now: "9 * * -", want: -1},
			{entry: "9 9 9 -", now: "9 8 7 6", want: 8},
			{entry: "9 9 9 -", now: "6 - 7 9", want: 6}, // the fourth supports nobody
			{entry: "9 9 9 -", now: "9 - * 6", want: -1},
			{entry: "9 9 9 -", now: "6 - 7 9", want: 7, again: true}, // until now
			{entry: "9 9 9 -", now: "9 * * -", want: 9, again: true},
			{entry: "9 9 9 9", now: "9 8 * -", want: 8, early: true},
			{entry: "9 9 9 9", now: "9 * * -", want: -1, early: true},
		} {
			c, f := newFake(t)
			set := func(text string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.sessions = nil
				for i, field := range strings.Fields(text) {
					s := node.Session{Peer: protocol.ID(i), Number: 1, LeaseEnd: begin.Add(9 * time.Minute)}
					switch field {
					case "-":
						continue
					case "*":
						s.Number = 2
					default:
						s.LeaseEnd = begin.Add(time.Duration(field[0]-'0') * time.Minute)
					}
					f.sessions = append(f.sessions, s)
				}
			}
			set(x.entry)
			f.known = f.sessions
			if x.early {
				set(x.now)
			}
			g, err := c.Mutex("a").Lock(t.Context())
			if x.early && x.want < 0 {
				wantIs(t, err, ErrLost)
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			set(x.now)
			if x.again {
				f.supported("a")
			}
			got := g.LeaseEnd()
			if x.want < 0 && got.After(begin) || x.want >= 0 && !got.Equal(begin.Add(time.Duration(x.want)*time.Minute)) {
				t.Errorf("%s, then %s: certain for %v, want %d minutes", x.entry, x.now, got.Sub(begin), x.want)
			}
		}
	})
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Mutex("a")
		mine := errors.New("mine")
		err := m.Do(t.Context(), func(ctx context.Context, g *Grant) error {
			if g.Token() != 1 || ctx.Err() != nil {
				t.Errorf("token %d, context %v", g.Token(), ctx.Err())
			}
			return mine
		})
		if err != mine {
			t.Errorf("Do returned %v", err)
		}
		err = m.Do(t.Context(), func(ctx context.Context, g *Grant) error {
			f.eject("a")
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wantIs(t, err, ErrLost)
		err = m.Do(t.Context(), func(context.Context, *Grant) error {
			f.eject("a")
			synctest.Wait()
			return mine
		})
		wantIs(t, err, ErrLost, mine)
		ctx, cancel := context.WithCancel(t.Context())
		err = m.Do(ctx, func(ctx context.Context, g *Grant) error {
			cancel()
			return ctx.Err()
		})
		if err != context.Canceled {
			t.Errorf("Do with a cancelled context: %v", err)
		}
		err = m.Do(t.Context(), func(_ context.Context, g *Grant) error { return g.Unlock() })
		if err != nil {
			t.Errorf("Do whose function unlocks: %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Do swallowed a panic")
				}
			}()
			m.Do(t.Context(), func(context.Context, *Grant) error { panic("test") })
		}()
		lock(t, m).Unlock()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Mutex("a"))
		errs := make(chan error, 3)
		f.hold = true
		for _, name := range []string{"a", "a", "b"} { // in the queue, in the queue, trying
			go func() {
				_, err := c.Mutex(name).Lock(context.Background())
				errs <- err
			}()
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for range cap(errs) {
			wantIs(t, <-errs, ErrClosed)
		}
		wantIs(t, context.Cause(g.Context()), ErrLost, ErrClosed)
		wantIs(t, g.Unlock(), ErrLost, ErrClosed)
		if err := g.Unlock(); errors.Is(err, ErrLost) {
			t.Errorf("second Unlock: %v", err)
		}
		if _, err := c.Mutex("a").Lock(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Lock after Close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if !slices.Contains(f.logged(), "exit a") {
			t.Errorf("the node saw %v: the lock was not released", f.logged())
		}
		synctest.Wait()
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestNames(t *testing.T) {
	c, f := newFake(t)
	for name, want := range map[string]string{
		"":                        "needs a name",
		"a\nb":                    "control character",
		"\xff":                    "not UTF-8",
		strings.Repeat("x", 1025): "1025 bytes, more than 1024",
	} {
		for _, call := range []func(context.Context) (*Grant, error){c.Mutex(name).Lock, c.Mutex(name).TryLock} {
			if _, err := call(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.10q: error %v, want one with %q", name, err, want)
			}
		}
	}
	for group, want := range map[string]string{
		"a,b": `group "a,b": want 1 to 1024`, "!a": `group "!a": want`, "a b": "without spaces", "\n": "control character",
		"a|b": "none of", "#": "none of", strings.Repeat("x", 1025): "1025 bytes, more than 1024",
	} {
		if _, err := c.Mutex("a").In(group).Lock(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: error %v, want one with %q", group, err, want)
		}
	}
	if got := f.logged(); len(got) != 0 {
		t.Errorf("the node saw %v", got)
	}
	lock(t, c.Mutex(strings.Repeat("ä", 512))).Unlock()
}

func TestBadConfigs(t *testing.T) {
	double := servers(4)
	double[1].Name = double[0].Name
	for want, c := range map[string]Config{
		"empty":                            {},
		"3 servers":                        {Servers: servers(3)},
		`"s0" appears twice`:               {Servers: double},
		"negative Lease -1s":               {Servers: servers(4), Lease: -time.Second},
		"negative ClockBound -1ns":         {Servers: servers(4), ClockBound: -1},
		"ClockBound 1.1s: want at most 1s": {Servers: servers(4), ClockBound: 1100 * time.Millisecond},
		"lease 11m0s: want 20ms to 10m0s":  {Servers: servers(4), Lease: 11 * time.Minute},
		"negative QuorumWait -1m0s":        {Servers: servers(4), QuorumWait: -time.Minute},
		"label \"xxx":                      {Servers: servers(4), Label: strings.Repeat("x", 1025)},
		`label "\xff" is not UTF-8`:        {Servers: servers(4), Label: "\xff"},
		`label "a\nb" has a control`:       {Servers: servers(4), Label: "a\nb"},
	} {
		_, err := Dial(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "poundlock: ") {
			t.Errorf("%+v: error %v, want one with %q", c, err, want)
		}
	}
}

func TestAwaitQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		if err := c.awaitQuorum(t.Context()); err != nil {
			t.Error(err)
		}
		f.setAlive(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.awaitQuorum(ctx)
		wantIs(t, err, ErrNoQuorum, context.DeadlineExceeded)
		if !strings.Contains(fmt.Sprint(err), "s3: no route to host") {
			t.Errorf("error %q", err)
		}
		begin := time.Now()
		wantIs(t, c.awaitQuorum(t.Context()), ErrNoQuorum)
		if d := time.Since(begin); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("waited %v", d)
		}
	})
}
