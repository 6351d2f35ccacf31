package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/poundlock/poundlock/internal/counters"
)

// A hashicorp is an object in a log of HashiCorp's raft, in memory or in files, over the same links as members have.
type hashicorp struct {
	all    []*raft.Raft
	nets   []*raft.NetworkTransport
	files  []io.Closer
	leader *raft.Raft
}

// peersOf are where a member finds the others.
type peersOf map[raft.ServerID]raft.ServerAddress

func (p peersOf) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) { return p[id], nil }

// state is the object as a raft.FSM.
type state struct{ counters.Store }

func (s *state) Apply(l *raft.Log) any { return s.Store.Apply(l.Data) }

func (s *state) Snapshot() (raft.FSMSnapshot, error) {
	return nil, errors.New("the log is never long enough")
}
func (s *state) Restore(io.ReadCloser) error { return errors.New("there is no snapshot") }

// A raftStore is where a member of raft keeps its log and its votes.
type raftStore interface {
	raft.LogStore
	raft.StableStore
}

func startHashicorp(members []member, dir string) (*hashicorp, error) {
	var voters raft.Configuration
	for _, m := range members {
		voters.Servers = append(voters.Servers, raft.Server{ID: raft.ServerID(m.Name), Address: raft.ServerAddress(m.Addr)})
	}
	h := &hashicorp{}
	for i, m := range members {
		where := peersOf{}
		for _, p := range m.Peers {
			where[raft.ServerID(p.Name)] = raft.ServerAddress(p.Addr)
		}
		addr, err := net.ResolveTCPAddr("tcp", m.Addr)
		if err != nil {
			return h, err
		}
		c := raft.DefaultConfig()
		c.LocalID, c.Logger, c.SnapshotThreshold = raft.ServerID(m.Name), hclog.NewNullLogger(), 1<<40
		t, err := raft.NewTCPTransportWithConfig(m.Addr, addr, &raft.NetworkTransportConfig{
			ServerAddressProvider: where, MaxPool: 3, MaxRPCsInFlight: 64, Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
		})
		if err != nil {
			return h, err
		}
		h.nets = append(h.nets, t)
		var store raftStore = raft.NewInmemStore()
		if files := under(dir, "hashicorp", i); files != "" {
			if err := os.MkdirAll(files, 0o700); err != nil {
				return h, err
			}
			log, err := wal.Open(files)
			if err != nil {
				return h, err
			}
			h.files = append(h.files, log)
			store = log
		}
		if err := raft.BootstrapCluster(c, store, store, raft.NewDiscardSnapshotStore(), t, voters); err != nil {
			return h, err
		}
		r, err := raft.NewRaft(c, &state{}, store, store, raft.NewDiscardSnapshotStore(), t)
		if err != nil {
			return h, err
		}
		h.all = append(h.all, r)
	}
	return h, await("HashiCorp's raft has a leader", func() bool {
		for _, r := range h.all {
			if r.State() == raft.Leader {
				h.leader = r
			}
		}
		return h.leader != nil
	})
}

func (h *hashicorp) add(op []byte) error {
	f := h.leader.Apply(op, patience)
	if err := f.Error(); err != nil {
		return fmt.Errorf("HashiCorp's raft: %w", err)
	}
	return nil
}

func (h *hashicorp) close() (err error) {
	for _, r := range h.all {
		err = errors.Join(err, r.Shutdown().Error())
	}
	for _, t := range h.nets {
		err = errors.Join(err, t.Close())
	}
	for _, f := range h.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
