package poundlock

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/control"
)

// TestDowngrade: a grant that is alone becomes one of a group, and stays what it is otherwise.
func TestDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Locks("a", "b"))
		tokens, end := g.Tokens(), g.LeaseEnd()
		if err := g.Downgrade(""); err != nil || g.Group() != "" {
			t.Errorf("alone as before: %v, in group %q", err, g.Group())
		}
		wantLog(t, f, "try a", "try b")
		for range 2 {
			if err := g.Downgrade(Shared); err != nil || g.Group() != Shared {
				t.Errorf("%v, in group %q", err, g.Group())
			}
		}
		wantLog(t, f, "try a", "try b", "downgrade a to shared", "downgrade b to shared")
		if now := g.Tokens(); g.Context().Err() != nil || now[0] != tokens[0] || now[1] != tokens[1] || !g.LeaseEnd().Equal(end) {
			t.Errorf("tokens %v until %v were %v until %v; context %v", now, g.LeaseEnd(), tokens, end, g.Context().Err())
		}
		beside, err := c.Locks("b", "a").In(Shared).TryLock(t.Context())
		if err != nil || beside.Token() != tokens[0] {
			t.Fatalf("%v, with token %d beside %d", err, beside.Token(), tokens[0])
		}
		_, err = c.Mutex("a").TryLock(t.Context())
		wantIs(t, err, ErrNotAcquired)
		for _, x := range []*Grant{g, beside} {
			if err := x.Unlock(); err != nil {
				t.Error(err)
			}
			wantIs(t, x.Downgrade(Shared), ErrUnlocked)
			wantIs(t, x.Downgrade(""), ErrUnlocked)
		}
		wantLog(t, f, "try a", "try b", "downgrade a to shared", "downgrade b to shared", "exit b", "exit a")
		wantNoLines(t, c)
	})
}

// TestNoUpgrade: one of a group goes nowhere from there, and no name is one that a Mutex would not take.
func TestNoUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Mutex("a").In("r"))
		for group, want := range map[string]string{
			"":   `poundlock: lock "a": a grant of group "r" cannot become exclusive: unlock, lock again, and look whether what was read still holds`,
			"q":  `poundlock: lock "a": a grant of group "r" cannot become one of group "q": unlock, lock again`,
			"!r": `poundlock: group "!r": want 1 to 1024 letters`,
			"a,": `poundlock: group "a,": want`,
		} {
			if err := g.Downgrade(group); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v, want %s", group, err, want)
			}
		}
		if err := g.Downgrade("r"); err != nil || g.Group() != "r" {
			t.Errorf("%v, in group %q", err, g.Group())
		}
		g.Unlock()
		wantLog(t, f, "try a", "exit a")
	})
}

// TestDowngradeOfTheLost: a grant that was lost, or is to be, lets nobody in.
func TestDowngradeOfTheLost(t *testing.T) {
	for name, lose := range map[string]func(c *Client, f *fakeNode, g *Grant){
		"told": func(_ *Client, f *fakeNode, g *Grant) {
			f.eject("a")
			<-g.Context().Done()
		},
		"not told yet": func(_ *Client, f *fakeNode, _ *Grant) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sessions = f.sessions[:1]
		},
		"released": func(c *Client, _ *fakeNode, g *Grant) {
			if got := c.release(t, "a", g.s.holds[0].stay.request, -1); got.Outcome != control.Told {
				t.Errorf("release: %+v", got)
			}
		},
		"closed": func(c *Client, _ *fakeNode, _ *Grant) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				g := lock(t, c.Mutex("a"))
				lose(c, f, g)
				wantIs(t, g.Downgrade(Shared), ErrLost)
				if g.Group() != "" || strings.Contains(strings.Join(f.logged(), " "), "downgrade") {
					t.Errorf("it is in group %q; the node saw %v", g.Group(), f.logged())
				}
				wantIs(t, g.Unlock(), ErrLost)
			})
		})
	}
}

// TestForcedReleaseAfterDowngrade: an operator ends all that share what one had alone, and who joins may stay no longer.
func TestForcedReleaseAfterDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		g := lock(t, c.Mutex("a"))
		if err := g.Downgrade("r"); err != nil {
			t.Fatal(err)
		}
		beside := lock(t, c.Mutex("a").In("r"))
		if got := c.release(t, "a", g.s.holds[0].stay.request, time.Second); got.Outcome != control.Told {
			t.Errorf("release: %+v", got)
		}
		for _, x := range []*Grant{g, beside} {
			wantIs(t, x.Downgrade("r"), ErrLost)
			wantIs(t, x.Unlock(), ErrLost)
		}
		wantLog(t, f, "try a", "downgrade a to r", "exit a")
		wantNoLines(t, c)
	})
}

// TestDowngradeBesideUnlock: the node hears of a downgrade before the Exit, or it would be one of the next user, who is
// alone.
func TestDowngradeBesideUnlock(t *testing.T) {
	c, f := newFake(t)
	g := lock(t, c.Mutex("a"))
	left := make(chan error, 1)
	f.beforeDowngrade = func() {
		go func() { left <- g.Unlock() }()
		select {
		case err := <-left:
			left <- err
		case <-time.After(20 * time.Millisecond): // it waits, as it should
		}
	}
	if err := g.Downgrade("r"); err != nil {
		t.Error(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	if want := []string{"try a", "downgrade a to r", "exit a"}; !slices.Equal(f.logged(), want) {
		t.Errorf("the node saw %v, want %v", f.logged(), want)
	}
}
