package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/poundlock/poundlock/internal/counters"
)

// A raftSystem is a lock and an object in a raft log: each entering, operation and leaving is an
// entry, and is done for its user when its own member has executed that. Members keep everything in
// memory, or write entries and votes to etcd's log of files before messages leave. Messages take the same time as those of the cluster.
type raftSystem struct {
	n       int
	delay   time.Duration
	members []*raftMember
	closed  chan struct{}
	wg      sync.WaitGroup
}

const (
	cmdEnter = iota
	cmdOperate
	cmdExit
	cmdAdd // to the counter of the rest, for the waiter of the number
)

// A raftMember is one replica.
type raftMember struct {
	s        *raftSystem
	id       int
	inbox    chan *raftpb.Message
	proposed chan []byte
	inside   chan struct{} // one element when its user gets in
	applied  chan struct{} // one element when its user's operation or exit is executed
	queue    []int         // of users: the first one is inside
	counter  uint64
	files    *wal.WAL // nil: in memory
	failed   error    // to write to them
	leads    atomic.Bool

	store   counters.Store
	mu      sync.Mutex
	waiters map[uint32]chan struct{} // of cmdAdd
	last    uint32
}

func startRaft(n int, delay time.Duration, dir string) (*raftSystem, error) {
	s := &raftSystem{n: n, delay: delay, closed: make(chan struct{})}
	for i := range n {
		s.members = append(s.members, &raftMember{
			s: s, id: i, inbox: make(chan *raftpb.Message, 1024), proposed: make(chan []byte, 1024), waiters: map[uint32]chan struct{}{},
			inside: make(chan struct{}, 1), applied: make(chan struct{}, 1),
		})
	}
	for i, m := range s.members {
		if files := under(dir, "etcd", i); files != "" {
			var err error
			if err = os.MkdirAll(filepath.Dir(files), 0o700); err == nil {
				m.files, err = wal.Create(zap.NewNop(), files, nil)
			}
			if err != nil {
				return nil, err
			}
		}
		storage := raft.NewMemoryStorage()
		voters := &raftpb.ConfState{}
		for i := range n {
			voters.Voters = append(voters.Voters, uint64(i+1))
		}
		err := storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: voters,
		}})
		if err != nil {
			return nil, err
		}
		node, err := raft.NewRawNode(&raft.Config{
			ID: uint64(m.id + 1), ElectionTick: 1000, HeartbeatTick: 10, Storage: storage, Applied: 1,
			MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
		})
		if err != nil {
			return nil, err
		}
		s.wg.Go(func() { m.run(node, storage) })
	}
	if err := await("raft has a leader", s.members[0].leads.Load); err != nil {
		return nil, err
	}
	time.Sleep(5 * delay)
	return s, nil
}

func (s *raftSystem) close() error {
	close(s.closed)
	s.wg.Wait()
	var errs []error
	for _, m := range s.members {
		errs = append(errs, m.failed)
		if m.files != nil {
			errs = append(errs, m.files.Close())
		}
	}
	return errors.Join(errs...)
}

// run is the replica's goroutine.
func (m *raftMember) run(node *raft.RawNode, storage *raft.MemoryStorage) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	if m.id == 0 {
		node.Campaign()
	}
	for {
		for node.HasReady() {
			rd := node.Ready()
			if rd.HardState != nil {
				storage.SetHardState(rd.HardState)
			}
			storage.Append(rd.Entries)
			if m.files != nil {
				m.failed = errors.Join(m.failed, m.files.Save(rd.HardState, rd.Entries))
			}
			for _, msg := range rd.Messages {
				m.s.send(msg)
			}
			for _, e := range rd.CommittedEntries {
				m.execute(e.GetData())
			}
			node.Advance(rd)
			m.leads.Store(node.BasicStatus().RaftState == raft.StateLeader)
		}
		select {
		case msg := <-m.inbox:
			node.Step(msg)
		case b := <-m.proposed:
			node.Propose(b)
			for more := len(m.proposed); more > 0; more-- {
				node.Propose(<-m.proposed)
			}
		case <-tick.C:
			node.Tick()
		case <-m.s.closed:
			return
		}
	}
}

// send delivers a message after the delay. Messages of one pair may overtake each other by little.
func (s *raftSystem) send(m *raftpb.Message) {
	to := s.members[m.GetTo()-1]
	time.AfterFunc(s.delay, func() {
		select {
		case to.inbox <- m:
		case <-s.closed:
		}
	})
}

func (m *raftMember) execute(b []byte) {
	if len(b) == 0 {
		return
	}
	command, id := b[0], int(binary.LittleEndian.Uint32(b[1:]))
	switch command {
	case cmdAdd:
		m.store.Apply(b[5:])
		m.mu.Lock()
		done := m.waiters[uint32(id)]
		delete(m.waiters, uint32(id))
		m.mu.Unlock()
		if done != nil {
			close(done)
		}
		return
	case cmdEnter:
		if m.queue = append(m.queue, id); m.queue[0] == m.id && id == m.id {
			m.inside <- struct{}{}
		}
	case cmdOperate:
		m.counter++
	case cmdExit:
		if m.queue = m.queue[1:]; len(m.queue) > 0 && m.queue[0] == m.id {
			m.inside <- struct{}{}
		}
	}
	if id == m.id && command != cmdEnter {
		m.applied <- struct{}{}
	}
}

func (s *raftSystem) ask(i int, command byte, done chan struct{}) error {
	s.members[i].proposed <- binary.LittleEndian.AppendUint32([]byte{command}, uint32(i))
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("raft: command %d of member %d has no outcome", command, i)
	}
}

// add has the leader count, and waits until it has executed that.
func (s *raftSystem) add(op []byte) error {
	m, done := s.members[0], make(chan struct{})
	m.mu.Lock()
	m.last++
	b := binary.LittleEndian.AppendUint32([]byte{cmdAdd}, m.last)
	m.waiters[m.last] = done
	m.mu.Unlock()
	select {
	case m.proposed <- append(b, op...):
	case <-time.After(patience):
	}
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("raft: a command has no outcome")
	}
}

func (s *raftSystem) enter(i int) error   { return s.ask(i, cmdEnter, s.members[i].inside) }
func (s *raftSystem) operate(i int) error { return s.ask(i, cmdOperate, s.members[i].applied) }
func (s *raftSystem) exit(i int) error    { return s.ask(i, cmdExit, s.members[i].applied) }
