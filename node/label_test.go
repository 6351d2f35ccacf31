package node_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
)

// A named user has a label of its own.
type named struct {
	*probe
	label string
}

func (u named) Label() string { return u.label }

// Members know the users of a client by their labels, whether they hold the lock or wait,
// also after they have lost their memory, and no longer than the request lasts.
func TestLabels(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	audit := make(chan node.Support, 100)
	var servers []*node.Node
	servers, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		if c.ID == 0 {
			c.Audit = func(s node.Support) { audit <- s }
		}
	})
	both := clients(t, 2, peers, host, nil)
	labels := func(want ...string) func() bool {
		return func() bool {
			for _, s := range servers {
				got := []string{"", ""}
				for _, l := range s.Lock("a") {
					for k, c := range both {
						got[k] = l.Labels[c.ID()]
					}
				}
				if got[0] != want[0] || got[1] != want[1] {
					return false
				}
			}
			return true
		}
	}
	holder, waiter := named{newProbe(), "nightly backup of ann"}, named{newProbe(), "bob"}
	must(t, both[0].Try(node.Mutex, "a", holder, false))
	<-holder.crit
	eventually(t, "all members know the holder", labels("nightly backup of ann", ""))
	must(t, both[1].Try(node.Mutex, "a", waiter, false))
	eventually(t, "all members know holder and waiter", labels("nightly backup of ann", "bob"))
	if s := <-audit; s.Label != ": nightly backup of ann" { // the client has none
		t.Errorf("the audit names %q", s.Label)
	}
	both[0].Exit("a")
	<-holder.rem
	<-waiter.crit
	eventually(t, "one that has left has no label", labels("", "bob"))
	eventually(t, "the end of the support is in the audit", func() bool {
		var s node.Support
		select {
		case s = <-audit:
		default:
		}
		return s.Ended && s.Label == ": nightly backup of ann"
	})
	both[1].Exit("a")
	<-waiter.rem

	// The next user of the same client has no label, or one that no member would accept.
	for _, u := range []node.User{newProbe(), named{newProbe(), strings.Repeat("x", 257)}} {
		p, ok := u.(*probe)
		if !ok {
			p = u.(named).probe
		}
		must(t, both[0].Try(node.Mutex, "a", u, false))
		<-p.crit
		eventually(t, "no label is left over", labels("", ""))
		both[0].Exit("a")
		<-p.rem
	}
}
