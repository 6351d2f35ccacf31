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
)

func TestSeveralNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Locks("b", "a", "c")
		if m.Name() != "a\nb\nc" {
			t.Errorf("name %q", m.Name())
		}
		g := lock(t, m)
		if !slices.Equal(g.Names(), []string{"a", "b", "c"}) || !slices.Equal(g.Tokens(), []uint64{1, 2, 3}) || g.Token() != 1 {
			t.Errorf("names %q, tokens %v, token %d", g.Names(), g.Tokens(), g.Token())
		}
		if g.LeaseEnd().IsZero() {
			t.Error("no end of the lease")
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{"try a", "try b", "try c", "exit c", "exit b", "exit a"}
		if got := f.logged(); !slices.Equal(got, want) {
			t.Errorf("the node saw %v, want %v", got, want)
		}
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
		if err := g.Unlock(); !errors.Is(err, ErrUnlocked) || err.Error() != `poundlock: locks "a", "b", "c": unlocked already` {
			t.Errorf("second Unlock: %v", err)
		}
	})
}

// TestAllOrNothing: whatever ends the wait for a later name, the earlier ones are
// given up.
func TestAllOrNothing(t *testing.T) {
	for name, x := range map[string]struct {
		once  bool
		end   func(c *Client, f *fakeNode, cancel func())
		want  []error
		nodes []string
	}{
		"the context ends": {end: func(_ *Client, _ *fakeNode, cancel func()) { cancel() }, want: []error{ErrNotAcquired, context.Canceled}},
		"the process gives up": {
			end: func(_ *Client, f *fakeNode, _ func()) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.rem("b", errors.New("clock 3s ahead"))
			},
			want: []error{ErrNotAcquired},
		},
		"no quorum":         {end: func(_ *Client, f *fakeNode, _ func()) { f.setAlive(1) }, want: []error{ErrNoQuorum}},
		"TryLock":           {once: true, end: func(*Client, *fakeNode, func()) {}, want: []error{ErrNotAcquired, errPatience}},
		"the first is lost": {end: func(_ *Client, f *fakeNode, _ func()) { f.eject("a") }, want: []error{ErrNotAcquired, ErrLost}},
		"the client closes": {end: func(c *Client, _ *fakeNode, _ func()) { c.Close() }, want: []error{ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				f.holdNames = map[string]bool{"b": true}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result := make(chan error)
				go func() {
					lock := c.Locks("a", "b").Lock
					if x.once {
						lock = c.Locks("a", "b").TryLock
					}
					g, err := lock(ctx)
					if g != nil {
						t.Error("a grant")
					}
					result <- err
				}()
				synctest.Wait()
				x.end(c, f, cancel)
				wantIs(t, <-result, x.want...)
				synctest.Wait()
				if got := f.logged(); !slices.Contains(got, "exit a") {
					t.Errorf("the node saw %v: the first name is not released", got)
				}
				if k := c.lineCount(); k != 0 {
					t.Errorf("%d lines are left", k)
				}
			})
		})
	}
}

// TestLossOfOne of several names ends the grant, and says which.
func TestLossOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Locks("a", "b", "c"))
		f.eject("b")
		<-g.Context().Done()
		cause := context.Cause(g.Context())
		wantIs(t, cause, ErrLost)
		if !strings.Contains(cause.Error(), `lock "b"`) || !g.LeaseEnd().IsZero() {
			t.Errorf("cause %q, certain until %v", cause, g.LeaseEnd())
		}
		if got := f.logged(); slices.Contains(got, "exit a") {
			t.Errorf("released before Unlock: %v", got)
		}
		if err := g.Unlock(); err != cause {
			t.Errorf("Unlock: %v, want %v", err, cause)
		}
		synctest.Wait()
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestBadNames(t *testing.T) {
	c, f := newFake(t)
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for want, names := range map[string][]string{
		"poundlock: a lock needs a name":                      nil,
		`poundlock: lock "a" is named twice`:                  {"a", "b", "a"},
		"poundlock: a lock needs a name ":                     {"a", ""},
		`control character`:                                   {"a", "b\nc"},
		"poundlock: 1001 names: at most 1000 locks are held ": many,
	} {
		m := c.Locks(names...)
		for _, call := range []func(context.Context) (*Grant, error){m.Lock, m.TryLock} {
			if _, err := call(t.Context()); err == nil || !strings.Contains(err.Error()+" ", want) {
				t.Errorf("%.3q: error %v, want %q", names, err, want)
			}
		}
	}
	if got := f.logged(); len(got) != 0 {
		t.Errorf("the node saw %v", got)
	}
}

// TestMaxHold: the context ends first; the lock follows with Unlock, or after the
// grace without it, and then the next local user gets in.
func TestMaxHold(t *testing.T) {
	for _, obedient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, f := newFake(t)
			c.config.MaxHold, c.config.Grace = time.Minute, 3*time.Second
			begin := time.Now()
			g := lock(t, c.Locks("a", "b"))
			next := make(chan time.Duration)
			go func() {
				g, err := c.Mutex("a").Lock(context.Background())
				if err != nil {
					t.Error(err)
				} else {
					defer g.Unlock()
				}
				next <- time.Since(begin)
			}()
			<-g.Context().Done()
			cause := context.Cause(g.Context())
			wantIs(t, cause, ErrLost, ErrMaxHold)
			if d := time.Since(begin); d != time.Minute {
				t.Errorf("ended after %v", d)
			}
			if left := time.Until(g.LeaseEnd()); left != 3*time.Second {
				t.Errorf("held for another %v", left)
			}
			synctest.Wait()
			if got := f.logged(); slices.Contains(got, "exit a") {
				t.Errorf("given up before the grace was over: %v", got)
			}
			want := time.Minute
			if obedient {
				wantIs(t, g.Unlock(), ErrMaxHold)
			} else {
				want += 3 * time.Second
			}
			if d := <-next; d != want {
				t.Errorf("obedient %v: the next user came after %v, want %v", obedient, d, want)
			}
			if !g.LeaseEnd().IsZero() {
				t.Errorf("given up, and held until %v", g.LeaseEnd())
			}
			if !obedient { // the late Unlock must not hit what the next one has
				wantIs(t, g.Unlock(), ErrLost, ErrMaxHold)
			}
			synctest.Wait()
			want2 := []string{"try a", "try b", "exit b", "exit a", "try a", "exit a"}
			if got := f.logged(); !slices.Equal(got, want2) {
				t.Errorf("the node saw %v, want %v", got, want2)
			}
			if k := c.lineCount(); k != 0 {
				t.Errorf("%d lines are left", k)
			}
		})
	}
}

// TestLossAfterMaxHold: a real loss within the grace is one.
func TestLossAfterMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		c.config.MaxHold, c.config.Grace = time.Minute, time.Hour
		g := lock(t, c.Locks("a", "b"))
		time.Sleep(2 * time.Minute)
		if g.LeaseEnd().IsZero() {
			t.Error("not held within the grace")
		}
		f.eject("b")
		synctest.Wait()
		if !g.LeaseEnd().IsZero() {
			t.Errorf("lost, and held until %v", g.LeaseEnd())
		}
		wantIs(t, g.Unlock(), ErrMaxHold)
	})
}

// TestMaxHoldNotReached: a grant that ends earlier, by whatever, leaves no timer
// that would end anything later.
func TestMaxHoldNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		c.config.MaxHold = time.Minute
		m := c.Mutex("a")
		if err := lock(t, m).Unlock(); err != nil {
			t.Error(err)
		}
		time.Sleep(59 * time.Second)
		g := lock(t, m)
		time.Sleep(30 * time.Second)
		if err := g.Unlock(); err != nil {
			t.Errorf("the second grant: %v", err)
		}
		g = lock(t, m)
		f.eject("a")
		time.Sleep(2 * time.Minute)
		if err := g.Unlock(); errors.Is(err, ErrMaxHold) || !errors.Is(err, ErrLost) {
			t.Errorf("a grant that was lost before: %v", err)
		}
		g = lock(t, m)
		c.Close()
		time.Sleep(2 * time.Minute)
		if err := g.Unlock(); errors.Is(err, ErrMaxHold) || !errors.Is(err, ErrClosed) {
			t.Errorf("a grant of a closed client: %v", err)
		}
	})
}

func TestLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		panics := func(f func()) (p any) {
			defer func() { p = recover() }()
			f()
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		l := c.Mutex("a").Locker(ctx)
		inside := 0
		for range 5 {
			go func() {
				l.Lock()
				defer l.Unlock()
				if inside++; inside != 1 {
					t.Errorf("%d are inside", inside)
				}
				time.Sleep(time.Second)
				inside--
			}()
		}
		time.Sleep(10 * time.Second)

		// It outlasts servers that are away.
		f.setAlive(2)
		f.hold = true
		begin := time.Now()
		time.AfterFunc(time.Minute, func() {
			f.setAlive(4)
			f.mu.Lock()
			f.hold = false
			f.mu.Unlock()
		})
		go func() { // a Try that is held back is granted only when asked again
			time.Sleep(time.Minute)
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.users["a"] != nil && !f.inside["a"] {
				f.grant("a")
			}
		}()
		l.Lock()
		if d := time.Since(begin); d < time.Minute || d > 62*time.Second {
			t.Errorf("locked after %v", d)
		}

		// A loss is loud, and whoever is still inside is alone in this Locker, even
		// once the lock has been given up for it.
		f.mu.Lock()
		lost := f.users["a"].(*stay).holds.first.section
		f.mu.Unlock()
		lost.revoke(ErrMaxHold)
		entered := make(chan bool, 1)
		go func() {
			l.Lock()
			entered <- true
			l.Unlock()
		}()
		time.Sleep(time.Minute)
		select {
		case <-entered:
			t.Error("two goroutines are inside of one Locker")
		default:
		}
		if got := f.logged(); got[len(got)-1] != "exit a" {
			t.Errorf("the node saw %v: not given up", got)
		}
		if err, _ := panics(l.Unlock).(error); !errors.Is(err, ErrLost) {
			t.Errorf("Unlock of a lost lock panics with %v", err)
		}
		<-entered
		synctest.Wait()
		if p := panics(l.Unlock); p == nil {
			t.Error("Unlock of what is not locked returned")
		}

		l.Lock()
		time.AfterFunc(time.Second, cancel)
		if err, _ := panics(l.Lock).(error); !errors.Is(err, ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Errorf("Lock with an ended context panics with %v", err)
		}
		l.Unlock()
		for _, bad := range []func(){
			c.Mutex("").Locker(t.Context()).Lock,
			func() {
				c.Close()
				c.Mutex("a").Locker(t.Context()).Lock()
			},
		} {
			if _, ok := panics(bad).(error); !ok {
				t.Error("Lock that cannot succeed returned")
			}
		}
	})
}
