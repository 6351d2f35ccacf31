package node

import (
	"context"
	"math"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// Drain makes a member give nothing more to anybody, for good, and waits until none
// of its locks has a holder, or until ctx ends. It returns how many still have one:
// for those, Close is the loss of one server. An algorithm that does not know Drain
// goes on granting; its member then only waits for a moment without holders.
func (n *Node) Drain(ctx context.Context) (held int) {
	n.mu.Lock()
	n.draining = true
	n.mu.Unlock()
	n.each((*loop).drain)
	const least, most = 5 * time.Millisecond, 100 * time.Millisecond
	for pause := least; n.held(1) > 0; pause = min(2*pause, most) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return n.Held()
		}
	}
	return 0
}

// Draining reports whether Drain was called.
func (n *Node) Draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}

// Held is how many locks have a holder as far as this member knows.
func (n *Node) Held() int { return n.held(math.MaxInt) }

// held is Held, where each loop counts so many at most.
func (n *Node) held(most int) (all int) {
	for _, k := range ask(n.loops, func(l *loop) int { return l.held(most) }) {
		all += k
	}
	return all
}

// drain tells every process, those that are made later included.
func (l *loop) drain() {
	if l.make.draining {
		return
	}
	l.make.drains()
	for _, i := range l.instances.All() {
		if l.n.c.Hosts[i.kind].Info().Drains {
			l.step(i, protocol.Input{Kind: protocol.Drain}, nil, nil)
		}
	}
}

// held counts the locks that have a holder, so many at most. One that cannot be read has failed or is about to.
func (l *loop) held(most int) (k int) {
	for _, i := range l.instances.All() {
		if k == most {
			break
		}
		if standing, err := i.process.Standing(); err == nil && len(standing.Holders) > 0 {
			k++
		}
	}
	return k
}
