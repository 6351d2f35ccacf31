// Package clock is one that all processes of a machine share.
package clock

import "time"

var start = readBoth(read)

// Now is an instant in ns that all processes of this machine agree on, up to what the
// clock of each of them is off by: a microsecond or so.
func Now() int64 { return start.shared + int64(time.Since(start.own)) }

// An instant is one by both clocks: the one that all processes share and, much cheaper
// to read, the runtime's. They go at the same rate.
type instant struct {
	own    time.Time
	shared int64         // in ns; own is not later
	off    time.Duration // own is at most so much earlier
}

// tries are enough to read both clocks once with nothing in between: a page that is
// missing or a process that has to wait is a matter of a few.
const tries = 100

// readBoth reads the shared clock between two readings of the own one. The closest of
// some tries counts, for a process that stops between two readings has a clock that
// is wrong by that time for the rest of its life.
func readBoth(read func() int64) (best instant) {
	for i := range tries {
		own := time.Now()
		shared := read()
		off := time.Since(own)
		if i == 0 || off < best.off {
			best = instant{own, shared, off}
		}
		if best.off < time.Microsecond {
			break
		}
	}
	return best
}
