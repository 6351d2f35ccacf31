package poundlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// TestAnyOf: whoever wants any of several groups joins what its client holds in one of them, and learns which one it is in.
func TestAnyOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Groups("a")
		first := lock(t, c.Mutex("a").In("red"))
		_, err := m.TryLock(t.Context(), "blue", "green")
		wantIs(t, err, ErrNotAcquired)
		f.down() // nor must a server be there
		for _, enter := range []func(context.Context, string, ...string) (*Grant, error){m.Lock, m.TryLock} {
			g, err := enter(t.Context(), "blue", "green", "red")
			if err != nil {
				t.Fatal(err)
			}
			if g.Group() != "red" || g.Token() != first.Token() {
				t.Errorf("it is in %q with token %d", g.Group(), g.Token())
			}
			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
		}
		first.Unlock()
		wantLog(t, f, "try a", "exit a")
		wantNoLines(t, c)
	})
}

// TestAnyOfUndecided: nobody joins a Try for any of several groups before its process has said which one it is. Then all come
// in that take this one.
func TestAnyOfUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold, f.group = true, "red"
		all := map[string]*call{}
		for _, x := range []struct {
			name   string
			group  string
			others []string
		}{{"any", "blue", []string{"red"}}, {"blue", "blue", nil}, {"red", "red", nil}, {"same", "blue", []string{"red"}}, {"other", "green", []string{"red"}}} {
			all[x.name] = begin(t, c.Mutex("a").In(x.group, x.others...).Lock)
		}
		wantInside(t, all, "")
		f.letIn("a")
		wantInside(t, all, "any other red same")
		for _, name := range []string{"any", "other", "red", "same"} {
			if g := all[name].grant(); g.Group() != "red" {
				t.Errorf("%s is in %q", name, g.Group())
			}
			all[name].unlock(t)
			delete(all, name)
		}
		f.letIn("a")
		wantInside(t, all, "blue")
		all["blue"].unlock(t)
		wantLog(t, f, "try a", "exit a", "try a", "exit a")
		wantNoLines(t, c)
	})
}

// TestAnyOfGivesUp: a Try for any of several groups goes on for somebody who wants the same, and for nobody else.
func TestAnyOfGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold, f.group = true, "red"
		m := c.Groups("a")
		any := func(ctx context.Context) (*Grant, error) { return m.Lock(ctx, "blue", "red") }
		first, second := begin(t, any), begin(t, any)
		red := begin(t, func(ctx context.Context) (*Grant, error) { return m.Lock(ctx, "red") })
		first.cancel()
		synctest.Wait()
		wantIs(t, first.err(), ErrNotAcquired)
		wantLog(t, f, "try a")
		second.cancel()
		synctest.Wait()
		wantIs(t, second.err(), ErrNotAcquired)
		wantLog(t, f, "try a", "cancel a", "try a")
		f.letIn("a")
		red.unlock(t)
		wantNoLines(t, c)
	})
}

// TestAnyOfSeveralLocks: several locks are held in the group of the first one.
func TestAnyOfSeveralLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.group = "red"
		g := lock(t, c.Locks("a", "b").In("blue", "red"))
		if got := f.wants("b"); got != "red" || g.Group() != "red" {
			t.Errorf("it wants %q after the first one, and is in %q", got, g.Group())
		}
		if err := g.Downgrade("blue"); err == nil {
			t.Error("a grant of one group goes over to another one")
		}
		g.Unlock()
		wantNoLines(t, c)
	})
}

// wants is what the user of a lock asked for, or has.
func (f *fakeNode) wants(name string) protocol.Groups {
	f.mu.Lock()
	u := f.users[name]
	f.mu.Unlock()
	return u.(*stay).Wants()
}

// TestAnyOfKept: a lock that is kept in one of the groups is had at once.
func TestAnyOfKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		m := c.Groups("a").Keep(time.Minute)
		lockIn := func(group string, others ...string) {
			t.Helper()
			g, err := m.Lock(t.Context(), group, others...)
			if err != nil {
				t.Fatal(err)
			}
			if g.Group() != "red" {
				t.Errorf("it is in %q", g.Group())
			}
			g.Unlock()
		}
		lockIn("red")
		lockIn("blue", "red")
		lockIn("red")
		wantLog(t, f, "try a")
	})
}

// TestBadGroups: what cannot be is refused, and the message names the value.
func TestBadGroups(t *testing.T) {
	c, f := newFake(t)
	empty := `poundlock: group "": want 1 to 1024 letters, digits or signs without spaces, and none of , ! | = #`
	for want, groups := range map[string][]string{
		empty: {""},
		"poundlock: 4 groups: want 3 at most, of which any one will do":                                         {"a", "b", "c", "d"},
		`poundlock: group "b" is named twice`:                                                                   {"a", "b", "b"},
		`poundlock: group "b,c": want 1 to 1024 letters, digits or signs without spaces, and none of , ! | = #`: {"a", "b,c"},
	} {
		g, err := c.Groups("a").Lock(t.Context(), groups[0], groups[1:]...)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", groups, g, err, want)
		}
	}
	if _, err := c.Groups("a").TryLock(t.Context(), "", "b"); err == nil || err.Error() != empty {
		t.Errorf("TryLock of no group and of another one: %v", err)
	}
	if err := c.Groups("a").Do(t.Context(), "", nil); err == nil || err.Error() != empty {
		t.Errorf("Do for no group: %v", err)
	}
	if got := f.logged(); len(got) > 0 {
		t.Errorf("the node saw %v", got)
	}
}
