package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/lane"
)

func TestMain(m *testing.M) {
	lane.Waits()
	goleak.VerifyTestMain(m)
}

// fakeLocks are locks in memory, whose losses and leases the test decides.
type fakeLocks struct {
	lease  time.Duration // of the cluster
	unlock time.Duration // that Unlock takes

	mu     sync.Mutex
	free   chan struct{} // closed and replaced when something becomes free
	held   map[string]*fakeSection
	token  uint64
	failed error // of healthy and acquire
}

func newFake(t *testing.T, l Limits) (*Service, *fakeLocks) {
	t.Helper()
	f := &fakeLocks{lease: 8 * time.Second, free: make(chan struct{}), held: map[string]*fakeSection{}}
	s := newService(f, l.withDefaults(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if len(f.held) > 0 || s.locks != 0 {
			t.Errorf("%d locks are held and %d counted after Shutdown", len(f.held), s.locks)
		}
	})
	return s, f
}

func (f *fakeLocks) healthy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *fakeLocks) holders(_ context.Context, name string) (all []poundlock.Holder, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.held[name]; c != nil {
		all = append(all, poundlock.Holder{Leader: poundlock.Leader{ID: "fake", Token: c.tokens[0]}})
	}
	return all, f.failed
}

func (f *fakeLocks) acquire(ctx context.Context, _ string, want request) (section, error) {
	for {
		f.mu.Lock()
		free, failed := f.free, f.failed
		taken := ""
		for _, name := range want.names {
			if f.held[name] != nil {
				taken = name
			}
		}
		if taken == "" && failed == nil {
			c := &fakeSection{f: f, names: want.names}
			if len(want.groups) > 0 {
				c.group = want.groups[len(want.groups)-1] // as if others were there in that one
			}
			c.ctx, c.cancel = context.WithCancelCause(context.Background())
			for _, name := range want.names {
				f.token++
				f.held[name] = c
				c.tokens = append(c.tokens, f.token)
			}
			f.mu.Unlock()
			return c, nil
		}
		f.mu.Unlock()
		switch {
		case failed != nil:
			return nil, failed
		case want.try:
			return nil, fmt.Errorf("%w: lock %q: somebody else has it", poundlock.ErrNotAcquired, taken)
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: lock %q: %w", poundlock.ErrNotAcquired, taken, ctx.Err())
		}
	}
}

type fakeSection struct {
	f      *fakeLocks
	names  []string
	group  string
	tokens []uint64
	ctx    context.Context
	cancel context.CancelCauseFunc
	left   bool
}

func (c *fakeSection) Tokens() []uint64         { return c.tokens }
func (c *fakeSection) Group() string            { return c.group }
func (c *fakeSection) Context() context.Context { return c.ctx }
func (c *fakeSection) LeaseEnd() time.Time      { return time.Now().Add(c.f.lease) }

func (c *fakeSection) Downgrade(group string) error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	switch {
	case c.left:
		return poundlock.ErrUnlocked
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.group != "" && c.group != group:
		return fmt.Errorf("poundlock: a grant of group %q cannot become one of group %q", c.group, group)
	}
	c.group = group
	return nil
}

func (c *fakeSection) Unlock() error {
	time.Sleep(c.f.unlock)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.left {
		return errors.New("left twice")
	}
	c.left = true
	lost := c.ctx.Err() != nil
	c.cancel(nil)
	for _, name := range c.names {
		if c.f.held[name] == c {
			delete(c.f.held, name)
		}
	}
	close(c.f.free)
	c.f.free = make(chan struct{})
	if lost {
		return poundlock.ErrLost
	}
	return nil
}

// lose takes a lock away from whoever has it.
func (f *fakeLocks) lose(name string) {
	f.mu.Lock()
	c := f.held[name]
	f.mu.Unlock()
	c.cancel(fmt.Errorf("%w: for a test", poundlock.ErrLost))
}

func (f *fakeLocks) isHeld(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[name] != nil
}

// open opens a session and returns its id.
func open(t *testing.T, s pb.LockServiceHandler, lease time.Duration) string {
	t.Helper()
	r, err := s.OpenSession(t.Context(), &pb.OpenSessionRequest{Label: t.Name(), LeaseMs: milliseconds(lease)})
	if err != nil {
		t.Fatal(err)
	}
	return r.SessionId
}

func lock(t *testing.T, s pb.LockServiceHandler, session string, names ...string) *pb.Grant {
	t.Helper()
	r, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: session, Names: names})
	if err != nil {
		t.Fatal(err)
	}
	return r.Grant
}

// wantFailure checks the code and the reason of an error.
func wantFailure(t *testing.T, err error, code connect.Code, reason pb.Reason) {
	t.Helper()
	if got := reasonOf(err); connect.CodeOf(err) != code || err == nil || got != reason {
		t.Errorf("got %v (%v), want %v with %v", err, got, code, reason)
	}
}

func reasonOf(err error) pb.Reason {
	var failed *connect.Error
	if errors.As(err, &failed) {
		for _, d := range failed.Details() {
			if v, err := d.Value(); err == nil {
				if f, ok := v.(*pb.Failure); ok {
					return f.Reason
				}
			}
		}
	}
	return pb.Reason_REASON_UNSPECIFIED
}
