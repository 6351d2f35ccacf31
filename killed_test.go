package poundlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
)

// What a client held that was killed is somebody else's at once, though a server cannot be told; its connections may linger. That
// two processes say so, or one that was killed itself had begun to, changes nothing.
func TestCloseKilled(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	config.Lease = time.Minute
	killed, next := dial(t, config), dial(t, config) // the first one lives: it stands for connections that linger
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, name := range []string{"a", "b"} {
		if _, err := killed.Mutex(name).Lock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := next.Mutex("a").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
		t.Fatalf("%v: the lock is not held", err)
	}
	if err := l.Stop(3); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := poundlock.CloseKilled(bounded, config, killed.Secret())
			if took := time.Since(began); took > patience/2 {
				t.Errorf("it took %v", took)
			}
			if err == nil || !strings.Contains(err.Error(), "3 of 4 servers reachable, 4 wanted: s4") {
				t.Errorf("error %v, want one that names s4", err)
			}
		})
	}
	all.Wait()
	began := time.Now()
	for _, name := range []string{"a", "b"} {
		g, err := next.Mutex(name).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Unlock()
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the next grants took %v, under a lease of %v", took, config.Lease)
	}
	if err := l.Start(3); err != nil {
		t.Fatal(err)
	}
	if err := poundlock.CloseKilled(ctx, config, next.Secret()+1); err != nil { // of a client that nobody knows
		t.Error(err)
	}
	if err := poundlock.CloseKilled(ctx, config, 0); err == nil {
		t.Error("a client without a secret is closed")
	}
}
