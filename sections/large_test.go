package sections_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
)

// A bulky copy has a state of so many bytes more.
type bulky struct {
	*counters.Store
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
			c := startWith(t, 3, second, func(i int, c *sections.Config) {
				c.Objects[name] = bulky{c.Objects[name].(*counters.Store), test.size}
				if c.MaxState = test.theirs; !c.Bootstrap {
					c.MaxState = test.mine
				}
			})
			s := enter(t, c.members[0])
			do(t, s, "k")
			c.equal(1)
			c.members[2].Close()
			config := c.config(2, false)
			config.Listener = c.listen(2)
			err := c.open(2, config)
			if !errors.Is(err, sections.ErrClosed) || !strings.Contains(err.Error(), test.want[0]) || !strings.Contains(err.Error(), test.want[1]) {
				t.Errorf("who comes back: %v", err)
			}
			if got := do(t, s, "k"); got != 2 {
				t.Errorf("after that: %d", got)
			}
			s.Exit()
		})
	}
}

// A state may be larger than all that may wait in sessions otherwise, also while others go on.
func TestLargeState(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *sections.Config) {
		c.Objects[name] = bulky{c.Objects[name].(*counters.Store), 33 << 20}
		c.Change(func(c *node.Config) { c.MaxUnacked = 1 })
	})
	s := enter(t, c.members[0])
	do(t, s, "k")
	c.equal(1)
	c.members[2].Close()
	config := c.config(2, false)
	config.Listener = c.listen(2)
	opened := make(chan error, 1)
	go func() { opened <- c.open(2, config) }()
	for begin := time.Now(); c.stores[2].Applied() == 0; time.Sleep(5 * time.Millisecond) { // fewer than may wait behind it
		do(t, s, "k")
		if time.Since(begin) > patience {
			t.Fatalf("no state in %v", patience)
		}
	}
	s.Exit()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	c.equal(c.stores[0].Applied())
	if k := c.members[0].Stats().Node.SessionsEnded["too_many"]; k > 0 {
		t.Errorf("%d sessions were dropped", k)
	}
}

// Who comes back gets the states of several objects from one member, also where each of them is larger than all that may
// wait in a session otherwise.
func TestLargeStates(t *testing.T) {
	const objects, size = 4, 10 << 20
	all := make([][]*counters.Store, 3)
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		all[i] = make([]*counters.Store, objects)
		for k := range all[i] {
			all[i][k] = &counters.Store{}
			c.Objects[fmt.Sprint(k)] = bulky{all[i][k], size}
		}
	})
	for k := range objects {
		s := enterObject(t, c.members[0], fmt.Sprint(k))
		do(t, s, "k")
		s.Exit()
	}
	c.members[2].Close()
	c.again(2)
	for k, o := range all[2] {
		if o.Applied() == 0 {
			t.Errorf("it takes part without object %d", k)
		}
	}
	for k := range 2 {
		if n := c.members[k].Stats().Node.SessionsEnded["too_many"]; n > 0 {
			t.Errorf("%d sessions of member %d were dropped", n, k)
		}
	}
}
