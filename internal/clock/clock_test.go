package clock

import (
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	for range 1000 {
		before := read()
		now := Now()
		after := read()
		if now < before || now > after+int64(start.off) {
			t.Fatalf("%d is not from %d to %d and %v later", now, before, after, start.off)
		}
	}
}

// TestReadBoth stops the process between the two readings: that must not be the reading
// that counts, unless there is no other.
func TestReadBoth(t *testing.T) {
	const stop = 2 * time.Millisecond
	calls := 0
	slow := func() int64 {
		if calls++; calls <= 3 {
			time.Sleep(stop)
		}
		return read()
	}
	if x := readBoth(slow); x.off >= stop {
		t.Errorf("off by %v after %d readings", x.off, calls)
	}
	always := func() int64 {
		time.Sleep(10 * time.Microsecond)
		return read()
	}
	if x := readBoth(always); x.off < 10*time.Microsecond {
		t.Errorf("off by %v only, though each reading takes longer", x.off)
	}
}
