package protocol

import (
	"cmp"
	"fmt"
)

// A Stamp is the time of a request by its process's logical clock, with the id of that
// process. Stamps are totally ordered, as in Lamport's paper of 1978. The zero Stamp is no
// request.
type Stamp struct {
	Time uint64 // from 1
	ID   ID
}

// Compare is negative where s comes before o: by time, and by id where times are equal.
func (s Stamp) Compare(o Stamp) int {
	if s.Time != o.Time {
		return cmp.Compare(s.Time, o.Time)
	}
	return cmp.Compare(s.ID, o.ID)
}

// Before reports whether s comes before o.
func (s Stamp) Before(o Stamp) bool {
	return s.Time < o.Time || s.Time == o.Time && s.ID < o.ID
}

// Number is the stamp as one number, in the same order, among n processes.
func (s Stamp) Number(n int) uint64 { return s.Time*uint64(n) + uint64(s.ID) }

// String is the stamp in texts for people: see Algorithm.Text.
func (s Stamp) String() string { return fmt.Sprintf("#%d(%d)", s.ID, s.Time) }

// Stamp visits a request of one of the members 0 to n-1, or no request.
func (c *Codec) Stamp(v *Stamp, n int) {
	if c.Time(&v.Time); v.Time > 0 {
		c.ID(&v.ID, n)
	} else if c.Reading() {
		v.ID = 0
	}
}
