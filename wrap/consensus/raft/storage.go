package raft

import (
	"fmt"
	"slices"

	etcd "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// What a node has stored, and which leader it knows beside.
type stored struct {
	hard    *raftpb.HardState // frozen; nil: nothing yet
	entries []*raftpb.Entry   // frozen; the one at i has index i+1
	lead    uint64            // 0: none
}

func (s stored) clone() stored {
	return stored{hard: s.hard, entries: slices.Clone(s.entries)}
}

// A storage is that of one node: all that an instance needs, in memory, because a process that
// crashed takes no part in it any more. It implements the library's Storage.
type storage struct {
	stored
	n int
}

// append replaces what follows the first of some entries.
func (s *storage) append(list []*raftpb.Entry) {
	if len(list) > 0 {
		s.entries = append(s.entries[:list[0].GetIndex()-1], list...)
	}
}

// holds reports whether there is a value.
func (s *storage) holds() bool {
	return slices.ContainsFunc(s.entries, func(e *raftpb.Entry) bool { return len(e.GetData()) > 0 })
}

// InitialState has all processes as voters: a configuration that is not in the log is never pending.
func (s *storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	c := &raftpb.ConfState{}
	for id := range uint64(s.n) {
		c.Voters = append(c.Voters, id+1)
	}
	return s.hard, c, nil
}

func (s *storage) Entries(lo, hi, _ uint64) ([]*raftpb.Entry, error) {
	if hi > uint64(len(s.entries))+1 {
		return nil, etcd.ErrUnavailable
	}
	return slices.Clone(s.entries[lo-1 : hi-1]), nil
}

func (s *storage) Term(i uint64) (uint64, error) {
	switch {
	case i == 0:
		return 0, nil
	case i > uint64(len(s.entries)):
		return 0, etcd.ErrUnavailable
	}
	return s.entries[i-1].GetTerm(), nil
}

func (s *storage) LastIndex() (uint64, error)  { return uint64(len(s.entries)), nil }
func (s *storage) FirstIndex() (uint64, error) { return 1, nil }

// Snapshot has none: the log is whole.
func (s *storage) Snapshot() (*raftpb.Snapshot, error) {
	return nil, etcd.ErrSnapshotTemporarilyUnavailable
}

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
