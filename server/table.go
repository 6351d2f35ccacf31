package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// ErrMoved says that a server has ended because a newer slot table has its slot
// elsewhere.
var ErrMoved = errors.New("the slot of this server has moved")

// SetTable replaces the slot table by one of a higher epoch and the same names, where
// some have other addresses. Clients learn it from here. When it is the slot of this
// server that has another address, Run ends with ErrMoved: two processes that own one
// slot would give its support twice. The same table once more changes nothing.
func (s *Server) SetTable(epoch uint64, servers []node.Peer) error {
	if s.running() == nil {
		return errors.New("server: it does not serve yet")
	}
	s.turn.Lock() // the table that a successor gets stays as it is
	defer s.turn.Unlock()
	if s.handedOver {
		return errors.New("server: its table was handed over")
	}
	table, err := slots.Check(servers, s.config.NoAmnesia)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if names(table) != names(s.config.Servers) {
		return fmt.Errorf("server: the servers cannot change from %s to %s while they serve: "+
			"quorums of the two sets need not intersect", names(s.config.Servers), names(table))
	}
	own := s.place(table)
	before, old := s.node.Table()
	if err := s.node.SetTable(epoch, own.Servers); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if epoch != before {
		s.config.Log.Info("slot table replaced", "epoch", epoch, "before", before)
	}
	if to := own.Servers[s.id].Addr; to != old[s.id].Addr {
		s.config.Log.Warn("stops serving: the slot has moved", "server", s.config.Name, "from", old[s.id].Addr, "to", to)
		select {
		case s.moved <- fmt.Errorf("server: %w: %s is at %s now", ErrMoved, s.config.Name, to):
		default: // Run knows
		}
	}
	return nil
}

// Epoch is that of the slot table in use.
func (s *Server) Epoch() uint64 {
	epoch, _ := s.node.Table()
	return epoch
}

// place is the shard of this server in a table.
func (s *Server) place(table []node.Peer) slots.Shard {
	all := slots.Split(table)
	return all[slices.IndexFunc(all, func(g slots.Shard) bool {
		_, err := members.Find(g.Servers, s.config.Name)
		return err == nil
	})]
}

// owns says why a lock does not belong to the shard of this server. Clients that know
// the same shards, which the handshake sees to, do not ask for it here.
func (s *Server) owns(lock string) error {
	if g := s.shards[s.shards.Of(lock)].Name; g != s.shard.Name {
		return fmt.Errorf("lock %q belongs to shard %s, and %s is in shard %s", lock, g, s.config.Name, s.shard.Name)
	}
	return nil
}
