package poundlock_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

// TestDowngradeLetsReadersIn: as a writer comes down to the readers those who wait come in beside it, here and elsewhere,
// and another writer waits until all of them have left. The status and Client.Holders show the group.
func TestDowngradeLetsReadersIn(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	here, there, next := dial(t, config), dial(t, config), dial(t, config)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	first, err := here.RWMutex("book").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	token := first.Token()
	come := func(lock func(context.Context) (*poundlock.Grant, error)) <-chan *poundlock.Grant {
		in := make(chan *poundlock.Grant, 1)
		go func() {
			g, err := lock(ctx)
			if err != nil {
				t.Error(err)
			}
			in <- g
		}()
		return in
	}
	known := func(what string, ok func(book status.Lock) bool) {
		t.Helper()
		o := observe(t, l)
		defer o.Close()
		eventually(t, what, func() (seen bool) {
			status.Ask(ctx, o, server.LockQuery{}, func(x status.Lock) bool {
				seen = ok(x)
				return true
			})
			return seen
		})
	}
	written := come(next.RWMutex("book").Lock)
	known("the writer waits", func(book status.Lock) bool { return len(book.Waiters) == 1 && book.Group == "" })
	readHere := come(here.RWMutex("book").RLock)
	eventually(t, "a reader here is about to wait", func() bool { return here.Stats().Wanted == 1 })
	readThere := come(there.RWMutex("book").RLock) // which takes longer than that
	known("a reader waits behind it", func(book status.Lock) bool { return len(book.Waiters) == 2 })
	if err := first.Downgrade(poundlock.Shared); err != nil {
		t.Fatal(err)
	}
	a, b := <-readHere, <-readThere
	if a == nil || b == nil {
		return
	}
	known("the group is shown", func(book status.Lock) bool {
		return book.Group == poundlock.Shared && len(book.Holders) == 2 && len(book.Waiters) == 1
	})
	if holders, err := there.Holders(ctx, "book"); err != nil || len(holders) != 2 || holders[0].Group != poundlock.Shared {
		t.Errorf("%v: %+v", err, holders)
	}
	if first.Token() != token || first.Context().Err() != nil || first.Group() != poundlock.Shared || a.Token() != token || b.Token() <= token {
		t.Errorf("token %d, and %d and %d beside %d: %v", first.Token(), a.Token(), b.Token(), token, first.Context().Err())
	}
	for _, g := range []*poundlock.Grant{first, a, b} {
		select {
		case g := <-written:
			t.Errorf("the writer is inside beside readers: %v", g)
		default:
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if g := <-written; g != nil {
		if g.Token() <= b.Token() {
			t.Errorf("the writer has token %d after %d", g.Token(), b.Token())
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
	}
}

// A desk is where writers and readers meet: nobody writes beside anybody else. It also judges tokens, as a resource does.
type desk struct {
	t       *testing.T
	tokens  fence.Checker
	mu      sync.Mutex
	writers int
	readers int
}

// comes notes that somebody is inside with a token, and leaves that it is not any more; group "" writes.
func (d *desk) comes(group string, token uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if group == "" {
		d.writers++
	} else {
		d.readers++
	}
	if d.writers > 1 || d.writers == 1 && d.readers > 0 {
		d.t.Errorf("%d writers are inside beside %d readers", d.writers, d.readers)
	}
	if err := d.tokens.CheckGroup("book", group, token); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) leaves(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if group == "" {
		d.writers--
	} else {
		d.readers--
	}
}

// TestDowngrades: somebody writes and comes down to the readers, again and again, while another writer waits each time, and
// readers of both clients come and go. Nobody ever writes beside others, the token stays, a resource accepts it alone
// and in the group, and then the other writer gets in.
func TestDowngrades(t *testing.T) {
	t.Parallel()
	times := 300
	if lane.Long.Adds(t, "100 000 downgrades") {
		times = 100_000
	}
	_, config := startLocal(t)
	here, there := dial(t, config), dial(t, config)
	d := &desk{t: t}
	visit := func(waits *atomic.Bool, lock func(context.Context) (*poundlock.Grant, error)) (ok bool) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		waits.Store(true)
		g, err := lock(ctx)
		if err != nil {
			t.Error(err)
			return false
		}
		group := g.Group()
		d.comes(group, g.Token())
		d.leaves(group)
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		return err == nil
	}
	var over, reads atomic.Bool
	var readers sync.WaitGroup
	var read [2]int
	for k, c := range []*poundlock.Client{here, there} {
		readers.Go(func() {
			for ; !over.Load() && visit(&reads, c.RWMutex("book").RLock); read[k]++ {
			}
		})
	}
	for k := 0; k < times && !t.Failed(); k++ {
		var waits atomic.Bool
		written := make(chan bool, 1)
		ok := visit(&waits, func(ctx context.Context) (*poundlock.Grant, error) {
			g, err := here.RWMutex("book").Lock(ctx)
			if err != nil {
				return nil, err
			}
			token := g.Token()
			d.comes("", token)
			waits.Store(false)
			go func() { written <- visit(&waits, there.RWMutex("book").Lock) }()
			for !waits.Load() {
				runtime.Gosched()
			}
			d.leaves("")
			err = g.Downgrade(poundlock.Shared)
			if g.Token() != token || g.Context().Err() != nil {
				t.Errorf("token %d was %d; its context: %v", g.Token(), token, g.Context().Err())
			}
			return g, err
		})
		if !ok || !<-written {
			break
		}
	}
	over.Store(true)
	readers.Wait()
	t.Logf("%v readers came beside", read)
	if !t.Failed() && (read[0] == 0 || read[1] == 0) {
		t.Error("a reader starves")
	}
}
