package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
)

// An earlyProbe has a head start.
type earlyProbe struct {
	*probe
	ahead time.Duration
}

func (p earlyProbe) HeadStart() time.Duration { return p.ahead }

// A head start is one of up to a minute, and of an algorithm that has them; it goes with a Try that waits, and with one that does not.
func TestEarly(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	peer := cluster(t, 3, false, node.HostOf(ricartagrawala.Algorithm), nil)[0]
	for _, x := range []struct {
		n     *node.Node
		ahead time.Duration
		want  string
	}{
		{c, -1, "a head start of -1ns: want 0 to 1m0s"},
		{c, time.Minute + 1, "a head start of 1m0.000000001s: want 0 to 1m0s"},
		{peer, 1, "a head start of 1ns: ricart-agrawala knows none"},
	} {
		if err := x.n.Try(node.Mutex, "a", earlyProbe{newProbe(), x.ahead}, false); err == nil || !strings.HasSuffix(err.Error(), x.want) {
			t.Errorf("%v: %v, want %s", x.ahead, err, x.want)
		}
	}
	for _, once := range []bool{false, true} {
		for _, x := range []earlyProbe{{newProbe(), 0}, {newProbe(), time.Minute}} {
			must(t, c.Try(node.Mutex, "a", x, once))
			<-x.crit
			c.Exit("a")
			<-x.rem
		}
	}
	x := earlyProbe{newProbe(), 0}
	must(t, peer.Try(node.Mutex, "a", x, false))
	<-x.crit
	peer.Exit("a")
	<-x.rem
}
