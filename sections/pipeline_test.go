package sections_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
)

// A turnstile is a copy that executes nothing while it is closed, and counts what its node executes.
type turnstile struct {
	node.Object
	open    chan struct{}
	applied atomic.Int32
}

func (s *turnstile) Apply(op []byte) []byte {
	<-s.open
	s.applied.Add(1)
	return s.Object.Apply(op)
}

// withTurnstile starts three members of which the first one executes nothing before the turnstile opens.
func withTurnstile(t *testing.T, change func(i int, c *sections.Config)) (*cluster, *turnstile) {
	t.Helper()
	s := &turnstile{open: make(chan struct{})}
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		if change != nil {
			change(i, c)
		}
		if i == 0 {
			c.Change(func(nc *node.Config) { s.Object, nc.Objects[name] = nc.Objects[name], s })
		}
	})
	t.Cleanup(s.release) // before the members close
	return c, s
}

func (s *turnstile) release() {
	select {
	case <-s.open:
	default:
		close(s.open)
	}
}

func begin(t *testing.T, s *sections.Section, op []byte) *sections.Operation {
	t.Helper()
	o, err := s.Start(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// underWay has an operation under way, so that what follows has to wait.
func underWay(t *testing.T, s *sections.Section) *sections.Operation {
	t.Helper()
	o := begin(t, s, counters.Add("k"))
	eventually(t, "it is under way", func() error {
		if !s.UnderWay() {
			return errors.New("not yet")
		}
		return nil
	})
	return o
}

// value is what an operation has counted.
func value(t *testing.T, o *sections.Operation) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b, err := o.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return counters.Value(b)
}

// Operations that are issued while one is under way travel together, in their order, each with a result of its own. One that is none
// fails alone.
func TestTogether(t *testing.T) {
	c, gate := withTurnstile(t, nil)
	s := enter(t, c.members[0])
	all := []*sections.Operation{underWay(t, s)}
	for k := range 9 {
		if k == 5 {
			if _, err := s.Do(t.Context(), []byte("bad")); !errors.Is(err, sections.ErrOperation) {
				t.Errorf("what is none: %v", err)
			}
		}
		all = append(all, begin(t, s, counters.Add("k")))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.DoAll(ended, counters.Add("k"), counters.Add("other")); !errors.Is(err, context.Canceled) {
		t.Errorf("DoAll whose context has ended: %v", err)
	}
	s.Exit() // when all have verdicts
	gate.release()
	for k, o := range all {
		if got := value(t, o); got != uint64(k+1) {
			t.Errorf("operation %d counts %d", k+1, got)
		}
	}
	if results, err := s.Wait(t.Context()); err != nil || len(results) != 2 || counters.Value(results[0]) != 11 || counters.Value(results[1]) != 1 {
		t.Errorf("DoAll: %v, %v", results, err)
	}
	if k := gate.applied.Load(); k != 2 {
		t.Errorf("they are %d operations of the node", k)
	}
	s = enter(t, c.members[1])
	if id, err := s.ID(t.Context()); err != nil || id != 12 {
		t.Errorf("the next section has the id %d: %v", id, err)
	}
	s.Exit()
	c.equal(12)
}

// A section that is lost tells so of each operation, whether it was under way or waited.
func TestEjectedTogether(t *testing.T) {
	var links []*faultnet.Proxy // to the member 0
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		if i > 0 {
			links = append(links, through(t, i, c)[0])
		}
	})
	s := enter(t, c.members[0])
	do(t, s, "k")
	c.equal(1)
	for _, p := range links {
		p.Cut(faultnet.Both)
	}
	all := []*sections.Operation{underWay(t, s)}
	for range 5 {
		all = append(all, begin(t, s, counters.Add("k")))
	}
	other := c.instead(1, 0)
	do(t, other, "k")
	other.Exit()
	for _, p := range links {
		p.Heal()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for k, o := range all {
		if _, err := o.Wait(ctx); !errors.Is(err, sections.ErrEjected) {
			t.Errorf("operation %d: %v", k+1, err)
		}
	}
	s.Exit()
	enter(t, c.members[0]).Exit()
	c.equal(2)
}

// Who issues too much waits until there is room, and one whose context ends meanwhile was not issued.
func TestTooMuch(t *testing.T) {
	c, gate := withTurnstile(t, nil)
	s := enter(t, c.members[0])
	underWay(t, s)
	large := counters.Add(strings.Repeat("x", sections.MaxOperation-1))
	for range (8 << 20) / sections.MaxOperation {
		begin(t, s, large)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Start(ctx, counters.Add("k")); !errors.Is(err, sections.ErrNotIssued) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("there is no room: %v", err)
	}
	told := make(chan error)
	go func() {
		_, err := s.Do(t.Context(), counters.Add("k"))
		told <- err
	}()
	gate.release()
	if err := <-told; err != nil {
		t.Errorf("when there is room: %v", err)
	}
	s.Exit()
	c.equal(2 + (8<<20)/sections.MaxOperation)
}

// Each of the operations that travel together may have a result as large as any.
func TestResultsTogether(t *testing.T) {
	c, gate := withTurnstile(t, func(_ int, c *sections.Config) { c.Objects[name] = verbose{c.Objects[name]} })
	s := enter(t, c.members[0])
	underWay(t, s)
	var all []*sections.Operation
	for _, size := range []int{sections.MaxOperation, sections.MaxOperation, 10, sections.MaxOperation + 1, sections.MaxOperation - 9, 1} {
		all = append(all, begin(t, s, counters.Add(fmt.Sprint(size))))
	}
	gate.release()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for k, want := range []int{sections.MaxOperation, sections.MaxOperation, 10, 0, sections.MaxOperation - 9, 1} {
		if b, err := all[k].Wait(ctx); len(b) != want || (want == 0) != errors.Is(err, sections.ErrResultTooLarge) {
			t.Errorf("result %d has %d bytes, %v", k, len(b), err)
		}
	}
	s.Exit()
	c.equal(7)
}

// An operation that only the copies refuse takes none of those that travel with it along.
func TestForeignTogether(t *testing.T) {
	var refuses atomic.Bool
	c, gate := withTurnstile(t, func(_ int, c *sections.Config) {
		c.Objects[name] = judge{c.Objects[name].(*counters.Store), func(op []byte) error {
			if refuses.Load() && bytes.Equal(op, counters.Add("new")) {
				return errors.New("unknown")
			}
			return nil
		}}
	})
	s := enter(t, c.members[0])
	underWay(t, s)
	var all []*sections.Operation
	for _, key := range []string{"k", "new", "k", "k"} {
		all = append(all, begin(t, s, counters.Add(key)))
	}
	refuses.Store(true)
	gate.release()
	for k, o := range all {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := o.Wait(ctx); (k == 1) != errors.Is(err, sections.ErrOperation) || k != 1 && err != nil {
			t.Fatalf("operation %d: %v", k, err)
		}
	}
	s.Exit()
	c.equal(4)
}

// Whoever has had a verdict just now, and issues another operation, travels with those that have waited meanwhile.
func TestUsersTogether(t *testing.T) {
	c, gate := withTurnstile(t, nil)
	s := enter(t, c.members[0])
	var travelled int32
	for range 20 { // on a busy machine it may be too late
		first := underWay(t, s)
		var all []*sections.Operation
		for range 3 {
			all = append(all, begin(t, s, counters.Add("k")))
		}
		time.Sleep(100 * time.Millisecond) // so long the first one takes
		before := gate.applied.Load()
		gate.open <- struct{}{}
		value(t, first)
		time.Sleep(time.Millisecond) // a user thinks
		all = append(all, begin(t, s, counters.Add("k")))
		over := make(chan struct{})
		var passing sync.WaitGroup
		passing.Go(func() {
			for {
				select {
				case gate.open <- struct{}{}:
				case <-over:
					return
				}
			}
		})
		for _, o := range all {
			value(t, o)
		}
		close(over)
		passing.Wait()
		if travelled = gate.applied.Load() - before; travelled == 2 {
			break
		}
	}
	if travelled != 2 {
		t.Errorf("five operations are %d of the node", travelled)
	}
	s.Exit()
}
