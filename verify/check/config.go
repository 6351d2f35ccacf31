package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// maxMembers is how many members fit a set of bits, maxBudget what fits
// the bits of a budget.
const (
	maxMembers = 64
	maxBudget  = 1<<budgetBits - 1
	maxWorkers = 256
)

// limits are those of what all drivers have in common.
var limits = world.Limits{
	Members: maxMembers, Clients: maxMembers, Entries: 1 << 20, Operations: 1 << 20,
	DefaultClients: DefaultClients, DefaultEntries: 1, Unlimited: true,
}

// System is what c has in common with other drivers.
func (c *Config) System() world.System {
	return world.System{
		Config: c.Config, Clients: c.Clients, Entries: c.Entries, Operations: c.Operations, Wants: c.Wants,
		Down: c.Down, FIFO: c.FIFO, Registers: c.Registers,
	}
}

// Use takes over what c has in common with other drivers.
func (c *Config) Use(s world.System) {
	c.Config, c.Clients, c.Entries, c.Operations, c.Wants = s.Config, s.Clients, s.Entries, s.Operations, s.Wants
	c.Down, c.FIFO, c.Registers = s.Down, s.FIFO, s.Registers
}

// complete fills in defaults, and refuses what the model of the algorithm does not have.
func (c *Config) complete(i protocol.Info) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("check: %s: %w", i.Name, fmt.Errorf(format, args...))
	}
	if i.Grouped && len(c.Wants) == 0 {
		c.Wants = [][]protocol.Groups{DefaultWants}
	}
	s := c.System()
	if err := s.Complete(i, limits); err != nil {
		return bad("%w", err)
	}
	c.Use(s)
	for _, d := range c.Down {
		switch {
		case d >= protocol.ID(c.N):
			return bad("process %d cannot be down: only members can", d)
		case i.Users == protocol.Nobody:
			return bad("p%d cannot be down: let it crash in the first steps, with a scenario", d+1)
		case i.Users == protocol.Members: // others wait for its answer: a deadlock that says nothing
			return bad("p%d cannot be down: its members are its users, and its model has none that never answers", d+1)
		}
	}
	for u, list := range c.Wants {
		c.Wants[u] = slices.Compact(slices.Sorted(slices.Values(list)))
	}
	if err := errors.Join(c.checkRegisters(i), c.completeDecisions(i)); err != nil {
		return bad("%w", err)
	}
	c.MaxMemory = cmp.Or(c.MaxMemory, DefaultMaxMemory)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	switch {
	case c.MaxMemory < 1<<20:
		return bad("a memory cap of %d bytes: want at least 1MiB", c.MaxMemory)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return bad("%d workers: want 1 to %d", c.Workers, maxWorkers)
	case c.Swarm != nil && len(c.Reduce) > 0:
		return bad("a swarm leaves out what it does not find: want no reductions")
	case c.Swarm != nil && c.Exact:
		return bad("a swarm keeps bits, not whole states: leave out one of the two")
	case c.Swarm != nil:
		s := *c.Swarm
		if err := s.complete(c.MaxMemory, c.Workers); err != nil {
			return bad("%w", err)
		}
		c.Swarm = &s
	}
	if c.Options = maps.Clone(c.Options); c.Options == nil {
		c.Options = map[string]int64{}
	}
	for _, o := range i.Options {
		if _, given := c.Options[o.Name]; !given && o.InCheck != nil {
			c.Options[o.Name] = o.InCheck(c.Config)
			c.lasts = true
		}
	}
	if err := i.CheckOptions(c.Config); err != nil {
		return bad("%w", err)
	}
	for _, b := range c.Budgets() {
		endless := b.Verb == scenario.Amnesia || b.Verb == scenario.Cancel
		switch {
		case *b.Most == Unlimited && endless && i.Detector == protocol.LeaseDetector:
			return bad("%s=%d: with leases each fault is counted; want 0 to %d", b.Name, *b.Most, maxBudget)
		case *b.Most == Unlimited && endless && world.Has(i, b.Verb):
		case *b.Most < 0 || *b.Most > maxBudget:
			return bad("%s=%d: want 0 to %d", b.Name, *b.Most, maxBudget)
		case *b.Most == 0 || world.Has(i, b.Verb):
		case b.Verb == scenario.Lose || b.Verb == scenario.Duplicate:
			return bad("%s=%d: %w", b.Name, *b.Most, protocol.ErrReliable)
		default:
			return bad("%s=%d: its model has no such step", b.Name, *b.Most)
		}
	}
	if c.Recover > 0 && c.Crash == 0 {
		return bad("recover=%d: nobody comes back who has not crashed; want crash too", c.Recover)
	}
	return nil
}

// finite says why a property of infinite runs cannot be decided, "" if it can.
func (c *Config) finite(property string) string {
	switch {
	case c.Stay && property != ConcurrentEntry:
		return "who is inside stays there, and who waits for it does so for ever"
	case c.Swarm != nil:
		return "a swarm keeps no states"
	}
	return ""
}

// A Budget is how often a fault may happen in one run. Memory losses and cancels may be Unlimited where there are no leases: then
// a run may have them again and again without end.
type Budget struct {
	Name string
	Verb scenario.Verb // of its steps; Suspect: lapses, too
	Most *int          // a field of Config
	at   int           // where its bits begin in the first word of a state
}

// Budgets are those of c.
func (c *Config) Budgets() []Budget {
	return []Budget{
		{"amnesia", scenario.Amnesia, &c.Amnesia, amnesiaBudget},
		{"crash", scenario.Crash, &c.Crash, crashBudget},
		{"recover", scenario.Recover, &c.Recover, recoverBudget},
		{"suspect", scenario.Suspect, &c.Suspect, suspectBudget},
		{"cancel", scenario.Cancel, &c.Cancel, cancelBudget},
		{"drain", scenario.Drain, &c.Drain, drainBudget},
		{"loss", scenario.Lose, &c.Loss, lossBudget},
		{"dup", scenario.Duplicate, &c.Dup, dupBudget},
		{"pause", scenario.Pause, &c.Pause, pauseBudget},
	}
}

// Faults lists the budgets that are not 0, such as "amnesia=1".
func (c Config) Faults() (list []string) {
	for _, b := range c.Budgets() {
		if *b.Most != 0 {
			list = append(list, fmt.Sprintf("%s=%d", b.Name, *b.Most))
		}
	}
	return list
}

// Knows reports whether name is that of a property of a.
func Knows[M any](a protocol.Algorithm[M], name string) bool {
	all, beyond := properties(a)
	return slices.Contains(all, name) || slices.Contains(beyond, name)
}

// Properties returns the names of the properties of a that asked stands for, as
// Config.Properties: those of finite runs where it is empty, and for "all" what an algorithm
// should satisfy.
func Properties[M any](a protocol.Algorithm[M], asked []string) []string {
	names, err := choose(a, asked, func(string) string { return "" })
	if err != nil {
		return asked // Run says what is wrong with it
	}
	return names
}

// choose returns the properties asked for, in a fixed order. Those of finite runs are those that
// nobody has to ask for; Model is always among them. Of infinite runs "all" means what an
// algorithm should satisfy, except for those of which finite says why they cannot be decided.
func choose[M any](a protocol.Algorithm[M], asked []string, finite func(property string) string) ([]string, error) {
	all, beyond := properties(a)
	if len(asked) == 0 {
		return all, nil
	}
	known := append(slices.Clip(all), beyond...)
	for _, a := range asked {
		if a != "all" && !slices.Contains(known, a) {
			return nil, &PropertyError{a, known}
		}
		if why := finite(a); why != "" && endless(a) {
			return nil, fmt.Errorf("check: %s cannot be decided: %s", a, why)
		}
	}
	every := slices.Contains(asked, "all")
	return slices.DeleteFunc(known, func(n string) bool {
		inAll := slices.Contains(all, n) || endless(n) && n != Bypass && finite(n) == ""
		return n != Model && !(every && inAll) && !slices.Contains(asked, n)
	}), nil
}
