package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// Servers are server processes of one cluster on this machine. Its methods are for
// one goroutine.
type Servers struct {
	Table string // as --servers takes it

	names   []string
	addrs   []string
	command []string
	procs   []*Process // nil where killed
}

const answersWithin = 10 * time.Second

// StartServers starts one server for each address, called s1, s2 and so on, and
// waits until all of them listen. A server is this program, started with command
// and its name and the table.
func StartServers(ctx context.Context, addrs []string, command ...string) (*Servers, error) {
	s := &Servers{addrs: addrs, command: command, procs: make([]*Process, len(addrs))}
	var table []string
	for i, a := range addrs {
		s.names = append(s.names, fmt.Sprintf("s%d", i+1))
		table = append(table, s.names[i]+"="+a)
	}
	s.Table = strings.Join(table, ",")
	for i := range addrs {
		if err := s.Start(i); err != nil {
			s.Close()
			return nil, err
		}
	}
	for i := range addrs {
		if err := s.Await(ctx, i); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Start starts server i, which does not run, with an empty memory.
func (s *Servers) Start(i int) error {
	args := slices.Concat(s.command, []string{"--name", s.names[i], "--servers", s.Table})
	p, err := Start("server "+s.names[i], args...)
	if err != nil {
		return err
	}
	s.procs[i] = p
	return nil
}

// Await waits until server i listens.
func (s *Servers) Await(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	for {
		nc, err := transport.Dial(ctx, s.names[i], s.addrs[i], nil)
		if err == nil {
			return nc.Close()
		}
		select {
		case <-s.procs[i].Done():
			return s.procs[i].Err()
		case <-ctx.Done():
			return fmt.Errorf("server %s does not listen: %w", s.names[i], err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Kill ends server i with SIGKILL.
func (s *Servers) Kill(i int) {
	if p := s.procs[i]; p != nil {
		p.Kill()
		s.procs[i] = nil
	}
}

// Processes are those that were started and not killed.
func (s *Servers) Processes() []*Process {
	return slices.DeleteFunc(slices.Clone(s.procs), func(p *Process) bool { return p == nil })
}

// Err says that a server has ended that nobody killed.
func (s *Servers) Err() error { return Ended(s.Processes()) }

// Close kills every server.
func (s *Servers) Close() {
	for i := range s.procs {
		s.Kill(i)
	}
}
