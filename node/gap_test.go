package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
)

// A load goes on after a gap of up to a second that is shorter than it stood before. Else what is known of it is forgotten.
func TestGapsOfALoad(t *testing.T) {
	for _, x := range []struct {
		stood, gap time.Duration
		goesOn     bool
	}{
		{400 * time.Millisecond, 10 * time.Millisecond, true},
		{time.Minute, time.Second, true},
		{time.Minute, time.Second + 1, false},
		{5 * time.Millisecond, 100 * time.Millisecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, err := newNode(Config{Secret: 1, Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)}})
			if err != nil {
				t.Fatal(err)
			}
			defer n.cancel()
			p := n.pacer
			time.Sleep(time.Hour)
			began := int64(time.Since(n.started))
			p.began.Store(began)
			p.rate.Store(7)
			time.Sleep(x.stood)
			p.empty = time.Now()
			time.Sleep(x.gap)
			p.try(n.loops[0], event{name: "a"}, &user{})
			if known := p.began.Load() == began && p.rate.Load() == 7; known != x.goesOn {
				t.Errorf("a load that stood for %v, and a gap of %v: known as one of %v, %d a second", x.stood, x.gap, time.Since(n.started)-time.Duration(p.began.Load()), p.rate.Load())
			}
		})
	}
}
