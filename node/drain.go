package node

import (
	"context"
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
	n.ask(event{op: opDrain})
	const least, most = 5 * time.Millisecond, 100 * time.Millisecond
	for pause := least; len(n.ask(event{op: opHeld, once: true})) > 0; pause = min(2*pause, most) {
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
func (n *Node) Held() int { return len(n.ask(event{op: opHeld})) }

// ask puts the answers of all shards together.
func (n *Node) ask(e event) (all []Lock) {
	reply := make(chan []Lock, len(n.shards))
	e.locks = reply
	waiting := 0
	for _, s := range n.shards {
		if s.inbox.post(e) {
			waiting++
		}
	}
	for range waiting {
		all = append(all, <-reply...)
	}
	return all
}

// drain tells every process, those that are made later included.
func (s *shard) drain() {
	if s.make.draining {
		return
	}
	s.make.drains()
	for _, i := range s.instances.All() {
		if s.n.c.Hosts[i.kind].Info().Drains {
			s.step(i, protocol.Input{Kind: protocol.Drain}, nil, nil)
		}
	}
}

// holders returns the locks that have a holder, or just one of them.
func (s *shard) holders(one bool) (all []Lock) {
	for name, i := range s.instances.All() {
		standing, err := i.process.Standing()
		if err != nil || len(standing.Holders) == 0 {
			continue // one that cannot be read has failed or is about to
		}
		all = append(all, Lock{Name: name, Kind: i.kind, Standing: standing})
		if one {
			break
		}
	}
	return all
}
