package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/workload"
)

// A system is the processes of a run and the links between them. Processes have the ids of the simulator: members, and clients
// after them. A client that takes over from one that crashed has its id, too.
type system struct {
	c     *sim.Config
	host  node.Host
	names func(int) string
	log   *slog.Logger
	// program makes a process a program of its own; nil: it is a node of this one.
	program func() *exec.Cmd
	peers   []node.Peer
	links   map[link]*faultnet.Proxy // constant once all have started

	closing sync.WaitGroup // lives that have ended

	mu    sync.Mutex
	lives []process    // the present ones; nil: down
	gone  []int        // messages of those that are no more
	cuts  map[link]int // how many faults let nothing through from one process to another
}

// A link is from one process to another one.
type link struct{ from, to int }

// start starts all processes. After an error nothing is left.
func (s *system) start() (err error) {
	s.lives, s.gone = make([]process, s.c.N+s.c.Clients), make([]int, len(s.host.Info().Messages))
	s.links, s.cuts = map[link]*faultnet.Proxy{}, map[link]int{}
	listeners := make([]net.Listener, s.c.N)
	defer func() {
		if err == nil {
			return
		}
		for _, l := range listeners {
			if l != nil {
				l.Close()
			}
		}
		err = errors.Join(err, s.close())
	}()
	for id := range listeners {
		if listeners[id], err = transport.Listen("127.0.0.1:0"); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		s.peers = append(s.peers, node.Peer{Name: s.names(id), Addr: listeners[id].Addr().String()})
	}
	for from := range s.lives {
		for to := range s.c.N {
			if s.dials(from, to) {
				if err := s.connect(link{from, to}); err != nil {
					return fmt.Errorf("live: %w", err)
				}
			}
		}
	}
	for id := range s.lives {
		var l net.Listener
		if id < s.c.N {
			l, listeners[id] = listeners[id], nil
		}
		if slices.Contains(s.c.Down, protocol.ID(id)) {
			l.Close()
		} else if err := s.begin(id, l, false); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a life of a process, at l where it is a member.
func (s *system) begin(id int, l net.Listener, joins bool) error {
	r := role{
		ID: protocol.ID(id), System: s.c.Config, Grouped: s.host.Info().Grouped, Peers: slices.Clone(s.peers),
		Lease: s.c.Lease, Label: s.names(id), Joins: joins,
	}
	for to := range r.Peers { // by links of its own
		if p := s.links[link{id, to}]; p != nil {
			r.Peers[to].Addr = p.Addr()
		}
	}
	v, err := s.life(r, l)
	if err != nil {
		if l != nil {
			l.Close()
		}
		return fmt.Errorf("%w: %s: not on a network: %w", sim.ErrConfig, s.host.Info().Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[id] = v
	return nil
}

// life begins a life as a role has it.
func (s *system) life(r role, l net.Listener) (process, error) {
	if s.program != nil {
		return startRemote(r, l, s.program(), s.log)
	}
	return startLocal(r, l, s.host, s.log)
}

// end ends a life of a process, of which nobody hears: nothing gets through before it has lost all connections, and it makes
// no more of them.
func (s *system) end(id int) {
	s.isolate(id, 1)
	s.mu.Lock()
	v := s.lives[id]
	s.lives[id] = nil
	s.mu.Unlock()
	v.halt()
	for k, p := range s.links {
		if k.from == id || k.to == id {
			p.Break()
		}
	}
	s.count(v, s.gone)
	s.closing.Go(v.close)
}

// again begins another life of a process that ended.
func (s *system) again(id int, joins bool) (err error) {
	var l net.Listener
	if id < s.c.N {
		if l, err = transport.Listen("127.0.0.1:0"); err != nil { // somebody else may have the address of before
			return err
		}
		for k, p := range s.links {
			if k.to == id {
				p.SetTarget(l.Addr().String())
			}
		}
	}
	s.isolate(id, -1)
	return s.begin(id, l, joins)
}

// isolate begins, or ends with -1, a cut between a process and all others.
func (s *system) isolate(id, more int) {
	for k := range s.links {
		if k.from == id || k.to == id {
			s.cut(k.from, k.to, more)
			s.cut(k.to, k.from, more)
		}
	}
}

// cut begins, or ends with -1, a cut from one process to another one.
func (s *system) cut(from, to, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[link{from, to}] += more
	k := link{from, to}
	if s.links[k] == nil {
		k = link{to, from}
	}
	if p := s.links[k]; p != nil {
		var d faultnet.Direction
		if s.cuts[k] > 0 {
			d |= faultnet.Up
		}
		if s.cuts[link{k.to, k.from}] > 0 {
			d |= faultnet.Down
		}
		p.SetCut(d)
	}
}

// process is the present life of a process, nil if it is down.
func (s *system) process(id int) process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives[id]
}

// dials reports whether one process dials another one, as package node has it.
func (s *system) dials(from, to int) bool {
	if s.host.Info().Users == protocol.Clients {
		return from >= s.c.N
	}
	return to < from
}

// connect makes a link, with delays of its own each way.
func (s *system) connect(k link) error {
	p, err := faultnet.New(s.peers[k.to].Addr)
	if err != nil {
		return err
	}
	s.links[k] = p
	var up, down workload.Stream
	up.Begin(s.c.Seed, workload.ForDelay, uint64(k.from*len(s.lives)+k.to))
	down.Begin(s.c.Seed, workload.ForDelay, uint64(k.to*len(s.lives)+k.from))
	p.Draw(func(d faultnet.Direction) time.Duration {
		if d == faultnet.Up {
			return s.c.Delay.Draw(&up)
		}
		return s.c.Delay.Draw(&down)
	})
	return nil
}

// meet waits until each process has sessions with all that are up, and may let its users try.
func (s *system) meet(ctx context.Context) error {
	up := s.c.N - len(s.c.Down)
	for id := range s.lives {
		v := s.process(id)
		if v == nil || id < s.c.N && s.host.Info().Users == protocol.Clients {
			continue
		}
		others := up
		if id < s.c.N {
			others--
		}
		if err := v.meet(ctx, others); err != nil {
			return fmt.Errorf("live: %s: %w", s.names(id), err)
		}
	}
	return nil
}

// count adds how many messages of each kind a process has sent.
func (s *system) count(v process, to []int) {
	sent := v.sent()
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, n := range sent {
		to[kind] += n
	}
}

// sent is how many messages of each kind all processes have sent.
func (s *system) sent() []int {
	s.mu.Lock()
	all, lives := slices.Clone(s.gone), slices.Clone(s.lives)
	s.mu.Unlock()
	for _, v := range lives {
		if v != nil {
			s.count(v, all)
		}
	}
	return all
}

// close ends all processes, and then the links: what these say as they leave passes.
func (s *system) close() error {
	for _, v := range s.lives {
		if v != nil {
			s.closing.Go(v.close)
		}
	}
	s.closing.Wait()
	var errs []error
	for _, p := range s.links {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
