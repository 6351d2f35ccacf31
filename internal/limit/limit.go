// Package limit has what several bounds share: who counts as one host; a Room, of which no host keeps others out; and
// a Rate, which bounds how many lines of a log or of an audit each of many may cause, so that the noise of
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
	full    time.Time // when all tokens are back
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
		if b.refused > 0 && b.has(now, r.Burst, r.Every) {
			told[key], _ = b.take(now, r.Burst, r.Every)
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
			if b.refused == 0 && !b.full.After(now) {
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

// has reports whether there is a token.
func (b *bucket) has(now time.Time, burst int, every time.Duration) bool {
	return b.full.Sub(now) <= time.Duration(burst-1)*every
}

func (b *bucket) take(now time.Time, burst int, every time.Duration) (refused int, ok bool) {
	if !b.has(now, burst, every) {
		b.refused++
		return 0, false
	}
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(every)
	refused, b.refused = b.refused, 0
	return refused, true
}
