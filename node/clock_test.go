package node

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A clock tells the wall clock as it is, and says when somebody sets it, which a suspended
// machine and a clock that is a little off are not.
func TestClock(t *testing.T) {
	const bound = 50 * time.Millisecond
	var offset, asleep time.Duration
	var said []string
	c := wallClock{wall: func(t time.Time) int64 { return t.Add(offset + asleep).UnixNano() }}
	began := time.Now()
	c.start(func() time.Duration { return time.Since(began) + asleep }, bound, func(by, off time.Duration) {
		said = append(said, fmt.Sprint(by.Round(10*time.Millisecond), off.Round(10*time.Millisecond)))
	})
	for _, step := range []struct {
		offset, asleep time.Duration
		want           string // what it says
	}{
		{0, 0, ""},
		{40 * time.Millisecond, 0, ""},
		{-40 * time.Millisecond, 0, ""},
		{10 * time.Minute, 0, "10m0s 10m0s"},
		{10 * time.Minute, time.Hour, ""},
		{10*time.Minute + 30*time.Millisecond, time.Hour, ""},
		{-2 * time.Hour, time.Hour, "-2h10m0s -2h0m0s"},
		{0, 2 * time.Hour, "2h0m0s 0s"},
		{60 * time.Millisecond, 2 * time.Hour, "60ms 60ms"},
	} {
		offset, asleep, said = step.offset, step.asleep, nil
		for range 3 {
			now := c.now()
			if off := time.Duration(now - time.Now().UnixNano()); (off - offset - asleep).Abs() > time.Minute {
				t.Errorf("%+v: tells a time that is %v off", step, off)
			}
		}
		var want []string
		if step.want != "" {
			want = []string{step.want}
		}
		if !slices.Equal(said, want) {
			t.Errorf("%+v: says %q", step, said)
		}
	}
	if off, steps := c.state(); off.Round(10*time.Millisecond) != 60*time.Millisecond || steps != 4 {
		t.Errorf("%d steps, %v in all", steps, off)
	}
}
