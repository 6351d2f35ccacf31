package poundlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"unsafe"
)

// TestSizeOfGrant: what a client has of each lock that it holds fits into what the allocator gives for so many bytes on 64 bits.
// TestSize of internal/e2e measures all of it.
func TestSizeOfGrant(t *testing.T) {
	for what, x := range map[string]struct{ has, most uintptr }{
		"section": {unsafe.Sizeof(section{}), 96},
		"hold":    {unsafe.Sizeof(hold{}), 64},
		"stay":    {unsafe.Sizeof(stay{}), 112},
	} {
		if x.has > x.most {
			t.Errorf("a %s has %d bytes, want at most %d: a client may have very many", what, x.has, x.most)
		}
	}
}

// TestContext: the context of a grant says the same whenever somebody asks for it first.
func TestContext(t *testing.T) {
	type key struct{}
	for name, x := range map[string]struct {
		ends func(f *fakeNode, g *Grant)
		want error // nil: it has not ended
	}{
		"held":              {func(*fakeNode, *Grant) {}, nil},
		"unlocked":          {func(_ *fakeNode, g *Grant) { g.Unlock() }, context.Canceled},
		"lost":              {func(f *fakeNode, _ *Grant) { f.eject("a") }, ErrLost},
		"lost and unlocked": {func(f *fakeNode, g *Grant) { f.eject("a"); synctest.Wait(); g.Unlock() }, ErrLost},
		"closed":            {func(_ *fakeNode, g *Grant) { g.s.client.Close() }, ErrClosed},
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, f := newFake(t)
					parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
					g, err := c.Mutex("a").Lock(parent)
					if err != nil {
						t.Fatal(err)
					}
					if early {
						g.Context()
					}
					cancel()
					x.ends(f, g)
					synctest.Wait()
					ctx := g.Context()
					if cause := context.Cause(ctx); !errors.Is(cause, x.want) || (ctx.Err() == nil) != (x.want == nil) {
						t.Errorf("early %v: it ended with %v because of %v, want %v", early, ctx.Err(), cause, x.want)
					}
					if ctx.Value(key{}) != "value" || ctx != g.Context() {
						t.Errorf("early %v: another one: %v", early, ctx)
					}
					g.Unlock()
				})
			})
		}
	}
}

// TestDoContext: the context of Do ends with its parent, too.
func TestDoContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		parent, cancel := context.WithCancel(t.Context())
		err := c.Mutex("a").Do(parent, func(ctx context.Context, g *Grant) error {
			cancel()
			<-ctx.Done()
			if ctx != g.Context() {
				t.Error("the grant has another context")
			}
			return context.Cause(ctx)
		})
		if err != context.Canceled {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	})
}

// TestHolds compares the list with a slice.
func TestHolds(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var list holds
	var want []*hold
	for step := range 20_000 {
		switch k := random.IntN(5); {
		case k < 2 && len(want) < 5:
			h := new(hold)
			list.add(h)
			want = append(want, h)
		case k == 2 && len(want) > 0: // some, while it is looked at
			for h := range list.all() {
				if random.IntN(2) == 0 {
					list.remove(h)
					at := slices.Index(want, h)
					want = slices.Delete(want, at, at+1)
				}
			}
		case len(want) > 0:
			at := random.IntN(len(want))
			list.remove(want[at])
			want = slices.Delete(want, at, at+1)
		}
		if got := slices.Collect(list.all()); !slices.Equal(got, want) || list.empty() != (len(want) == 0) {
			t.Fatalf("seed %d, step %d: %v, want %v", seed, step, got, want)
		}
	}
}
