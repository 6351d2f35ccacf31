package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// TestHandoverOfManyLocks prints how long a hand-over takes, and for how long a client
// that asks all the time gets no answer. BenchmarkHandover of package node is about
// more locks: clients and servers share this machine, which they would keep busy.
func TestHandoverOfManyLocks(t *testing.T) {
	many := lane.Of(t, "locks", 2_000, 5_000, 20_000)
	flags := handsOver(t)
	c := startClusterWith(t, 4, func(i int) []string { // a lease that bears whatever else this machine does
		return append(flags(i), "--lease", "1m")
	})
	table, err := slots.Parse(c.servers)
	if err != nil {
		t.Fatal(err)
	}
	const clients = 4
	grants := make([][]*poundlock.Grant, clients)
	for k := range clients {
		config := poundlock.Config{Lease: time.Minute}
		for _, p := range table {
			config.Servers = append(config.Servers, poundlock.Server(p))
		}
		cl, err := poundlock.Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		grants[k] = holdMany(t, cl, fmt.Sprint("many-", k, "-"), many/clients)
	}
	n := askClient(t, table)

	ready := complete(clients + 1)
	before := c.await("all have sessions", ready)
	for i := range 4 {
		stop := make(chan struct{})
		gaps := make(chan time.Duration)
		go func() { gaps <- gap(t.Context(), n, protocol.ID(i), stop) }()
		old := c.procs[i]
		c.start(i)
		c.ends(old)
		c.await("all have sessions", ready)
		close(stop)
		log := c.logs[i].String()
		log = log[strings.LastIndex(log, `msg="handed over"`):]
		line, _, _ := strings.Cut(log, "\n")
		t.Logf("no answer for %v: %s", (<-gaps).Round(time.Millisecond), line)
		if !strings.Contains(line, fmt.Sprintf("locks=%d ", many)) {
			t.Errorf("it held %d locks", many)
		}
	}
	if complaints := lost(before, c.await("all have sessions", ready)); len(complaints) > 0 {
		t.Error(strings.Join(complaints, "\n"))
	}
	for _, all := range grants {
		for _, g := range all {
			if err := context.Cause(g.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// holdMany locks many names, a hundred at a time.
func holdMany(t *testing.T, cl *poundlock.Client, prefix string, many int) []*poundlock.Grant {
	t.Helper()
	grants := make([]*poundlock.Grant, many)
	var all sync.WaitGroup
	const parallel = 100
	for p := range parallel {
		all.Go(func() {
			for i := p; i < many; i += parallel {
				var err error
				if grants[i], err = cl.Mutex(fmt.Sprint(prefix, i)).Lock(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return grants
}

// askClient is a client that only asks.
func askClient(t *testing.T, table []node.Peer) *node.Node {
	t.Helper()
	n, err := node.Start(node.Config{
		Secret: node.NewSecret(), System: slots.System(len(table), slots.DefaultClockBound), Peers: table,
		Hosts: map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.WaitAlive(t.Context(), len(table)); err != nil {
		t.Fatal(err)
	}
	return n
}

// gap asks a server again and again, and returns the longest time without an answer.
func gap(ctx context.Context, n *node.Node, server protocol.ID, stop <-chan struct{}) (longest time.Duration) {
	question, _ := json.Marshal(control.Query{Ask: control.OneLock, Name: []byte("many-0-0")})
	for last := time.Now(); ; time.Sleep(time.Millisecond) {
		select {
		case <-stop:
			return longest
		default:
		}
		if _, err := n.Call(ctx, server, question); err == nil {
			longest = max(longest, time.Since(last))
			last = time.Now()
		}
	}
}
