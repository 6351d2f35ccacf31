package poundlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
)

// release asks c, as a server does, to end the request of a time; a negative grace is
// c's own.
func (c *Client) release(t *testing.T, name string, since uint64, grace time.Duration) control.Released {
	t.Helper()
	r := control.Release{
		Ask: control.ForcedRelease, Name: []byte(name), Request: node.RequestID(c.id, since), Reason: "it hangs", By: "alice",
	}
	if grace >= 0 {
		ms := grace.Milliseconds()
		r.GraceMS = &ms
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var answer control.Released
	if err := json.Unmarshal(c.answer(b), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func (f *fakeNode) exits() int {
	n := 0
	for _, what := range f.logged() {
		if strings.HasPrefix(what, "exit") {
			n++
		}
	}
	return n
}

// TestForcedRelease: the holder hears who wants its lock and why, and it leaves when
// its user has let go, or after the grace; two requests are like one.
func TestForcedRelease(t *testing.T) {
	for name, unlocks := range map[string]bool{"its user lets go": true, "its user does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				g := lock(t, c.Locks("a", "b"))
				since := g.s.holds[0].request
				if got := c.release(t, "a", since, 3*time.Second); got.Outcome != control.Told || got.GraceMS != 3000 {
					t.Errorf("answer %+v", got)
				}
				time.Sleep(2 * time.Second)
				if got := c.release(t, "a", since, time.Hour); got.Outcome != control.Told {
					t.Errorf("second answer %+v", got)
				}
				cause := context.Cause(g.Context())
				var revoked *RevokedError
				if wantIs(t, cause, ErrLost); !errors.As(cause, &revoked) || revoked.By != "alice" || revoked.Reason != "it hangs" {
					t.Errorf("cause %v", cause)
				}
				if want := `poundlock: lock lost: released by alice: it hangs: lock "a"`; cause == nil || cause.Error() != want {
					t.Errorf("cause %q, want %q", cause, want)
				}
				if k := f.exits(); k != 0 {
					t.Errorf("%d locks are given up while their user may be inside", k)
				}
				if unlocks {
					wantIs(t, g.Unlock(), ErrLost)
				} else {
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if k := f.exits(); k != 2 {
					t.Errorf("%d locks are given up, want both", k)
				}
				if !unlocks {
					wantIs(t, g.Unlock(), ErrLost)
				}
				if got := c.release(t, "a", since, 0); got.Outcome != control.Gone {
					t.Errorf("answer afterwards %+v", got)
				}
			})
		})
	}
}

// TestForcedReleaseOfAnOldGrant ends no later one.
func TestForcedReleaseOfAnOldGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		old := lock(t, c.Mutex("a"))
		since := old.s.holds[0].request
		old.Unlock()
		g := lock(t, c.Mutex("a"))
		defer g.Unlock()
		for _, name := range []string{"a", "other"} {
			if got := c.release(t, name, since, 0); got.Outcome != control.Gone {
				t.Errorf("%s: answer %+v", name, got)
			}
		}
		synctest.Wait()
		if err := g.Context().Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestForcedReleaseOfAWaiter: it gives up, and what it has already it gives back; a
// request of a time before it came leaves it alone.
func TestForcedReleaseOfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.holdNames = map[string]bool{"b": true}
		before := uint64(time.Now().UnixNano())
		time.Sleep(time.Second)
		result := make(chan error, 1)
		go func() {
			_, err := c.Locks("a", "b").Lock(context.Background())
			result <- err
		}()
		synctest.Wait()
		if got := c.release(t, "b", before, -1); got.Outcome != control.Gone {
			t.Errorf("answer to an old request %+v", got)
		}
		if got := c.release(t, "b", uint64(time.Now().UnixNano()), -1); got.Outcome != control.Told {
			t.Errorf("answer %+v", got)
		}
		err := <-result
		var revoked *RevokedError
		if wantIs(t, err, ErrNotAcquired); !errors.As(err, &revoked) || errors.Is(err, ErrLost) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if got := f.logged(); !slices.Equal(got, []string{"try a", "try b", "cancel b", "exit a"}) {
			t.Errorf("the node saw %v", got)
		}
	})
}

// FuzzControlRequests: whatever a server asks, a client answers, and only a request
// with a reason, for a request that is there, has an effect.
func FuzzControlRequests(f *testing.F) {
	for _, x := range []string{
		`{"ask":"release","name":"YQ==","request":"%s-1","reason":"r"}`,
		`{"ask":"release","name":"YQ==","request":"%s-1","reason":"","grace_ms":-1}`,
		`{"ask":"sessions"}`, "", "null", "[]",
	} {
		f.Add([]byte(x))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		c, _ := newFake(t)
		g := lock(t, c.Mutex("a"))
		defer g.Unlock()
		var answer control.Released
		if err := json.Unmarshal(c.answer(request), &answer); err != nil {
			t.Fatal(err)
		}
		var r control.Release
		meant := json.Unmarshal(request, &r) == nil && r.Ask == control.ForcedRelease && string(r.Name) == "a" &&
			control.CheckReason(r.Reason) == nil && strings.HasSuffix(r.Request, fmt.Sprintf("-%x", g.s.holds[0].request))
		if (g.Context().Err() != nil) && !meant {
			t.Errorf("%q ends a grant", request)
		}
	})
}
