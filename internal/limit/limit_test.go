package limit

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// What is refused is counted, and after a while the bucket is full again.
func TestRate(t *testing.T) {
	const burst, every = 20, time.Second
	r := Rate[string]{Burst: burst, Every: every, Most: 4}
	now := time.Now()
	take := func(k int) (refused, ok int) {
		for range k {
			r, yes := r.Take("noise", now)
			refused += r
			if yes {
				ok++
			}
		}
		return refused, ok
	}
	for _, x := range []struct {
		after             time.Duration
		k, refused, taken int
	}{
		{0, 3 * burst, 0, burst},
		{every - 1, 1, 0, 0},
		{1, 2, 2*burst + 1, 1},
		{3*every + every/2, 5, 1, 3},
		{every / 2, 5, 2, 1},
		{time.Hour, burst, 4, burst},
	} {
		now = now.Add(x.after)
		if refused, taken := take(x.k); refused != x.refused || taken != x.taken {
			t.Errorf("after %v: %d taken, %d counted, want %d and %d", x.after, taken, refused, x.taken, x.refused)
		}
	}
}

// The noise of one key takes nothing from another, and is said when the first one is silent again.
func TestRateByKey(t *testing.T) {
	r := Rate[string]{Burst: 2, Every: time.Second, Most: 4}
	now := time.Now()
	for range 100 {
		r.Take("noise", now)
	}
	if _, ok := r.Take("quiet", now); !ok {
		t.Error("a key that has said nothing is refused")
	}
	told := map[string]int{}
	tell := func(key string, refused int) { told[key] += refused }
	r.Refused(now, tell)
	if len(told) > 0 {
		t.Errorf("%v is told while there are no tokens", told)
	}
	r.Refused(now.Add(time.Second), tell)
	r.Refused(now.Add(time.Hour), tell)
	if want := map[string]int{"noise": 98}; !maps.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// However many keys there are, the memory and the lines are those of a few: the keys of the last
// ones share a bucket until others have their tokens back.
func TestRateOfManyKeys(t *testing.T) {
	r := Rate[string]{Burst: 2, Every: time.Second, Most: 8}
	now, ok := time.Now(), 0
	for k := range 1000 {
		if _, yes := r.Take(fmt.Sprint(k), now); yes {
			ok++
		}
	}
	if most := r.Most + 1; len(r.buckets) > most || ok > most*r.Burst {
		t.Errorf("%d buckets, %d tokens", len(r.buckets), ok)
	}
	now = now.Add(time.Minute)
	for range r.Burst {
		if _, yes := r.Take("later", now); !yes {
			t.Error("a key is refused after all others were silent for long")
		}
	}
}

func TestHost(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:7":          "10.0.0.1",
		"[::ffff:10.0.0.1]:7": "10.0.0.1",
		"[2001:db8::1:2]:7":   "2001:db8::/64",
		"[fe80::1%eth0]:7":    "fe80::/64",
		"@":                   "the unix socket",
		"":                    "the unix socket",
	} {
		if got := Host(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
