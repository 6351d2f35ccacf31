package sections_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// What is no operation is refused where it is issued, with what is wrong, and no other member hears of it.
func TestNoOperation(t *testing.T) {
	var asked atomic.Int32
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		if i > 0 {
			c.Objects[name] = judge{c.Objects[name].(*counters.Store), func([]byte) error { asked.Add(1); return nil }}
		}
	})
	s := enter(t, c.members[0])
	for op, want := range map[string]string{
		"bad": `"bad" does not begin with +`,
		"+" + strings.Repeat("x", sections.MaxOperation): fmt.Sprintf("it has %d bytes, more than %d", sections.MaxOperation+1, sections.MaxOperation),
	} {
		if _, err := s.Do(t.Context(), []byte(op)); !errors.Is(err, sections.ErrOperation) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.5s: %v", op, err)
		}
	}
	if got := do(t, s, "k"); got != 1 {
		t.Errorf("after that: %d", got)
	}
	s.Exit()
	c.equal(1)
	if k := asked.Load(); k != 2 {
		t.Errorf("the others were asked about %d operations", k)
	}
}

// What this package does not make is refused, whatever object there is.
func TestForms(t *testing.T) {
	c := withMore(t, 1)
	if err := c.members[0].Open(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	add := sections.One(counters.Add("k"))
	for _, object := range []string{name, "x"} {
		s := enterObject(t, c.members[0], object)
		for what, op := range map[string][]byte{
			"nothing":            {},
			"no form":            {99},
			"several of nothing": sections.Each(),
			"nested":             sections.Each(add, sections.Each(add)),
			"one of them empty":  sections.Each(add, nil),
			"one of them bad":    sections.Each(add, sections.One([]byte("bad"))),
			"cut off":            sections.Each(add, add)[:9],
			"a name":             sections.Begin("+1"),
			"begins":             sections.Begin("y"),
		} {
			if what == "begins" && object == "x" {
				continue // it does nothing any more
			}
			if _, err := s.Execute(t.Context(), op); !errors.Is(err, sections.ErrOperation) {
				t.Errorf("%s, %s: %v", object, what, err)
			}
		}
		if _, err := s.Execute(t.Context(), sections.Begin("x")); (err == nil) != (object == "x") {
			t.Errorf("%s begins anew: %v", object, err)
		}
		if got := do(t, s, "k"); got != 1 {
			t.Errorf("%s: %d", object, got)
		}
		s.Exit()
	}
}

// A judge is a copy with another idea of what is an operation.
type judge struct {
	*counters.Store
	check func([]byte) error
}

func (j judge) Check(op []byte) error { return j.check(op) }

// An operation that is none, of a member that has let it pass, does nothing at any copy, whether they refuse it or
// panic when they look at it. Its user is told, each copy says so in its log, and all go on. A copy that executes it all
// the same is noticed.
func TestForeignOperation(t *testing.T) {
	refuses := (*counters.Store)(nil).Check
	for what, check := range map[string]func([]byte) error{
		"refuses": refuses,
		"panics": func(op []byte) error {
			if err := refuses(op); err != nil {
				panic(err)
			}
			return nil
		},
		"executes": func([]byte) error { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			var log proctest.Log
			var passed atomic.Bool
			c := startWith(t, 3, second, func(i int, c *sections.Config) {
				s := c.Objects[name].(*counters.Store)
				switch i {
				case 0:
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
				case 1:
					c.Objects[name] = judge{s, check}
				case 2:
					c.Objects[name] = judge{s, func(op []byte) error {
						if passed.Swap(true) {
							return refuses(op)
						}
						return nil
					}}
				}
			})
			s := enter(t, c.members[2])
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := s.Do(ctx, []byte("bad")); !errors.Is(err, sections.ErrOperation) {
				t.Errorf("its user is told %v", err)
			}
			do(t, s, "k")
			s.Exit()
			for _, r := range c.members { // a copy whose user is inside has executed all that was before
				enter(t, r).Exit()
			}
			equal := bytes.Equal(c.stores[0].Snapshot(), c.stores[1].Snapshot())
			if equal != (what != "executes") {
				t.Errorf("equal copies: %v", equal)
			}
			if !bytes.Equal(c.stores[0].Snapshot(), c.stores[2].Snapshot()) || c.stores[0].Applied() != 1 {
				t.Errorf("%q, %q", c.stores[0].Snapshot(), c.stores[2].Snapshot())
			}
			for _, want := range []string{"refused an operation", "issuer=s3", `\"bad\" does not begin with +`} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log does not say %s: %s", want, log.String())
				}
			}
		})
	}
}

// What is no snapshot is not installed: a later life asks another member, complains of the one that has sent it,
// and takes part all the same. Where nobody looks at what a message brings, it fails.
func TestBadState(t *testing.T) {
	blind := consensus.With(wme.Second)
	blind.Snapshot = nil
	for _, test := range []struct {
		what   string
		damage func([]byte) []byte
		host   node.Host
		want   string
	}{
		{"malformed", func([]byte) []byte { return []byte("bad") }, second, "malformed snapshot: 3 bytes"},
		{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, second, "malformed snapshot: 11 bytes"},
		{"nothing", func([]byte) []byte { return nil }, second, "malformed snapshot: 0 bytes"},
		{"panics", func([]byte) []byte { return []byte(boom) }, second, "Restore panicked: boom"},
		{"nobody looks", func([]byte) []byte { return []byte("bad") }, node.HostOf(blind), ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			var log proctest.Log
			var who atomic.Int32
			c := startWith(t, 3, test.host, func(i int, c *sections.Config) {
				s := c.Objects[name].(*counters.Store)
				c.Objects[name] = liar{s, int32(i + 1), &who, test.damage}
				if !c.Bootstrap {
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
				}
			})
			s := enter(t, c.members[0])
			do(t, s, "k")
			do(t, s, "other")
			s.Exit()
			c.equal(2)
			c.members[2].Close()
			config := c.config(2, false)
			config.Listener = c.listen(2)
			switch err := c.open(2, config); {
			case test.want == "":
				if !errors.Is(err, sections.ErrClosed) {
					t.Errorf("opened: %v", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			c.equal(2)
			s = enter(t, c.members[2])
			if got := do(t, s, "k"); got != 2 {
				t.Errorf("the result is %d", got)
			}
			s.Exit()
			for _, want := range []string{"malformed message", fmt.Sprint("peer=s", who.Load()), "STATE: ", test.want} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log does not say %s: %s", want, log.String())
				}
			}
		})
	}
}

const boom = "boom"

// A liar's snapshots are damaged if it is the first of those that make one.
type liar struct {
	*counters.Store
	id     int32
	who    *atomic.Int32
	damage func([]byte) []byte
}

func (l liar) Snapshot() []byte {
	b := l.Store.Snapshot()
	if l.who.CompareAndSwap(0, l.id) || l.who.Load() == l.id {
		return l.damage(b)
	}
	return b
}

func (l liar) Restore(b []byte) (func(), error) {
	return explosive{l.Store}.Restore(b)
}

// Of whatever is no whole snapshot nothing is taken over, and of a whole one nothing before its time.
func TestRestore(t *testing.T) {
	var whole, s counters.Store
	for _, key := range []string{"a", "b", "b", ""} {
		whole.Apply(counters.Add(key))
	}
	s.Apply(counters.Add("c"))
	before, snapshot := string(s.Snapshot()), whole.Snapshot()
	for k := range snapshot {
		if _, err := s.Restore(snapshot[:k]); err == nil {
			t.Errorf("%q is a snapshot", snapshot[:k])
		}
	}
	if _, err := s.Restore(append(bytes.Clone(snapshot), 0)); err == nil {
		t.Error("a byte more is a snapshot")
	}
	replace, err := s.Restore(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Snapshot()); got != before {
		t.Errorf("it is %q, and was %q", got, before)
	}
	if replace(); string(s.Snapshot()) != string(snapshot) {
		t.Errorf("%q is restored as %q", snapshot, s.Snapshot())
	}
}
