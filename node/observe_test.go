package node_test

import (
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// An inside is a User that tells a channel how it got in.
type inside struct {
	*probe
	entries chan node.Entry
}

func (i inside) Crit(e node.Entry) { i.entries <- e }

func newInside() inside { return inside{newProbe(), make(chan node.Entry, 16)} }

// A client knows its request by the time that the members know.
func TestRequestKnownAtBothEnds(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	u := newInside()
	if err := c.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	e := <-u.entries
	if e.Request == 0 {
		t.Fatal("no time of the request")
	}
	supported := 0
	for _, s := range servers {
		for _, l := range s.Lock("a") {
			for _, h := range l.Standing.Holders {
				if h != (protocol.Request{User: c.ID(), Since: int64(e.Request), Token: h.Token}) {
					t.Errorf("a member supports %+v, not client %x with %d", h, uint64(c.ID()), e.Request)
				}
				supported++
			}
		}
	}
	if supported < 3 {
		t.Errorf("%d members support the client, fewer than a quorum", supported)
	}
	c.Exit("a")
	<-u.rem
}
