package api_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/server"
)

// TestHeadStart: a grant with a head start comes before another one that was asked for earlier.
func TestHeadStart(t *testing.T) {
	l, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	o, err := server.Observe(server.AskConfig{Servers: l.Servers(), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	library, err := poundlock.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	g, err := library.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 2)
	var clients sync.WaitGroup
	for k, x := range []struct {
		name  string
		ahead uint32
	}{{"later", 0}, {"first", 60_000}} {
		// Those of one daemon would wait in a line of their own.
		c := protocols[0].client(t, d)
		if k > 0 {
			c = protocols[0].client(t, startDaemon(t, config, api.Limits{}))
		}
		session := open(t, c, 10*time.Second)
		clients.Go(func() {
			r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: session, Names: []string{"a"}, HeadStartMs: x.ahead})
			order <- x.name
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Release(t.Context(), &pb.ReleaseRequest{SessionId: session, GrantId: r.Grant.GrantId}); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it waits at all servers", func() bool {
			waits := func(x *server.Lock) bool { return x != nil && x.Waiting > k }
			here := o.OneLock(t.Context(), o.Sessions(t.Context()), "a")
			return len(here) == 4 && !slices.ContainsFunc(here, func(x *server.Lock) bool { return !waits(x) })
		})
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if one, two := <-order, <-order; one != "first" || two != "later" {
		t.Errorf("%s comes before %s", one, two)
	}
	// The second one releases before the cluster ends.
	last, err := library.Mutex("a").Lock(t.Context())
	if err != nil || last.Unlock() != nil {
		t.Error(err)
	}
}
