package hunt

import (
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/world"
)

// ErrConfig is wrapped by every error that says that a Config makes no sense for
// the algorithm.
var ErrConfig = errors.New("hunt: bad configuration")

// maxWorkers is how many runs there may be at a time.
const maxWorkers = 256

// limits: members are sets of 64 bits in a model, as in package check. With many more operations, a
// section takes so long that who waits for its end looks stuck.
var limits = world.Limits{Members: 64, Clients: 1 << 10, Operations: 1000, Drawn: true}

// A Config is a hunt. It needs an end: Runs, For or Done.
type Config struct {
	// Config holds the number of members, 0 if each run is to draw it, and options:
	// those that are not given are drawn within protocol.Option.Sound.
	protocol.Config
	Clients int  // of a client-server algorithm; 0: each run draws it
	FIFO    bool // channels keep their order; always so where Info.FIFO

	// Wants are the alternatives of the users of a group algorithm, one list for all, of which each try
	// chooses one; nil: each run draws them.
	Wants [][]protocol.Groups

	// Operations is how many a user issues in each section at most, where there is a replicated object: one
	// number for all. nil: each run draws it.
	Operations []int

	// Registers are those of a shared memory; "": each run draws them, where the algorithm does
	// not need atomic ones.
	Registers protocol.Semantics

	Seed    uint64
	First   int64         // number of the first run
	Runs    int64         // how many; 0: no bound
	For     time.Duration // no run begins after it; 0: no bound
	Workers int           // runs at a time; 0: one. The result does not depend on it

	// Beyond is by how many members runs may exceed the budget of the model: see
	// Budget. With Break, it is the most; the least one that violates is sought.
	Beyond int
	Break  bool
	Known  bool // violations of what the algorithm is known not to have do not end it: Info.Lacks, Info.Refuted

	without kinds // never drawn, for tests

	Progress func(Progress)  // called about four times a second; nil: never
	Done     <-chan struct{} // ends the hunt when it is closed
}

// Progress is how far a hunt has come.
type Progress struct {
	Totals
	Beyond   int
	Reducing bool // a violation was found, and is being minimised
	Elapsed  time.Duration
}

// Totals count what was run.
type Totals struct {
	Runs    int64 `json:"runs"`
	Entries int64 `json:"entries"` // critical sections
	Events  int64 `json:"events"`  // steps of processes
}

func (t *Totals) add(u Totals) {
	t.Runs += u.Runs
	t.Entries += u.Entries
	t.Events += u.Events
}

// System is what c has in common with other drivers.
func (c *Config) System() world.System {
	return world.System{
		Config: c.Config, Clients: c.Clients, Operations: c.Operations, Wants: c.Wants, FIFO: c.FIFO, Registers: c.Registers,
	}
}

// Use takes over what c has in common with other drivers: users are drawn, and all alike.
func (c *Config) Use(s world.System) error {
	if len(s.Operations) > 1 || len(s.Down) > 0 || len(s.Wants) > 1 {
		return errors.New("users and members that are down are drawn: want what all have in common")
	}
	c.Config, c.Clients, c.Operations, c.Wants = s.Config, s.Clients, s.Operations, s.Wants
	c.FIFO, c.Registers = s.FIFO, s.Registers
	return nil
}

// complete checks c against the algorithm.
func (c *Config) complete(i protocol.Info) error {
	s := c.System()
	err := s.Complete(i, limits)
	if err == nil {
		err = c.Use(s)
	}
	if err != nil {
		return err
	}
	switch {
	case c.Runs < 0 || c.First < 0:
		return fmt.Errorf("runs %d from %d: want no negative number", c.Runs, c.First)
	case c.For < 0:
		return fmt.Errorf("for %v: want a positive duration", c.For)
	case c.Runs == 0 && c.For == 0 && c.Done == nil:
		return errors.New("a hunt without end: want a number of runs, or a time")
	case c.Workers < 0 || c.Workers > maxWorkers:
		return fmt.Errorf("%d workers: want 1 to %d", c.Workers, maxWorkers)
	case c.Beyond < 0:
		return fmt.Errorf("%d members beyond the budget: want at least 0", c.Beyond)
	}
	if c.Beyond > 0 || c.Break {
		if i.Tolerates&protocol.Amnesia == 0 || i.Quorum == "" {
			return errors.New("its model has no budget of memory losses to go beyond")
		}
		if c.N > 0 && c.Beyond > c.N-Budget(i, c.Config) {
			return fmt.Errorf("%d members beyond a budget of %d: there are only %d", c.Beyond, Budget(i, c.Config), c.N)
		}
	}
	if c.Break && c.Beyond == 0 {
		c.Beyond = c.N - Budget(i, c.Config)
		if c.N == 0 {
			c.Beyond = 3
		}
	}
	c.Workers = max(1, c.Workers)
	if c.N > 0 {
		return i.CheckOptions(c.Config)
	}
	return nil
}
