package memlock

import (
	"fmt"
	"sync/atomic"
)

// A register is a word alone on its cache line.
type register struct {
	atomic.Uint64
	_ [56]byte
}

// memory is the registers of one lock.
type memory struct {
	registers []register
	// byHand, if not nil, makes each access instead: a test then chooses who goes on.
	byHand func(access) uint64
}

// An access is what one participant does to the memory in one step.
type access struct {
	register int
	write    bool
	value    uint64 // that is written
}

func newMemory(participants, registers int) memory {
	if participants < 1 {
		panic(fmt.Sprintf("memlock: a lock for %d participants: want at least 1", participants))
	}
	return memory{registers: make([]register, registers)}
}

func (m *memory) read(r int) uint64 {
	if m.byHand != nil {
		return m.hand(r, false, 0)
	}
	return m.registers[r].Load()
}

func (m *memory) write(r int, v uint64) {
	if m.byHand != nil {
		m.hand(r, true, v)
		return
	}
	m.registers[r].Store(v)
}

// hand keeps read and write short enough to be compiled in place.
//
//go:noinline
func (m *memory) hand(r int, write bool, v uint64) uint64 { return m.byHand(access{r, write, v}) }
