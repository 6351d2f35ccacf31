package clock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the clock of the system, whoever reads it, to within what the two readings around it take.
func TestBoot(t *testing.T) {
	for range 1000 {
		before := gettime(unix.CLOCK_BOOTTIME)
		now := int64(Boot())
		after := gettime(unix.CLOCK_BOOTTIME)
		if now < before-2*sameTime || now > after+2*sameTime {
			t.Fatalf("%d is not from %d to %d", now, before, after)
		}
	}
}

// The clock is read seldom, but at once after the machine was suspended, or the wall clock set.
func TestSeldom(t *testing.T) {
	var shared, monotonic, wall int64
	reads := 0
	pause := int64(0) // between two readings
	c := seldom{
		read: func() int64 { reads++; return shared },
		own:  func() (int64, int64) { monotonic += pause; wall += pause; shared += pause; return monotonic, wall },
	}
	run := func(d time.Duration) { monotonic, wall, shared = monotonic+int64(d), wall+int64(d), shared+int64(d) }
	look := func(what string, want int) {
		t.Helper()
		before := reads
		if now := c.now(); int64(now) < shared-pause || int64(now) > shared {
			t.Errorf("%s: %v, want %v", what, now, time.Duration(shared))
		}
		if reads != before+want {
			t.Errorf("%s: read %d times, want %d", what, reads-before, want)
		}
	}
	look("at first", 1)
	look("at once", 0)
	run(40 * time.Millisecond)
	look("soon", 0)
	run(10 * time.Millisecond)
	look("later", 1)
	wall, shared = wall+int64(time.Hour), shared+int64(time.Hour)
	look("after the machine was suspended", 1)
	look("and again", 0)
	wall -= int64(time.Second)
	look("after the wall clock was set", 1)
	wall, shared, pause = wall+int64(time.Hour), shared+int64(time.Hour), sameTime
	look("where the readings are not of one instant", 1)
	look("and still not", 1)
	pause = 0
	look("where they are", 1)
	look("and that one is kept", 0)
}

func BenchmarkBoot(b *testing.B) {
	for b.Loop() {
		Boot()
	}
}
