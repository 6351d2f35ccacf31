package causal

import (
	"cmp"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A vector counts tries, by user and sorted by it. A user of whom nothing is known is
// not in it. A user that never tried counts least, so that all counts of one user can
// be moved together: see counter.
type vector []tries

type tries struct {
	user  protocol.ID
	count uint64
}

const least = 1

// counter names the counts of one user. No algorithm has requests of this time.
func counter(user protocol.ID) protocol.Counter {
	return protocol.Counter{User: user, Time: math.MaxUint64, Least: least}
}

func (v vector) find(user protocol.ID) (int, bool) {
	return slices.BinarySearchFunc(v, user, func(t tries, u protocol.ID) int { return cmp.Compare(t.user, u) })
}

// of is the count of a user, 0 where nothing is known.
func (v vector) of(user protocol.ID) uint64 {
	if i, known := v.find(user); known {
		return v[i].count
	}
	return 0
}

// count adds one try of a user that v knows.
func (v vector) count(user protocol.ID) {
	i, _ := v.find(user)
	v[i].count++
}

// merge returns what either v or w knows, in the memory of v.
func (v vector) merge(w vector) vector {
	for _, t := range w {
		i, known := v.find(t.user)
		if !known {
			v = slices.Insert(v, i, t)
		}
		v[i].count = max(v[i].count, t.count)
	}
	return v
}

func (v *vector) fields(c *protocol.Codec) {
	for i := range protocol.List(c, v) {
		t := &(*v)[i]
		c.AnyID(&t.user)
		c.Count(&t.count, counter(t.user))
		c.Want(t.count >= least && (i == 0 || (*v)[i-1].user < t.user))
	}
}
