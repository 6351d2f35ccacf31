// Package limit has what several bounds share: who counts as one host, and a Rate, which
// bounds how many lines of a log or of an audit each of many may cause, so that the noise of
// one hides nothing of the others: so many at once, and then one every so often. What was
// left out is counted for each, and said.
package limit

import (
	"sync"
	"time"
)

// A Rate is a bucket of tokens for each key, such as the address of a host. It may be used by
// many goroutines. Burst, Every and Most must be set.
type Rate[K comparable] struct {
	Burst int           // tokens of a key that has taken none for long
	Every time.Duration // after which one comes back
	// Most is how many keys have a bucket at once. While nobody of these has all its tokens back,
	// further keys share one bucket, that of the zero key.
	Most int

	mu      sync.Mutex
	buckets map[K]*bucket
	swept   time.Time
}

type bucket struct {
	used    int
	since   time.Time // when the last token came back
	refused int       // and nobody was told yet
}

// Take takes a token of key if there is one, and says how many were refused to that key before.
func (r *Rate[K]) Take(key K, now time.Time) (refused int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bucket(key, now).take(now, r.Burst, r.Every)
}

// Refused tells report of each key that was refused tokens, and has one again, which is taken for that.
func (r *Rate[K]) Refused(now time.Time, report func(key K, refused int)) {
	r.mu.Lock()
	told := map[K]int{}
	for key, b := range r.buckets {
		if b.refill(now, r.Every); b.refused > 0 && b.used < r.Burst {
			told[key], b.refused = b.refused, 0
			b.used++
		}
	}
	r.mu.Unlock()
	for key, k := range told {
		report(key, k)
	}
}

// bucket is that of a key. mu is held.
func (r *Rate[K]) bucket(key K, now time.Time) *bucket {
	if b := r.buckets[key]; b != nil {
		return b
	}
	if r.buckets == nil {
		r.buckets = map[K]*bucket{}
	}
	if len(r.buckets) >= r.Most && now.Sub(r.swept) >= r.Every {
		r.swept = now
		for k, b := range r.buckets {
			b.refill(now, r.Every)
			if b.used == 0 && b.refused == 0 {
				delete(r.buckets, k)
			}
		}
	}
	if len(r.buckets) >= r.Most {
		var others K
		key = others
	}
	b := r.buckets[key]
	if b == nil {
		b = &bucket{}
		r.buckets[key] = b
	}
	return b
}

func (b *bucket) refill(now time.Time, every time.Duration) {
	if back := int(now.Sub(b.since) / every); back >= b.used {
		b.used, b.since = 0, now
	} else {
		b.used -= back
		b.since = b.since.Add(time.Duration(back) * every)
	}
}

func (b *bucket) take(now time.Time, burst int, every time.Duration) (refused int, ok bool) {
	b.refill(now, every)
	if b.used >= burst {
		b.refused++
		return 0, false
	}
	b.used++
	refused, b.refused = b.refused, 0
	return refused, true
}
