package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
)

// Three copies take turns: never two at once, and each turn has a larger token.
func TestTurns(t *testing.T) {
	l, err := server.StartLocal(server.LocalConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config := poundlock.Config{Servers: l.Servers()}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var inside, turns atomic.Int32
	var last atomic.Uint64
	var copies sync.WaitGroup
	for range 3 {
		copies.Go(func() {
			err := run(ctx, config, func(_ context.Context, token uint64) error {
				if inside.Add(1) != 1 {
					t.Error("two copies work at once")
				}
				if before := last.Swap(token); token <= before {
					t.Errorf("token %d after %d", token, before)
				}
				if turns.Add(1) == 30 {
					stop()
				}
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	copies.Wait()
	if n := turns.Load(); n < 30 {
		t.Errorf("%d turns, want 30", n)
	}
}
