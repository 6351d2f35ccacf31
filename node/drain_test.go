package node_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A member that drains tells the processes that there are and those that are made
// later, and is done when the last holder has left.
func TestDrain(t *testing.T) {
	for _, drains := range []bool{true, false} {
		name := map[bool]string{true: "told", false: "broken: nobody is told"}[drains]
		t.Run(name, func(t *testing.T) {
			var d diary
			a := keeper(d.add)
			a.Drains = drains
			host := node.HostOf(a)
			servers, peers := clusterAt(t, 1, false, host, nil)
			c := clients(t, 1, peers, host, nil)[0]
			inside, late := newProbe(), newProbe()
			must(t, c.Try(node.Mutex, "a", inside, false))
			<-inside.crit
			if held := servers[0].Held(); held != 1 {
				t.Errorf("%d locks are held", held)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if held := servers[0].Drain(ctx); held != 1 || !servers[0].Draining() {
				t.Errorf("gave up with %d locks held", held)
			}
			cancel()
			if got := d.has(0, protocol.Drain, 0); got != drains {
				t.Errorf("the process was told: %v", got)
			}
			d.take()
			must(t, c.Try(node.Mutex, "b", late, false))
			eventually(t, "the request has arrived", func() bool { return d.has(0, protocol.Receive, c.ID()) })
			if got := d.has(0, protocol.Drain, 0); got != drains {
				t.Errorf("a new process was told: %v", got)
			}

			if !drains {
				<-late.crit // what this test would notice
				return
			}
			drained := make(chan int)
			go func() { drained <- servers[0].Drain(t.Context()) }()
			select {
			case <-drained:
				t.Error("drained while somebody is inside")
			case <-time.After(30 * time.Millisecond):
			}
			c.Exit("a")
			if held := <-drained; held != 0 {
				t.Errorf("drained with %d locks held", held)
			}
			select {
			case <-late.crit:
				t.Error("a draining member let somebody in")
			default:
			}
			if _, err := servers[0].Freeze(); err == nil {
				t.Error("a draining member hands its table over")
			}
		})
	}
}

// A client that uses each name once keeps none of them while a server drains.
func TestNamesUsedOnceWhileDraining(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	if held := servers[0].Drain(t.Context()); held != 0 {
		t.Fatalf("%d locks are held", held)
	}
	for k := range 200 {
		u, name := newProbe(), fmt.Sprint(k)
		must(t, c.Try(node.Mutex, name, u, false))
		<-u.crit
		if k%2 == 0 { // the draining server has answered, or its answer comes too late
			eventually(t, "three support it", func() bool { return len(supports(c, name)) == 3 })
		}
		c.Exit(name)
		<-u.rem
	}
	eventually(t, "the client keeps nothing", func() bool { return c.Stats().Instances == 0 })
}
