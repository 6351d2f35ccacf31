package fence

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCheck(t *testing.T) {
	var c Checker
	for i, x := range []struct {
		name  string
		token uint64
		stale uint64 // the larger token that is named; 0: accepted
	}{
		{"a", 5, 0},
		{"a", 5, 0}, // the same holder again
		{"a", 4, 5},
		{"b", 1, 0}, // names do not mix
		{"a", 9, 0},
		{"a", 5, 9},
		{"a", 9, 0}, // a refusal changed nothing
		{"a", 0, 9},
		{"a", 1<<64 - 1, 0},
		{"a", 1<<64 - 2, 1<<64 - 1},
	} {
		err := c.Check(x.name, x.token)
		if x.stale == 0 {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		var stale *StaleError
		if !errors.Is(err, ErrStale) || !errors.As(err, &stale) {
			t.Fatalf("%d: %v, want ErrStale", i, err)
		}
		if *stale != (StaleError{x.name, x.token, x.stale}) {
			t.Errorf("%d: %+v", i, *stale)
		}
	}
	if c.Largest("b") != 1 || c.Largest("c") != 0 {
		t.Errorf("largest of b and c: %d, %d; want 1, 0", c.Largest("b"), c.Largest("c"))
	}
	c.Forget("a")
	if err := c.Check("a", 1); err != nil {
		t.Errorf("after Forget: %v", err)
	}
}

// A use is what a holder did: a token in a group.
type use struct {
	group string
	token uint64
}

// stale says it from all that was accepted before: another group had a larger token, or the same one,
// except that the same holder was there without a group.
func (u use) stale(accepted []use) bool {
	return slices.ContainsFunc(accepted, func(v use) bool {
		switch {
		case v.group == u.group && u.group != "":
			return false
		case v.group == "":
			return v.token > u.token
		}
		return v.token >= u.token
	})
}

// Holders of one group come in any order, and none behind a larger token of another group.
func TestCheckGroup(t *testing.T) {
	refused, shared, down := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var c Checker
		var accepted []use
		for range 12 {
			u := use{[]string{"", "a", "b"}[r.IntN(3)], 1 + r.Uint64N(8)}
			err := c.CheckGroup("x", u.group, u.token)
			if stale := u.stale(accepted); stale != errors.Is(err, ErrStale) {
				t.Fatalf("seed %d: %v after %v: %v, want stale: %v", seed, u, accepted, err, stale)
			}
			if err != nil {
				refused++
				continue
			}
			for _, v := range accepted {
				if v.group == u.group && u.group != "" && v.token > u.token {
					shared++
				}
				if v.group == "" && u.group != "" && v.token == u.token {
					down++
				}
			}
			accepted = append(accepted, u)
		}
	}
	if refused < 500 || shared < 500 || down < 500 {
		t.Errorf("%d refused, %d accepted behind a larger one of their group, %d that came down to a group: that shows little", refused, shared, down)
	}
}

// TestConcurrent: whatever the order, every token accepted is at least as large
// as all tokens whose Check had returned before it began.
func TestConcurrent(t *testing.T) {
	var c Checker
	var done atomic.Uint64 // a lower bound of the largest token accepted
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			for i := range uint64(2000) {
				token := i*4 + g
				before := done.Load()
				if c.Check("x", token) != nil {
					continue
				}
				if token < before {
					t.Errorf("%d accepted after %d", token, before)
				}
				for old := done.Load(); old < token && !done.CompareAndSwap(old, token); old = done.Load() {
				}
			}
		})
	}
	all.Wait()
	if c.Largest("x") < done.Load() {
		t.Errorf("largest is %d, accepted %d", c.Largest("x"), done.Load())
	}
}
