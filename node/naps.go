package node

import (
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
)

// resumed is how soon those who hold leases look at them again after their machine was suspended, and leastNap is what counts
// as that: timers stand still then, and the clock of leases does not.
const (
	resumed  = 100 * time.Millisecond
	leastNap = 10 * time.Millisecond
)

// naps notice that a machine was suspended, for all nodes with one clock of leases: very many of them, which do nothing, may
// share a process.
type naps struct {
	boot func() time.Duration

	mu   sync.Mutex
	all  map[*sessions]struct{} // to be told
	stop chan struct{}          // closed when there are none any more
}

// machine are the naps of this machine.
var machine = &naps{boot: clock.Boot}

// add has sessions told to look at their leases from now on.
func (p *naps) add(ss *sessions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		p.all, p.stop = map[*sessions]struct{}{}, make(chan struct{})
		go p.run(p.stop)
	}
	p.all[ss] = struct{}{}
}

func (p *naps) remove(ss *sessions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.all, ss); len(p.all) == 0 {
		close(p.stop)
	}
}

func (p *naps) run(stop <-chan struct{}) {
	tick := time.NewTicker(resumed)
	defer tick.Stop()
	from := p.boot() // first: a nap between the two counts
	began, slept := time.Now(), time.Duration(0)
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		// Short naps add up until they count.
		if now := p.boot() - from - time.Since(began); now-slept > leastNap {
			slept = now
			p.mu.Lock()
			for ss := range p.all {
				ss.look()
			}
			p.mu.Unlock()
		}
	}
}
