package poundlock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHeadStart: a request has the head start of the Mutex that it began with, of any kind; of those that share it the first one's.
func TestHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		const d = time.Second
		for k, m := range []*Mutex{
			c.Mutex("a"), c.Mutex("a").HeadStart(d), c.Mutex("a").HeadStart(d).In("red"), c.RWMutex("a").HeadStart(d).m,
			c.RWMutex("a").HeadStart(d).readers(), c.Groups("a").HeadStart(d).m.In("red"), c.Mutex("a").HeadStart(time.Minute).HeadStart(0),
		} {
			g := lock(t, m)
			if want := m.ahead; f.heads[k] != want || want != d == (k > 0 && k < 6) {
				t.Errorf("%d: a head start of %v, want %v", k, f.heads[k], want)
			}
			g.Unlock()
			synctest.Wait()
		}
		f.heads = nil
		lock(t, c.Locks("a", "b").HeadStart(d)).Unlock()
		synctest.Wait()
		if !slices.Equal(f.heads, []time.Duration{d, d}) {
			t.Errorf("of two locks: %v", f.heads)
		}

		// In the line of this client the first comes first.
		f.heads = nil
		g := lock(t, c.Mutex("a"))
		order := make(chan time.Duration, 2)
		for _, ahead := range []time.Duration{0, d} {
			go func() {
				g := lock(t, c.Mutex("a").HeadStart(ahead))
				order <- ahead
				g.Unlock()
			}()
			synctest.Wait()
		}
		g.Unlock()
		if first, second := <-order, <-order; first != 0 || second != d {
			t.Errorf("%v came before %v", first, second)
		}
		synctest.Wait()
		if !slices.Equal(f.heads, []time.Duration{0, 0, d}) {
			t.Errorf("one after the other: %v", f.heads)
		}
		// Who comes into a lock that is shared needs none.
		f.heads = nil
		g = lock(t, c.RWMutex("a").readers())
		lock(t, c.RWMutex("a").HeadStart(d).readers()).Unlock()
		g.Unlock()
		synctest.Wait()
		if !slices.Equal(f.heads, []time.Duration{0}) {
			t.Errorf("of two that share: %v", f.heads)
		}
	})
}

func TestWrongHeadStart(t *testing.T) {
	c, f := newFake(t)
	for _, d := range []time.Duration{-1, time.Minute + 1} {
		for what, m := range map[string]*Mutex{
			"mutex": c.Mutex("a").HeadStart(d), "readers": c.RWMutex("a").HeadStart(d).readers(), "group": c.Groups("a").HeadStart(d).m.In("red"),
		} {
			_, err := m.Lock(t.Context())
			if want := fmt.Sprintf("a head start of %v: want 0 to 1m0s", d); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
	}
	if len(f.logged()) > 0 {
		t.Errorf("it asked for a lock: %v", f.logged())
	}
}
