package raft

import (
	"errors"
	"fmt"
	"math"

	etcd "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// What a node has stored, and which leader it knows beside.
type stored struct {
	hard    *raftpb.HardState // frozen; nil: nothing yet
	entries []*raftpb.Entry   // frozen; the one at i has index i+1
	lead    uint64            // 0: none
}

// storage is that of one node, which has stored this before: all that an instance needs, in
// memory, because a process that crashed takes no part in it any more. All n processes are
// voters: a configuration that is not in the log is never pending.
func (s stored) storage(n int) (*etcd.MemoryStorage, error) {
	voters := &raftpb.ConfState{}
	for id := range uint64(n) {
		voters.Voters = append(voters.Voters, id+1)
	}
	m := etcd.NewMemoryStorage()
	err := m.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: voters}})
	return m, errors.Join(err, m.SetHardState(s.hard), m.Append(s.entries))
}

// stored is what the node has stored, without a leader.
func (p *group[M]) stored() (s stored) {
	last, _ := p.store.LastIndex()
	if s.hard = p.hard(); last > 0 {
		s.entries, _ = p.store.Entries(1, last+1, math.MaxUint64)
	}
	return s
}

func (p *group[M]) hard() *raftpb.HardState {
	hard, _, _ := p.store.InitialState()
	return hard
}

// valued reports whether an entry holds a value.
func valued(e *raftpb.Entry) bool { return len(e.GetData()) > 0 }

// silent is a logger that says nothing, and panics where the library wants to.
type silent struct{}

func (silent) Debug(...any)              {}
func (silent) Debugf(string, ...any)     {}
func (silent) Error(...any)              {}
func (silent) Errorf(string, ...any)     {}
func (silent) Info(...any)               {}
func (silent) Infof(string, ...any)      {}
func (silent) Warning(...any)            {}
func (silent) Warningf(string, ...any)   {}
func (silent) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (silent) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (silent) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (silent) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
