package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/server"
)

// An entrant counts those who are inside.
type entrant chan struct{}

func (e entrant) Crit(node.Entry)                  { e <- struct{}{} }
func (e entrant) Supported(map[protocol.ID]uint64) {}
func (e entrant) Rem(error)                        {}
func (e entrant) Ejected()                         {}

// holdMany lets k clients hold each locks in a cluster.
func holdMany(t *testing.T, l *server.Local, k, each int) {
	t.Helper()
	for c := range k {
		n, err := node.Start(node.Config{
			Secret: node.NewSecret(), System: slots.System(len(l.Servers()), slots.DefaultClockBound), Label: fmt.Sprintf("host/%d", c), Lease: time.Minute,
			Hosts: map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)}, Peers: l.Servers(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		if err := n.WaitAlive(t.Context(), len(l.Servers())); err != nil {
			t.Fatal(err)
		}
		const batch = 1000 // outstanding requests, so that none waits for its lease
		for i := 0; i < each; i += batch {
			e := make(entrant, batch)
			for j := i; j < min(i+batch, each); j++ {
				if err := n.Try(node.Mutex, fmt.Sprintf("client%d/lock%06d", c, j), e, false); err != nil {
					t.Fatal(err)
				}
			}
			for range min(batch, each-i) {
				<-e
			}
		}
	}
}

// TestManyLocks: status knows the budget of all locks and shows few, locks finds
// those with a prefix, and both say how long it took.
func TestManyLocks(t *testing.T) {
	const each = 2_000
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t), Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	holdMany(t, l, 2, each)
	o, err := server.Observe(server.AskConfig{Servers: l.Servers(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var f statusFlags
	f.limit = -1
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	var out bytes.Buffer
	s := f.ask(t.Context(), &observer{Observer: o}, f.most(&out))
	if err := f.print(&out, s); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d locks at four servers in this process: status took %v and allocated %d bytes a lock, servers included",
		2*each, time.Since(begin).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)/uint64(2*each))
	if s.LockCount != 2*each || s.HeldCount != 2*each || s.LossBudget < 1 || !s.RestartSafe || len(s.Locks) != shownLocks {
		t.Errorf("%d locks, %d held, budget %d, %q, %d shown", s.LockCount, s.HeldCount, s.LossBudget, s.Unsafe, len(s.Locks))
	}
	if want := fmt.Sprintf("and %d more locks", 2*each-shownLocks); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %d bytes of output", want, out.Len())
	}
	begin = time.Now()
	found := 0
	answers := o.Sessions(t.Context())
	o.Locks(t.Context(), answers, server.LockQuery{Prefix: "client1/lock00"}, func(same []*server.Lock) bool {
		found++
		return true
	})
	t.Logf("a prefix of %d of them took %v", found, time.Since(begin).Round(time.Millisecond))
	if found != each {
		t.Errorf("%d locks with the prefix, want %d", found, each)
	}
}
