package status

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

// TestUnsettled: a restart of which some client may not have heard counts until the
// longest lease is over, whether the client holds or waits.
func TestUnsettled(t *testing.T) {
	// cluster has x hold the lock at all n servers, with y waiting, but that the young
	// ones, up for so long, know only x, and the last ones do not support it.
	cluster := func(prefix string, n, young int, uptime time.Duration, forgetful int) (all []server.Answer) {
		for i := range n {
			holder, waiters := "x:9s", []string{"y:8s"}
			if i >= n-forgetful {
				holder, waiters = "", []string{"x:9s", "y:8s"}
			}
			if i < young {
				waiters = nil
			}
			a := answer(fmt.Sprintf("%ss%d", prefix, i+1), holder, waiters...)
			if i < young {
				a.Status.UptimeMS = uptime.Milliseconds()
			}
			all = append(all, a)
		}
		return all
	}
	shorter := cluster("", 4, 1, 3*time.Second, 0)
	shorter[0].Status.LeaseMS, shorter[3].Status.LeaseMS = 1000, 1000 // its life before may have granted what the others do
	unknown := cluster("", 4, 1, 0, 0)
	unknown[0].Status.LeaseMS = 0
	back := cluster("", 4, 0, 0, 0)
	back[0].Status.UptimeMS = 1
	for _, x := range []struct {
		name    string
		answers []server.Answer
		awaited int // by s1
		unsafe  string
	}{
		{"nobody restarted", cluster("", 4, 0, 0, 0), 0, ""},
		{"a waiter has not come back", cluster("", 4, 1, 3*time.Second, 0), 1, "s1 is up for 3s, and 1 client has not come back to it"},
		{"the longest lease is not quite over", cluster("", 4, 1, 10*time.Second, 0), 1, "s1 is up for 10s"},
		{"the longest lease is over", cluster("", 4, 1, 10001*time.Millisecond, 0), 0, ""},
		{"with a shorter lease", shorter, 1, "s1 is up for 3s"},
		{"it does not say how long it is up", unknown, 1, "s1 is up for 0s"},
		{"it is young, and all are back", back, 0, ""},
		{"one of seven", cluster("", 7, 1, time.Second, 0), 1, ""},
		{"two of seven", cluster("", 7, 2, time.Second, 0), 1, "s2 is up for 1s"},
		{"one of seven, and a holder lacks none to a quorum", cluster("", 7, 1, time.Second, 2), 1, ""},
		{"one of seven, and a holder lacks one", cluster("", 7, 1, time.Second, 3), 1, "s1 is up for 1s"},
		{"none of seven, and a holder lacks one", cluster("", 7, 0, 0, 3), 0, ""},
		{"two of ten", cluster("", 10, 2, time.Second, 0), 1, ""},
		{"three of ten", cluster("", 10, 3, time.Second, 0), 1, "s3 is up for 1s"},
		{"one in each of two shards", append(cluster("a/", 7, 1, time.Second, 0), cluster("b/", 7, 1, time.Second, 0)...), 1, ""},
		{"two in one of two shards", append(cluster("a/", 7, 0, 0, 0), cluster("b/", 7, 2, time.Second, 0)...), 0, "b/s2 is up for 1s"},
	} {
		s, _ := merge(x.answers...)
		if s.Servers[0].Awaited != x.awaited || s.RestartSafe != (x.unsafe == "") || !strings.HasPrefix(s.Unsafe, x.unsafe) {
			t.Errorf("%s: s1 awaits %d, want %d; %q, want %q", x.name, s.Servers[0].Awaited, x.awaited, s.Unsafe, x.unsafe)
		}
	}
}

// TestClientDoesNotHear: a client whose connection to a server that restarted does not
// come back keeps others from being restarted for a lease, and no longer.
func TestClientDoesNotHear(t *testing.T) {
	lane.CI.Need(t, "a lease of six seconds")
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t), Lease: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var cut atomic.Bool
	n, err := node.Start(node.Config{
		Secret: node.NewSecret(), System: slots.System(4, slots.DefaultClockBound), Peers: l.Servers(),
		Hosts: map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)},
		Dial: func(ctx context.Context, p node.Peer) (net.Conn, error) {
			if cut.Load() && p.Name == "s1" {
				return nil, errors.New("cut off")
			}
			return transport.Dial(ctx, p.Name, p.Addr, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.WaitAlive(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	ask := func() *Cluster {
		o, err := server.Observe(server.AskConfig{Servers: l.Servers()})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		return Ask(t.Context(), o, server.LockQuery{}, func(Lock) bool { return true })
	}
	if s := ask(); !s.RestartSafe {
		t.Fatalf("not safe before: %s", s.Unsafe)
	}
	cut.Store(true)
	if err := errors.Join(l.Stop(0), l.Start(0)); err != nil {
		t.Fatal(err)
	}
	s := ask()
	if s.RestartSafe || s.Servers[0].Awaited != 1 || !strings.Contains(s.Unsafe, "1 client has not come back") {
		t.Errorf("safe: %v, awaited %d, %q", s.RestartSafe, s.Servers[0].Awaited, s.Unsafe)
	}
	for end := time.Now().Add(time.Minute); !s.RestartSafe; s = ask() {
		if time.Now().After(end) {
			t.Fatalf("never safe again: %s", s.Unsafe)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if up := s.Servers[0].UptimeMS; up <= s.Servers[0].LeaseMS {
		t.Errorf("safe after %d ms of a lease of %d", up, s.Servers[0].LeaseMS)
	}
}
