package node

import (
	"testing"
	"time"
)

// Timers that run for long end together, and never early; others end when they are to.
func TestTimersTogether(t *testing.T) {
	const after = 2 * time.Minute
	ends := map[time.Duration]bool{}
	for k := range 1000 {
		at := after + time.Duration(k)*time.Millisecond
		end := together(at, after)
		if ends[end] = true; end < at || end > at+after/256 {
			t.Errorf("%v, and not %v", end, at)
		}
		if short := long - time.Duration(k+1); together(at, short) != at {
			t.Errorf("a timer of %v ends at %v, and not at %v", short, together(at, short), at)
		}
	}
	if len(ends) > 4 {
		t.Errorf("timers that begin within a second end at %d instants", len(ends))
	}
}
