package node_test

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
)

// tableOf writes the table of a member, which goes on.
func (f *fleet) tableOf(k int) (*bytes.Buffer, node.SnapshotSize) {
	f.t.Helper()
	frozen, err := f.nodes[k].Freeze()
	must(f.t, err)
	var table bytes.Buffer
	size, err := frozen.Write(&table)
	must(f.t, err)
	l, err := f.listen(f.peers[k].Addr)
	must(f.t, err)
	frozen.Thaw()
	must(f.t, frozen.Node().Serve(l))
	return &table, size
}

// A successor may grant shorter leases, and hand its table over while longer ones of
// its predecessor still run.
func TestHandoverToShorterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		long := func(c *node.Config) { c.Lease = time.Minute }
		f := newVirtualFleet(t, 4, host, long)
		c := f.clients(1, host, long)[0]
		known := sessions(c)
		f.configs[0].Lease = 2 * time.Second
		f.handOver(0)
		eventually(t, "the client is back, with a shorter lease", func() bool {
			shortest, _ := f.nodes[0].Leases()
			return shortest == 2*time.Second && f.nodes[0].Away() == 0
		})
		end := f.nodes[0].Sessions()[0].LeaseEnd
		f.handOver(0)
		if now := f.nodes[0].Sessions()[0].LeaseEnd; now.Before(end.Add(-time.Second)) {
			t.Errorf("the lease ended %v earlier at the successor", end.Sub(now))
		}
		if now := sessions(c); now != known {
			t.Errorf("the sessions were\n%s, and now\n%s", known, now)
		}
	})
}

// A member that is full can be handed over, also to one that would admit fewer.
func TestHandoverOfFullMember(t *testing.T) {
	const all = 6
	host := node.HostOf(sigma.Algorithm)
	f := newFleet(t, host, func(c *node.Config) { c.MaxSessions, c.MaxSessionsOfOne = all, 100 })
	clients(t, all, f.peers, host, nil)
	eventually(t, "they have sessions", func() bool { return len(f.nodes[0].Sessions()) == all })
	for _, most := range []int{all, 1} {
		f.configs[0].MaxSessions = most
		f.handOver(0)
		if got := len(f.nodes[0].Sessions()); got != all {
			t.Errorf("%d of %d sessions went to a successor that admits %d", got, all, most)
		}
		eventually(t, "they are back", func() bool { return f.nodes[0].Away() == 0 })
	}
}

// The table of a frozen member does not depend on when it is written: a successor that
// reads slowly gets timers that are due when they were.
func TestFrozenTableStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, forgetful)
		c := f.clients(1, host, forgetful)[0]
		u := newProbe()
		must(t, c.Try(node.Mutex, "a", u, false))
		<-u.crit
		c.Exit("a")
		<-u.rem
		eventually(t, "nobody has the lock", func() bool { return f.nodes[0].Held() == 0 })
		frozen, err := f.nodes[0].Freeze()
		must(t, err)
		var tables [2]bytes.Buffer
		for k := range tables {
			size, err := frozen.Write(&tables[k])
			must(t, err)
			if size.Timers == 0 {
				t.Fatal("the table has no timers: it shows nothing")
			}
			time.Sleep(20 * time.Millisecond)
		}
		if !bytes.Equal(tables[0].Bytes(), tables[1].Bytes()) {
			t.Errorf("two tables of one frozen member differ:\n%x\n%x", &tables[0], &tables[1])
		}
		must(t, f.nodes[0].Close())
	})
}

// Until it may go on, a successor does nothing: its predecessor may go on itself. Nor
// does it when it is closed then.
func TestSuccessorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		var records atomic.Int64
		short := func(c *node.Config) {
			forgetful(c)
			c.Lease = 200 * time.Millisecond
		}
		f := newVirtualFleet(t, 4, host, short)
		c := f.clients(1, host, short)[0]
		for _, name := range []string{"held", "idle"} {
			u := newProbe()
			must(t, c.Try(node.Mutex, name, u, false))
			<-u.crit
			if name == "idle" {
				c.Exit(name)
				<-u.rem
			}
		}
		eventually(t, "one is held, and one is remembered", func() bool {
			return f.nodes[0].Held() == 1 && f.nodes[0].Stats().Instances == 2
		})
		table, size := f.tableOf(0)
		if size.Locks != 2 || size.Timers == 0 {
			t.Fatalf("%+v: it shows nothing", size)
		}
		successor := f.configs[0]
		successor.Audit = func(node.Support) { records.Add(1) }
		restore := func() *node.Frozen {
			next, _, err := node.Restore(successor, bytes.NewReader(table.Bytes()))
			must(t, err)
			return next
		}
		next := restore()
		<-time.After(500 * time.Millisecond) // leases and timers are over
		now, err := next.Write(io.Discard)
		must(t, err)
		if now.Locks != size.Locks || now.Timers != size.Timers || now.Sessions != size.Sessions {
			t.Errorf("it took %+v over, and has %+v", size, now)
		}
		must(t, next.Node().Close())
		if k := records.Load(); k > 0 {
			t.Errorf("a successor that never went on has %d audit records", k)
		}
		next = restore()
		next.Thaw()
		eventually(t, "it has gone on", func() bool { return records.Load() == 1 && next.Node().Stats().Instances == 0 })
		must(t, next.Node().Close())
	})
}
