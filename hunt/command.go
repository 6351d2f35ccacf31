package hunt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
	"github.com/poundlock/poundlock/sim"
)

// Command is the command that says what v is a run of: a check, or a simulation that
// violates the same property.
func (v Violation) Command(i protocol.Info) string {
	words := []string{"poundlock", "check", i.Name}
	add := func(flag string, value any) { words = append(words, flag, fmt.Sprint(value)) }
	c, n, clients := v.Check.Config, v.N, v.Clients
	if v.Timed {
		words[1], c = "sim", v.Simulation.Config
	}
	if i.Variant != "" {
		add("--variant", i.Variant)
	}
	add("-n", n)
	if clients > 0 {
		add("--clients", clients)
	}
	for _, o := range i.Options {
		value, given := c.Options[o.Name]
		usual := o.Default(c)
		if !v.Timed && o.InCheck != nil {
			usual = o.InCheck(c)
		}
		if given && value != usual {
			add("--option", fmt.Sprintf("%s=%d", o.Name, value))
		}
	}
	if v.Timed {
		v.simulation(add)
		return strings.Join(words, " ")
	}
	v.check(i, add)
	return strings.Join(words, " ")
}

func (v Violation) check(i protocol.Info, add func(string, any)) {
	c := v.Check
	add("--entries", numbers(c.Entries))
	if faults := c.Faults(); len(faults) > 0 {
		add("--faults", strings.Join(faults, ","))
	}
	if c.Spaced > 0 {
		add("--spaced", c.Spaced)
	}
	down(i, c.N, c.Down, add)
	if c.FIFO && !i.FIFO {
		add("--channels", "fifo")
	}
	add("--property", c.Properties[0])
}

func (v Violation) simulation(add func(string, any)) {
	c := v.Simulation
	add("--entries", numbers(c.Entries))
	add("--seed", c.Seed)
	add("--delay", c.Delay)
	add("--think", c.Think)
	add("--hold", c.Hold)
	for _, d := range []struct {
		flag  string
		value fmt.Stringer
		given bool
	}{
		{"--amnesia-every", c.AmnesiaEvery, c.AmnesiaEvery > 0},
		{"--crash-every", c.CrashEvery, c.CrashEvery > 0},
		{"--pause-every", c.PauseEvery, c.PauseEvery > 0},
		{"--partition-every", c.PartitionEvery, c.PartitionEvery > 0},
		{"--faults-until", c.FaultsUntil, c.AmnesiaEvery+c.CrashEvery+c.PauseEvery+c.PartitionEvery > 0},
		{"--lease", c.Lease, c.Lease != sim.DefaultLease},
		{"--clock-offset", c.ClockOffset, c.ClockOffset > 0},
	} {
		if d.given {
			add(d.flag, d.value)
		}
	}
	if c.Spaced > 0 {
		add("--spaced", c.Spaced)
	}
	for _, p := range []struct {
		flag  string
		value float64
	}{{"--loss", c.Loss}, {"--dup", c.Dup}} {
		if p.value > 0 {
			add(p.flag, p.value)
		}
	}
	down(protocol.Info{Users: protocol.Clients}, c.N, c.Down, add)
}

func down(i protocol.Info, n int, ids []protocol.ID, add func(string, any)) {
	var list []string
	for _, id := range ids {
		list = append(list, scenario.Names{Members: n, Clients: i.Users == protocol.Clients}.Of(id))
	}
	if len(list) > 0 {
		add("--down", strings.Join(list, ","))
	}
}

// numbers writes entries as the flag of that name reads them.
func numbers(list []int) string {
	var words []string
	for _, e := range list {
		words = append(words, strconv.Itoa(e))
	}
	return strings.Join(words, ",")
}
