package replica_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/node"
)

// A bulky copy has a state of so many bytes more.
type bulky struct {
	*replica.Store
	size int
}

func (b bulky) Snapshot() []byte { return append(b.Store.Snapshot(), make([]byte, b.size)...) }

func (b bulky) Restore(snapshot []byte) (func(), error) {
	return b.Store.Restore(snapshot[:len(snapshot)-b.size])
}

// A state that is too large, for who has it or for who gets it, closes the member that needs it, and no other one. Its
// users are told how large it is, and what to raise.
func TestStateTooLarge(t *testing.T) {
	for _, test := range []struct {
		size, theirs, mine int // mine: the limit of who comes back; 0: the default
		want               [2]string
	}{
		{100 << 10, 64 << 10, 0, [2]string{"the state has 1024", "the limit at the member that has it is 65536: raise MaxState"}},
		{100 << 10, 0, 64 << 10, [2]string{"the state has 1024", "the limit here is 65536: raise MaxState"}},
		// It is announced, and not received.
		{33 << 20, 0, 1, [2]string{"the message with the state has 34603", "the limit here is 33554433: raise MaxState"}},
	} {
		t.Run(fmt.Sprint(test.size, " of ", test.theirs, " and ", test.mine), func(t *testing.T) {
			c := startWith(t, 3, second, func(i int, c *node.Config) {
				c.Objects[name] = bulky{c.Objects[name].(*replica.Store), test.size}
				if c.MaxState = test.theirs; c.Joins {
					c.MaxState = test.mine
				}
			})
			s := enter(t, c.copies[0])
			do(t, s, "k")
			c.equal(1)
			c.nodes[2].Close()
			c.again(2)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for range 2 {
				_, err := c.copies[2].Enter(ctx)
				if !errors.Is(err, replica.ErrClosed) || !strings.Contains(err.Error(), test.want[0]) ||
					!strings.Contains(err.Error(), test.want[1]) {
					t.Errorf("who comes back: %v", err)
				}
			}
			c.nodes[2].Close()
			if got := do(t, s, "k"); got != 2 {
				t.Errorf("after that: %d", got)
			}
			s.Exit()
		})
	}
}

// A state may be larger than all that may wait in sessions otherwise, also while others go on.
func TestLargeState(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *node.Config) {
		c.Objects[name] = bulky{c.Objects[name].(*replica.Store), 33 << 20}
		c.MaxUnacked = 1
	})
	s := enter(t, c.copies[0])
	do(t, s, "k")
	c.equal(1)
	c.nodes[2].Close()
	c.again(2)
	for begin := time.Now(); c.stores[2].Applied() == 0; time.Sleep(5 * time.Millisecond) { // fewer than may wait behind it
		do(t, s, "k")
		if time.Since(begin) > patience {
			t.Fatalf("no state in %v", patience)
		}
	}
	s.Exit()
	c.equal(c.stores[0].Applied())
	if k := c.nodes[0].Stats().SessionsEnded["too_many"]; k > 0 {
		t.Errorf("%d sessions were dropped", k)
	}
}

// Who comes back gets the states of several objects from one member, also where each of them is larger than all that may
// wait in a session otherwise.
func TestLargeStates(t *testing.T) {
	const objects, size = 4, 10 << 20
	all := make([][]*replica.Store, 3)
	c := startWith(t, 3, second, func(i int, c *node.Config) {
		all[i] = make([]*replica.Store, objects)
		for k := range all[i] {
			all[i][k] = &replica.Store{}
			c.Objects[fmt.Sprint(k)] = bulky{all[i][k], size}
		}
	})
	for k := range objects {
		s := enter(t, replica.New(c.nodes[0], fmt.Sprint(k)))
		do(t, s, "k")
		s.Exit()
	}
	c.nodes[2].Close()
	c.again(2)
	for begin, k := time.Now(), 0; k < objects; time.Sleep(time.Millisecond) {
		if all[2][k].Applied() > 0 {
			k++
		} else if time.Since(begin) > patience {
			t.Fatalf("object %d has no state in %v", k, patience)
		}
	}
	for k := range 2 {
		if n := c.nodes[k].Stats().SessionsEnded["too_many"]; n > 0 {
			t.Errorf("%d sessions of member %d were dropped", n, k)
		}
	}
}
