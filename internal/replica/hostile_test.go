package replica_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/node"
)

// What is no operation is refused where it is issued, with what is wrong, and no other member hears of it.
func TestNoOperation(t *testing.T) {
	var asked atomic.Int32
	c := startWith(t, 3, second, func(i int, c *node.Config) {
		if i > 0 {
			c.Objects[name] = judge{c.Objects[name].(*replica.Store), func([]byte) error { asked.Add(1); return nil }}
		}
	})
	s := enter(t, c.copies[0])
	for op, want := range map[string]string{
		"bad": `"bad" does not begin with +`,
		"+" + strings.Repeat("x", node.MaxOperation): "it has 262145 bytes, more than 262144",
	} {
		if _, err := s.Do(t.Context(), []byte(op)); !errors.Is(err, node.ErrOperation) || !strings.Contains(err.Error(), want) {
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

// A judge is a copy with another idea of what is an operation.
type judge struct {
	*replica.Store
	check func([]byte) error
}

func (j judge) Check(op []byte) error { return j.check(op) }

// An operation that is none, of a member that has let it pass, does nothing at any copy, whether they refuse it or
// panic when they look at it. Its user is told, each copy says so in its log, and all go on. A copy that executes it all
// the same is noticed.
func TestForeignOperation(t *testing.T) {
	refuses := (*replica.Store)(nil).Check
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
			var log journal
			var passed atomic.Bool
			c := startWith(t, 3, second, func(i int, c *node.Config) {
				s := c.Objects[name].(*replica.Store)
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
			s := enter(t, c.copies[2])
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := s.Do(ctx, []byte("bad")); !errors.Is(err, node.ErrOperation) {
				t.Errorf("its user is told %v", err)
			}
			do(t, s, "k")
			s.Exit()
			for _, r := range c.copies { // a copy whose user is inside has executed all that was before
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

// A journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}
