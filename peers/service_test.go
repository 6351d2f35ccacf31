package peers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/peers"
)

// A wait is one Lock, which began at an instant.
type wait struct {
	grant *poundlock.Grant
	err   error
	took  time.Duration
}

// waits has a member want a lock, and tells how long after an instant it was decided.
func waits(ctx context.Context, m *peers.Member, since time.Time) <-chan wait {
	decided := make(chan wait, 1)
	go func() {
		g, err := m.Mutex("a").Lock(ctx)
		decided <- wait{g, err, time.Since(since)}
	}()
	return decided
}

// TestServiceAfterKill: who waits, or comes, after a member is killed is inside within two leases, with recovery; and without it hears who
// is down within its patience and a second.
func TestServiceAfterKill(t *testing.T) {
	for _, form := range peers.Algorithms() {
		for what, victim := range victims {
			t.Run(form+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { serves(t, form, victim) })
			})
		}
	}
}

func serves(t *testing.T, form string, victim int) {
	r := newRemoteSystem(t, 3)
	r.config.Algorithm = form
	names := node.Names(r.config.Members)
	members := r.join(true, names...)
	defer func() { r.close(members) }() // also who comes back
	lock(t, members[0].Mutex("a"))
	g, err := members[1].Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []<-chan wait
	if victim != 2 {
		list = append(list, waits(t.Context(), members[2], time.Now().Add(termLease)))
	}
	time.Sleep(termLease)
	killed := time.Now()
	r.kill(names[victim], members[victim])
	if victim != 0 {
		list = append(list, waits(t.Context(), members[0], killed))
	}
	recovers := strings.HasSuffix(form, "recovery")
	if victim != 1 {
		err := g.Unlock()
		if recovers && err != nil {
			t.Errorf("the holder: %v", err)
		}
	}
	limit := 2 * termLease
	if !recovers {
		limit = 2*termLease + time.Second // the patience, and a second
	}
	decided := func(w wait) {
		t.Helper()
		switch {
		case w.took > limit:
			t.Errorf("decided %v after the kill, want %v at most: %v", w.took, limit, w.err)
		case recovers && w.err != nil:
			t.Errorf("with recovery: %v", w.err)
		case !recovers && w.err != nil && (!errors.Is(w.err, peers.ErrPeerDown) || !strings.Contains(w.err.Error(), names[victim])):
			t.Errorf("%v does not say that %s is down", w.err, names[victim])
		case !recovers && w.err == nil && w.took > termLease:
			t.Errorf("inside %v after the kill", w.took)
		}
		t.Logf("%.2f leases after the kill: %v", w.took.Seconds()/termLease.Seconds(), w.err)
		if w.err == nil {
			_ = w.grant.Unlock()
		}
	}
	for len(list) > 0 {
		for k := 0; k < len(list); k++ {
			select {
			case w := <-list[k]:
				list = append(list[:k], list[k+1:]...)
				decided(w)
			default:
			}
		}
		time.Sleep(time.Millisecond)
	}
	if !recovers {
		return
	}
	members[victim] = r.join(false, names[victim])[0]
	decided(<-waits(t.Context(), members[victim], time.Now()))
}
