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

// An error names the lock first, says each thing once, and names no inner layer.
func TestErrorTexts(t *testing.T) {
	revoked := &RevokedError{"root@vm/17465", "maintenance"}
	four := &node.UnreachableError{Want: 3, Cause: context.DeadlineExceeded}
	for i := range 4 {
		four.Members = append(four.Members, node.MemberError{
			Peer: node.Peer{Name: fmt.Sprintf("s%d", i+1), Addr: fmt.Sprintf("10.0.0.%d:7000", i+1)},
			Err:  errors.New("x509: unknown authority"),
		})
	}
	for _, x := range []struct {
		err  error
		want string
	}{
		{&failure{ErrLost, locks("worker"), revoked}, `poundlock: lock "worker" lost: released by root@vm/17465: maintenance`},
		{&failure{ErrLost, locks("worker"), ErrMaxHold}, `poundlock: lock "worker" lost: held for longer than allowed`},
		{&failure{ErrLost, locks("worker"), nil}, `poundlock: lock "worker" lost`},
		{failed("a", ErrClosed), `poundlock: lock "a": client closed`},
		{failed("a", context.DeadlineExceeded), `poundlock: lock "a" not acquired: context deadline exceeded`},
		{
			failed("a", &failure{kind: ErrNoQuorum, why: after(context.DeadlineExceeded, protocol.TooFew)}),
			`poundlock: lock "a": no quorum of servers: ` + protocol.TooFew.Error(),
		},
		{failed("b", &failure{ErrLost, locks("a"), revoked}), `poundlock: lock "b" not acquired: lock "a" lost: released by root@vm/17465: maintenance`},
		{
			failed("a", &failure{kind: ErrNoQuorum, why: four}),
			`poundlock: lock "a": no quorum of servers: 0 of 4 servers reachable, 3 wanted: s1 (10.0.0.1:7000), s2 (10.0.0.2:7000), ` +
				`s3 (10.0.0.3:7000), s4 (10.0.0.4:7000): x509: unknown authority`,
		},
	} {
		if got := x.err.Error(); got != x.want {
			t.Errorf("got  %s\nwant %s", got, x.want)
		}
	}
}

// A loss says which leases are over, and Do says it once, whatever f returns.
func TestLossByLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		lapse := func() {
			for range 2 { // one after the other, and the user hears what is left each time
				f.mu.Lock()
				f.sessions = slices.Delete(f.sessions, 0, 1)
				f.mu.Unlock()
				f.supported("a")
			}
			f.eject("a")
			synctest.Wait()
		}
		const want = `poundlock: lock "a" lost: leases at s0, s1 lapsed`
		mine := errors.New("mine")
		for _, x := range []struct {
			name   string
			f      func(ctx context.Context) error
			want   string
			wanted []error
		}{
			{"the cause", context.Cause, want, []error{ErrLost}},
			{"the cause, wrapped", func(ctx context.Context) error { return fmt.Errorf("work: %w", context.Cause(ctx)) }, "work: " + want, []error{ErrLost}},
			{"another error", func(context.Context) error { return mine }, "mine: " + want, []error{ErrLost, mine}},
			{"nil", func(context.Context) error { return nil }, want, []error{ErrLost}},
		} {
			saved := slices.Clone(f.sessions)
			err := c.Mutex("a").Do(t.Context(), func(ctx context.Context, _ *Grant) error {
				lapse()
				<-ctx.Done()
				return x.f(ctx)
			})
			wantIs(t, err, x.wanted...)
			if err == nil || err.Error() != x.want {
				t.Errorf("%s: got %v, want %s", x.name, err, x.want)
			}
			f.mu.Lock()
			f.sessions = saved
			f.mu.Unlock()
		}
	})
}

// A client whose servers restart says so, and not that leases lapsed.
func TestDeparted(t *testing.T) {
	err := departed(map[node.Cause][]string{
		node.CauseLapsed: {"s2", "s1"}, node.CauseRestarted: {"s3"}, node.CauseTooMany: {"s4"}, node.CauseBye: {"s5"},
	})
	if want := "s5 ended its session, and leases at s1, s2 lapsed, and s3 lost its memory, and the session with s4 ended (too_many)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := departed(nil); err != nil {
		t.Error(err)
	}
}

// Two users of one client are told apart, and neither is told that it holds what the
// other holds.
func TestUsersOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		ann, bob := c.Mutex("a").As("nightly backup of ann"), c.Mutex("a").As("bob")
		g := lock(t, ann)
		_, err := bob.TryLock(t.Context())
		if want := `poundlock: lock "a" not acquired: "nightly backup of ann" holds it`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		g.Unlock()
		synctest.Wait()
		f.mu.Lock()
		f.hold = true
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go ann.Lock(ctx)
		synctest.Wait()
		_, err = bob.TryLock(t.Context())
		if want := `poundlock: lock "a" not acquired: "nightly backup of ann" wants it`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second/2) // before ann gives up
		defer stop()
		_, err = bob.Lock(soon)
		wantIs(t, err, ErrNotAcquired, context.DeadlineExceeded)
		if want := `poundlock: lock "a" not acquired: context deadline exceeded: "nightly backup of ann" wants it`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		for _, user := range []string{"\x1b[2J", strings.Repeat("x", 257), "\xff"} {
			if _, err := c.Mutex("b").As(user).Lock(t.Context()); err == nil || errors.Is(err, ErrNotAcquired) {
				t.Errorf("user %q: %v", user, err)
			}
		}
	})
}

// TestHistogramOutside: its fields and methods are those of this package.
func TestHistogramOutside(t *testing.T) {
	h := Histogram{Count: 2, Sum: 3, Counts: make([]uint64, 29)}
	h.Counts[0] = 2
	if h.Mean() != 1500*time.Millisecond || h.Quantile(0.5) != 32*time.Microsecond || (Histogram{}).Mean() != 0 {
		t.Errorf("mean %v, median %v", h.Mean(), h.Quantile(0.5))
	}
}

var _ node.Labelled = (*stay)(nil)

// A wait without a quorum, in which servers had nothing to give either, says so once.
func TestTooFewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		f.hold = true
		f.atCancel = func(node.User) { f.rem("a", protocol.TooFew) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Millisecond, func() { f.setAlive(1) }) // while it waits
		_, err := c.Mutex("a").Lock(ctx)
		if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, context.DeadlineExceeded) || strings.Count(fmt.Sprint(err), "no quorum") != 1 {
			t.Error(err)
		}
	})
}
