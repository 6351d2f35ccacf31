package live

import (
	"errors"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// mostLinks bounds what a run takes of the machine: a link is a proxy with two connections.
const mostLinks = 512

// refuse says what of a run a network does not have. What package node does not run it refuses itself.
func refuse(i protocol.Info, c *sim.Config) error {
	for _, f := range []struct {
		flag  string
		asked bool
		why   string
	}{
		{"warmup", c.Warmup != 0, "nodes count their messages from begin to end"},
		{"cooldown", c.Cooldown != 0, "nodes count their messages from begin to end"},
		{"bandwidth", c.Bandwidth != 0, "messages take as long there as they take"},
		{"loss", c.Loss != 0, "nodes talk over TCP, which loses nothing"},
		{"dup", c.Dup != 0, "nodes talk over TCP, which repeats nothing"},
		{"registers", c.Registers != "", protocol.ErrRegisters.Error()},
		{"operations", len(c.Operations) > 0, "it drives locks, and no replicated objects"},
		{"amnesia-every", c.AmnesiaEvery != 0, random},
		{"crash-every", c.CrashEvery != 0, random},
		{"recover-every", c.RecoverEvery != 0, random},
		{"pause-every", c.PauseEvery != 0, random},
		{"partition-every", c.PartitionEvery != 0, random},
		{"faults-until", c.FaultsUntil != 0, random},
		{"spaced", c.Spaced != 0, random},
		{"detect", c.Detect != 0, "a node suspects others by what it hears, and its lease"},
		{"until", c.Until != 0, "it is the end of an election"},
		{"clock-offset", c.ClockOffset != 0, "all nodes read the clock of this machine"},
		{"patience", c.Patience != 0 && c.Patience != sim.DefaultPatience, "it is a number of simulated events"},
		{"trace", c.Trace != nil, "nodes do not write what their processes do; history has what users see"},
		{"digest", c.Digest, "no two runs on a network are the same"},
	} {
		if f.asked {
			return fmt.Errorf("%s: not on a network: %s", f.flag, f.why)
		}
	}
	switch {
	case i.Users == protocol.Nobody:
		return errors.New("not on a network: nobody tries in an election, so there is nothing to measure")
	case i.Users == protocol.Members && i.Detector == protocol.PerfectDetector:
		return errors.New("not on a network: its detector is never wrong, and none of a network is so")
	case i.Weak:
		return errors.New("not on a network: its users issue operations on a replicated object, and this drives locks")
	}
	return checkFaults(c)
}

const random = "faults are drawn in virtual time; a scenario says when they happen"

// tooMany refuses more pairs of processes that talk to each other than one machine has room for.
func tooMany(i protocol.Info, c *sim.Config) error {
	links := c.N * (c.N - 1) / 2
	if i.Users == protocol.Clients {
		links = c.N * c.Clients
	}
	if links > mostLinks {
		return fmt.Errorf("%d processes that talk to each other in %d pairs: on a network of one machine want at most %d pairs",
			c.N+c.Clients, links, mostLinks)
	}
	return nil
}
