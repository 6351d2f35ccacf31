package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// With the options of `poundlock serve` one server is enough for a hand-over: three of four stand still when the holder leaves.
func TestFirstServerHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		product := func(c *node.Config) { c.System = slots.System(4, slots.DefaultClockBound) }
		f := newVirtualFleet(t, 4, host, product)
		c := f.clients(2, host, product)
		holder, next := newProbe(), newProbe()
		must(t, c[0].Try(node.Mutex, "a", holder, false))
		<-holder.crit
		time.Sleep(time.Millisecond) // a later timestamp
		must(t, c[1].Try(node.Mutex, "a", next, false))
		synctest.Wait()
		var frozen []*node.Frozen
		for _, s := range f.nodes[1:] {
			z, err := s.Freeze()
			must(t, err)
			frozen = append(frozen, z)
		}
		c[0].Exit("a")
		synctest.Wait()
		select {
		case <-next.crit:
		default:
			t.Error("whoever is next waits for more than the first server")
		}
		for _, z := range frozen {
			z.Thaw()
		}
	})
}
