package workload

import (
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Config is what all users do.
type Config struct {
	Seed    uint64
	Entries []int // to make, for each user
	Think   Dist  // between leaving and the next try
	Hold    Dist  // of the critical section

	// Each request is for PerRequest of so many Groups, which are called 1, 2, ..; or for Wants, one set for each
	// user, if not nil. Neither: nobody shares.
	Groups     int
	Popularity Popularity
	PerRequest int
	Wants      []protocol.Groups
	Downgrade  float64 // probability that whoever may come down to a group does
}

// Users are those of one run. Each is a closed loop: it thinks, tries, holds and leaves, as often as it has entries to make.
type Users struct {
	c      Config
	each   []user
	wishes wishes
}

// A user is one of them, through the lives of its processes.
type user struct {
	left                       int             // entries to make
	wants                      protocol.Groups // drawn, and not entered yet
	think, hold, groups, downs Stream
}

// Reset makes u the users of a run that has not begun, in the memory of an earlier one.
func (u *Users) Reset(c Config) {
	u.c = c
	u.each = slices.Grow(u.each[:0], len(c.Entries))[:len(c.Entries)]
	clear(u.each)
	for k := range u.each {
		us := &u.each[k]
		us.left = c.Entries[k]
		us.think.Begin(c.Seed, ForThink, uint64(k))
		us.hold.Begin(c.Seed, ForHold, uint64(k))
		us.groups.Begin(c.Seed, ForGroups, uint64(k))
		us.downs.Begin(c.Seed, ForDowngrades, uint64(k))
	}
	u.wishes.reset(&c)
}

// Total is how many entries all of them make.
func (u *Users) Total() (all int) {
	for _, k := range u.c.Entries {
		all += k
	}
	return all
}

// Left is how many entries user k still has to make.
func (u *Users) Left(k int) int { return u.each[k].left }

// First is when user k tries for the first time: first tries are spread evenly over one mean think time.
func (u *Users) First(k int) time.Duration {
	return time.Duration(float64(u.c.Think.Mean()) * float64(k) / float64(len(u.each)))
}

// Wanted is what user k wants now. A user that did not get it wants the same again.
func (u *Users) Wanted(k int) protocol.Groups {
	us := &u.each[k]
	switch {
	case u.c.Wants != nil:
		return u.c.Wants[k]
	case us.wants == "" && u.c.Groups > 0:
		us.wants = u.wishes.draw(&us.groups)
	}
	return us.wants
}

// Entered notes that user k is inside.
func (u *Users) Entered(k int) {
	u.each[k].left--
	u.each[k].wants = ""
}

// Holds draws how long user k stays inside.
func (u *Users) Holds(k int) time.Duration { return u.c.Hold.Draw(&u.each[k].hold) }

// Thinks draws how long user k thinks.
func (u *Users) Thinks(k int) time.Duration { return u.c.Think.Draw(&u.each[k].think) }

// ComesDown draws whether user k, which is inside alone and may come down to a group, does so half-way through its hold.
func (u *Users) ComesDown(k int) bool {
	return u.c.Downgrade > 0 && u.each[k].downs.Float64() < u.c.Downgrade
}
