package peers

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// An Election is this process as a candidate and as a voter: the algorithm tells all of them who leads. It is a guess, and not a
// lock: while the members are cut in two each part has a leader, and for a while two may lead because one is slow. Whoever
// must not have two asks for Member.Leader.
type Election struct {
	node  *node.Node
	names []string

	mu      sync.Mutex
	leader  Leader
	changed chan struct{} // closed when it does
}

// A Leader is who leads, and by which epoch, whose number grows: as far as one process knows. The zero Leader is nobody: none is known yet.
type Leader struct {
	Name  string
	Epoch uint64
}

// Elect has this process take part in an election, by one of Elections. Of the configuration count Name, Members,
// Epoch, Bootstrap, Algorithm, Options, where to listen, TLS, Lease, Label and Log. A member that is silent for a
// lease is suspected. It does not wait for the others. An election needs addresses of its own: it is another system
// than one of locks.
func Elect(c Config) (*Election, error) {
	host, err := c.host(electors(), DefaultElection)
	if err != nil {
		return nil, err
	}
	e := &Election{changed: make(chan struct{})}
	e.mu.Lock() // nobody asks before there are names
	defer e.mu.Unlock()
	e.node, err = c.start(node.Config{Hosts: map[node.Kind]node.Host{node.Election: host}, Leader: e.tell})
	if err != nil {
		return nil, err
	}
	e.names = node.Names(c.Members)
	return e, nil
}

// Elections are the names of the algorithms of Elect, in their order.
func Elections() []string { return slices.Sorted(maps.Keys(electors())) }

func (e *Election) tell(leader protocol.ID, epoch uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader = Leader{e.names[leader], epoch}
	close(e.changed)
	e.changed = make(chan struct{})
}

// Leader is who leads now.
func (e *Election) Leader() Leader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Observe tells who leads, now and after each change, until ctx ends. Of changes that come quickly the last one is told.
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		for last := (Leader{}); ; {
			e.mu.Lock()
			now, changed := e.leader, e.changed
			e.mu.Unlock()
			if now != last && !yield(now) {
				return
			}
			last = now
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// SetTable has some members be at other addresses: see Member.SetTable.
func (e *Election) SetTable(epoch uint64, table []Peer) error { return setTable(e.node, epoch, table) }

// Close has this process leave the election: others take it for crashed.
func (e *Election) Close() error { return e.node.Close() }
