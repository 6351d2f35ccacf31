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
// its user has let go, or after the grace; a second request does not prolong that.
func TestForcedRelease(t *testing.T) {
	for name, unlocks := range map[string]bool{"its user lets go": true, "its user does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				c.config.ReleaseGrace = 0
				g := lock(t, c.Locks("a", "b"))
				since := g.s.holds[0].stay.request
				if got := c.release(t, "a", since, 3*time.Second); got.Outcome != control.Told || got.GraceMS != 3000 {
					t.Errorf("answer %+v", got)
				}
				time.Sleep(2 * time.Second)
				if got := c.release(t, "a", since, time.Hour); got.Outcome != control.Told || got.GraceMS != 1000 {
					t.Errorf("second answer %+v", got)
				}
				cause := context.Cause(g.Context())
				var revoked *RevokedError
				if wantIs(t, cause, ErrLost); !errors.As(cause, &revoked) || revoked.By != "alice" || revoked.Reason != "it hangs" {
					t.Errorf("cause %v", cause)
				}
				if want := `poundlock: lock "a" lost: released by alice: it hangs`; cause == nil || cause.Error() != want {
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

// TestForcedReleasesOfOneGrant: whoever asks, the earliest end counts, and each
// answer says what is left; what MaxHold and its grace allow is not prolonged, and no
// request goes below Config.ReleaseGrace.
func TestForcedReleasesOfOneGrant(t *testing.T) {
	const second, never, own = time.Second, -time.Second, 3 * time.Second
	type ask struct{ at, grace, left time.Duration }
	for name, x := range map[string]struct {
		maxHold, least time.Duration // the grace after MaxHold is 3 s
		asks           []ask
		end            time.Duration
	}{
		"longer, then at once":           {0, 0, []ask{{0, time.Hour, time.Hour}, {10 * second, 0, 0}}, 10 * second},
		"longer, then shorter":           {0, 0, []ask{{0, time.Hour, time.Hour}, {10 * second, 5 * second, 5 * second}}, 15 * second},
		"shorter, then longer":           {0, 0, []ask{{0, 20 * second, 20 * second}, {15 * second, 10 * second, 5 * second}}, 20 * second},
		"its own, then shorter":          {0, 0, []ask{{0, never, 3 * second}, {second, second, second}}, 2 * second},
		"longer than MaxHold allows":     {60 * second, 0, []ask{{10 * second, time.Hour, 53 * second}}, 63 * second},
		"shorter than MaxHold":           {60 * second, 0, []ask{{10 * second, 5 * second, 5 * second}}, 15 * second},
		"after MaxHold, longer":          {60 * second, 0, []ask{{61 * second, time.Hour, 2 * second}}, 63 * second},
		"after MaxHold, at once":         {60 * second, 0, []ask{{61 * second, 0, 0}}, 61 * second},
		"shorter across MaxHold's end":   {60 * second, 0, []ask{{59 * second, 2 * second, 2 * second}}, 61 * second},
		"shorter than is allowed":        {0, own, []ask{{0, 0, own}, {second, second, 2 * second}}, own},
		"shorter than its own, allowed":  {0, 2 * second, []ask{{0, 0, 2 * second}}, 2 * second},
		"at once, MaxHold is near":       {60 * second, own, []ask{{59 * second, 0, own}}, 62 * second},
		"MaxHold alone, which is no ask": {60 * second, 0, nil, 63 * second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(t)
				c.config.MaxHold, c.config.Grace, c.config.ReleaseGrace = x.maxHold, own, x.least
				g := lock(t, c.Mutex("a"))
				since, begin := g.s.holds[0].stay.request, time.Now()
				for _, a := range x.asks {
					time.Sleep(time.Until(begin.Add(a.at)))
					synctest.Wait()
					got := c.release(t, "a", since, a.grace)
					if got.Outcome != control.Told || got.GraceMS != a.left.Milliseconds() {
						t.Errorf("asked after %v with a grace of %v: %+v, want %v", a.at, a.grace, got, a.left)
					}
					if left := time.Until(g.LeaseEnd()); a.left > 0 && (left != a.left || !g.LeaveBy().Equal(g.LeaseEnd())) {
						t.Errorf("asked after %v: held for another %v, want %v; to leave by %v", a.at, left, a.left, g.LeaveBy())
					}
				}
				if x.end -= time.Since(begin); x.end > 0 {
					time.Sleep(x.end - time.Millisecond)
					synctest.Wait()
					if f.exits() != 0 {
						t.Error("given up before the end")
					}
					time.Sleep(time.Millisecond)
				}
				synctest.Wait()
				if f.exits() != 1 || !g.LeaseEnd().IsZero() {
					t.Errorf("%d locks are given up at the end, held until %v", f.exits(), g.LeaseEnd())
				}
				wantIs(t, g.Unlock(), ErrLost)
			})
		})
	}
}

// TestReleaseGrace: its default is the holder's own grace, so that nobody else shortens
// that, and its own grace is also the most that it can be.
func TestReleaseGrace(t *testing.T) {
	c, err := newClient(Config{Servers: servers(4), Grace: time.Minute})
	if err != nil || c.config.ReleaseGrace != time.Minute {
		t.Errorf("%v, %v by default", err, c.config.ReleaseGrace)
	}
	if _, err = newClient(Config{Servers: servers(4), Grace: time.Second, ReleaseGrace: 2 * time.Second}); err == nil {
		t.Error("more than the grace is accepted")
	}
}

// TestAwaitUnlock: neither MaxHold nor an operator gives up a lock whose user is still
// inside, and the lease goes on.
func TestAwaitUnlock(t *testing.T) {
	for _, ask := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, f := newFake(t)
			c.config.MaxHold, c.config.Grace, c.config.ReleaseGrace, c.config.AwaitUnlock = time.Minute, 3*time.Second, 0, true
			g := lock(t, c.Locks("a", "b"))
			leave := time.Now().Add(63 * time.Second)
			if !g.LeaveBy().IsZero() {
				t.Errorf("to leave by %v", g.LeaveBy())
			}
			if ask {
				if got := c.release(t, "a", g.s.holds[0].stay.request, time.Second); got.Outcome != control.Told || got.GraceMS != 1000 {
					t.Errorf("answer %+v", got)
				}
				leave = time.Now().Add(time.Second)
			}
			<-g.Context().Done()
			synctest.Wait()
			if !g.LeaveBy().Equal(leave) {
				t.Errorf("to leave by %v, want %v", g.LeaveBy(), leave)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if k := f.exits(); k != 0 || time.Until(g.LeaseEnd()) <= 0 {
				t.Errorf("%d locks are given up, held until %v", k, g.LeaseEnd())
			}
			if got := c.release(t, "a", g.s.holds[0].stay.request, 0); got.Outcome != control.Told || got.GraceMS != 0 {
				t.Errorf("answer when the grace is over: %+v", got)
			}
			wantIs(t, g.Unlock(), ErrLost)
			synctest.Wait()
			if k := f.exits(); k != 2 || !g.LeaveBy().IsZero() {
				t.Errorf("%d locks are given up, to leave by %v", k, g.LeaveBy())
			}
		})
	}
}

// TestForcedReleaseOfAnOldGrant ends no later one.
func TestForcedReleaseOfAnOldGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		old := lock(t, c.Mutex("a"))
		since := old.s.holds[0].stay.request
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
			control.CheckReason(r.Reason) == nil && strings.HasSuffix(r.Request, fmt.Sprintf("-%x", g.s.holds[0].stay.request))
		if (g.Context().Err() != nil) && !meant {
			t.Errorf("%q ends a grant", request)
		}
	})
}
