package memlock

import "runtime"

// A Bakery is Lamport's lock: who comes takes a ticket with a number larger than all that
// it sees, and enters when its own is the smallest.
type Bakery struct {
	memory // choosing of all slots, then num of all
	n      int
}

// NewBakery returns a lock for n participants.
func NewBakery(n int) *Bakery { return &Bakery{newMemory(n, 2*n), n} }

// choosing is the register that says that slot i takes a ticket, num the number of its
// ticket, 0 where it has none.
func (b *Bakery) choosing(i int) int { return i }
func (b *Bakery) num(i int) int      { return b.n + i }

// Lock locks b for slot i. It returns when no other slot is inside.
func (b *Bakery) Lock(i int) {
	b.write(b.choosing(i), 1)
	mine := uint64(1)
	for j := range b.n {
		if j != i {
			mine = max(mine, b.read(b.num(j))+1)
		}
	}
	b.write(b.num(i), mine)
	b.write(b.choosing(i), 0)

	for j := range b.n {
		if j == i {
			continue
		}
		for b.read(b.choosing(j)) != 0 {
			runtime.Gosched()
		}
		for first(b.read(b.num(j)), j, mine, i) {
			runtime.Gosched()
		}
	}
}

// first says whether slot j with ticket num comes before slot i with ticket mine.
func first(num uint64, j int, mine uint64, i int) bool {
	return num != 0 && (num < mine || num == mine && j < i)
}

// Unlock unlocks b, which slot i has locked.
func (b *Bakery) Unlock(i int) { b.write(b.num(i), 0) }
