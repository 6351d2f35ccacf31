package node_test

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// skewed makes processes whose clock is off.
type skewed struct {
	node.Host
	by time.Duration
}

func (h skewed) New(id protocol.ID, c protocol.Config) node.Instance {
	return skewedInstance{h.Host.New(id, c), int64(h.by)}
}

type skewedInstance struct {
	node.Instance
	by int64
}

func (i skewedInstance) Step(in protocol.Input, msg []byte, sink node.Sink) error {
	in.Now += i.by
	if in.Kind == protocol.Start && in.Arg != 0 {
		in.Arg = uint64(int64(in.Arg) + i.by)
	}
	return i.Instance.Step(in, msg, sink)
}

// Of one clock that is hours off, of a client or a server, nobody notices.
func TestClocksFarOff(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for _, test := range []struct {
		name           string
		client, server time.Duration // of the first server
	}{
		{"client ahead", hour, 0},
		{"client behind", -hour, 0},
		{"client far behind", -3 * hour, 0},
		{"server ahead", 0, hour},
		{"server far ahead", 0, 3 * hour},
		{"server behind", 0, -hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := node.HostOf(sigma.Algorithm)
			fenced := func(c *node.Config) {
				c.System = protocol.Config{N: 4, Options: map[string]int64{"fence": 1, "eps": 50e6}}
			}
			_, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
				fenced(c)
				if c.ID == 0 {
					c.Hosts = mutexes(skewed{host, test.server})
				}
			})
			honest := clients(t, 1, peers, host, fenced)[0]
			odd := clients(t, 1, peers, skewed{host, test.client}, fenced)[0]
			var last uint64
			for round := range 3 {
				for k, c := range []*node.Node{honest, odd} {
					u := newProbe()
					must(t, c.Try(node.Mutex, "a", u, false))
					select {
					case token := <-u.crit:
						if token <= last {
							t.Errorf("round %d: client %d got the lock with token %d after %d", round, k, token, last)
						}
						last = token
						c.Exit("a")
						<-u.rem
					case why := <-u.rem:
						t.Fatalf("round %d: client %d gives up: %q", round, k, why)
					case <-time.After(patience):
						t.Fatalf("round %d: client %d gets nothing", round, k)
					}
				}
			}
		})
	}
}

// The first lock of servers that have just started waits until their floor is reached,
// four clock bounds. That is more than anything else takes, when the bound is wide.
func TestFirstLockWithWideClockBound(t *testing.T) {
	t.Parallel()
	host := node.HostOf(sigma.Algorithm)
	wide := func(c *node.Config) {
		eps := int64(250 * time.Millisecond)
		c.System = protocol.Config{N: 4, Options: map[string]int64{"fence": sigma.FenceOn, "eps": eps}}
	}
	_, peers := clusterAt(t, 4, false, host, wide)
	c := clients(t, 1, peers, host, wide)[0]
	u := newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	select {
	case <-u.crit:
	case why := <-u.rem:
		t.Errorf("refused: %s", why)
	}
}
