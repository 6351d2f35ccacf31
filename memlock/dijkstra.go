package memlock

import "runtime"

// Dijkstra is his lock of 1965: who finds the one whose turn it is at rest takes the turn,
// and who has the turn enters unless another one is about to.
type Dijkstra struct {
	memory // b of all slots, c of all slots, and k
	n      int
}

// NewDijkstra returns a lock for n participants.
func NewDijkstra(n int) *Dijkstra {
	d := &Dijkstra{newMemory(n, 2*n+1), n}
	for r := range 2 * n {
		d.registers[r].Store(1)
	}
	return d
}

// b is the register that is true while slot i is at rest, c the one that is true unless it
// is about to enter or inside, and k the slot whose turn it is.
func (d *Dijkstra) b(i int) int { return i }
func (d *Dijkstra) c(i int) int { return d.n + i }
func (d *Dijkstra) k() int      { return 2 * d.n }

// Lock locks d for slot i. It returns when no other slot is inside, which may never be if
// others lock d again and again.
func (d *Dijkstra) Lock(i int) {
	d.write(d.b(i), 0)
	for !d.alone(i) {
		runtime.Gosched()
	}
}

// alone is one round from the label Li1 of the paper on: whether i may enter.
func (d *Dijkstra) alone(i int) bool {
	if d.read(d.k()) != uint64(i) {
		d.write(d.c(i), 1)
		if k := d.read(d.k()); d.read(d.b(int(k))) != 0 {
			d.write(d.k(), uint64(i))
		}
		return false
	}
	d.write(d.c(i), 0)
	for j := range d.n {
		if j != i && d.read(d.c(j)) == 0 {
			return false
		}
	}
	return true
}

// Unlock unlocks d, which slot i has locked.
func (d *Dijkstra) Unlock(i int) {
	d.write(d.c(i), 1)
	d.write(d.b(i), 1)
}
