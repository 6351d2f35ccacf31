package sigma

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// The two machines of the package are mutated one at a time. What follows is of
// neither: it is what their checks use, and a mutant of it says nothing about them.
func outside(more ...string) map[string]string {
	all := map[string]string{
		"p1":                  "a property",
		"p2":                  "a property",
		"token":               "a property",
		"heir":                "a property",
		"literalToken":        "a property",
		"pairs":               "part of the properties",
		"currentTime":         "part of the properties",
		"renewed":             "part of the properties",
		"unsettled":           "spaces losses",
		"Server.table":        "part of the properties",
		"LiteralServer.table": "part of the properties",
		"Server.serial":       "a bound",
		"Client.serial":       "a bound",
		"asked":               "a claim: see TestAsked",
		"late":                "a claim: see TestMutantsOfClaims",
		"anyway":              "a claim: see TestMutantsOfClaims",
		"unfenced":            "a claim: see TestMutantsOfClaims",
		"rename":              "a claim: see TestMutantsOfClaims",
		"renamed":             "a claim: see TestMutantsOfClaims",
		"banded":              "a claim: see TestStarvationByID",
		"named":               "for people: see TestStandingOfGroups",
		"names":               "for people: see TestStandingOfGroups",
	}
	for _, name := range more {
		all[name] = "mutated by another test"
	}
	return all
}

// needed are the properties that must be seen to fail.
var needed = []string{"exclusion", "deadlock", "well-formed", "model", "sigma/p1", "sigma/p2", "sigma/token"}

// explore checks a small model without moving counters, so that a mutant violates
// a property rather than the claim about counters. Most are decided far below
// this cap; large ones have more.
func explore(a protocol.Algorithm[Message], n int, changes ...func(*check.Config)) mutant.Check {
	c := model(n, nil)
	c.MaxMemory, c.NoShift = 16<<20, true
	for _, f := range changes {
		f(&c)
	}
	return mutant.Decided(a, c)
}

// begun takes a beginning that does not come about for a fault.
func begun(c mutant.Check) mutant.Check {
	return func() (string, error) {
		fault, err := c()
		if err != nil {
			return "beginning by replay, " + err.Error(), nil
		}
		return fault, nil
	}
}

func large(c *check.Config)     { c.MaxMemory = 256 << 20 }
func checks(c *check.Config)    { c.Options = map[string]int64{"check": 1} }
func tokens(c *check.Config)    { c.Options = map[string]int64{"fence": FenceOn} }
func cancels(c *check.Config)   { c.Cancel = 1 }
func crashes(c *check.Config)   { c.Crash = 1 }
func lapses(c *check.Config)    { c.Suspect = 1 }
func fifo(c *check.Config)      { c.FIFO = true }
func shifts(c *check.Config)    { c.NoShift = false }
func twice(c *check.Config)     { c.Entries = []int{2, 1} }
func bothTwice(c *check.Config) { c.Entries = []int{2} }

// lasts asks for starvation without CHECKs, nor what they do.
func lasts(c *check.Config) {
	c.Options, c.Properties = map[string]int64{"check": 0}, []string{check.Starvation}
}

// forgets lets clients ask twice, also where forgetting costs exclusion.
func forgets(c *check.Config) { c.Amnesia, c.Properties = 1, []string{"sigma/p1", "sigma/p2"} }

// periodic is a with CHECKs, which models otherwise do without. RELEASEs answer
// them, as often as a CHECK arrives, so that the models are finite only when a
// RELEASE may arrive again too; a repeated one is indeed like one.
func periodic(a protocol.Algorithm[Message]) protocol.Algorithm[Message] {
	a.Idempotent = func(m Message) bool { return m.Kind == Check || m.Kind == Release }
	return a
}

// contended is a run of four servers under contention.
func contended(changes ...func(*sim.Config)) sim.Config {
	c := sim.Config{
		Config: protocol.Config{N: 4}, Clients: 6, Entries: []int{100}, Seed: 1,
		Lease: 50 * time.Millisecond, Patience: 50_000,
		Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond), Delay: sim.Exponential(time.Millisecond),
	}
	for _, f := range changes {
		f(&c)
	}
	return c
}

func crashing(c *sim.Config)    { c.CrashEvery = 500 * time.Millisecond }
func partitioned(c *sim.Config) { c.PartitionEvery = 300 * time.Millisecond }

// restarting has at most one memory loss in an epoch.
func restarting(c *sim.Config) {
	c.AmnesiaEvery, c.Think = 2*time.Second, sim.Exponential(100*time.Millisecond)
}

// fences runs fenced clients on servers that restart so often that exclusion
// cannot be had, and judges tokens and progress.
func fences(seeds uint64) mutant.Check {
	const eps = time.Millisecond
	return func() (string, error) {
		for seed := range seeds {
			c := sim.Config{
				Config:  protocol.Config{N: 4, Options: map[string]int64{"fence": FenceOn, "eps": int64(eps)}},
				Clients: 3, Entries: []int{100}, Seed: seed, Think: sim.Exponential(30 * time.Millisecond),
				ClockOffset: eps, AmnesiaEvery: 30 * time.Millisecond, Patience: 50_000,
			}
			r, err := sim.Run(Algorithm, c)
			if err != nil {
				return "", err
			}
			if r.ViolationsOf[history.Inversion]+r.ViolationsOf[history.Reuse] > 0 {
				return "fencing by simulation, tokens out of order", nil
			}
			if r.Entries != uint64(c.Clients*c.Entries[0]) {
				return mutant.Simulated(r.Violations[len(r.Violations)-1]), nil
			}
		}
		return "", nil
	}
}

func TestMutantsLiteral(t *testing.T) {
	simulate := func(changes ...func(*sim.Config)) mutant.Check {
		return mutant.Simulate(Literal, contended(changes...))
	}
	mutant.Test(t, mutant.Config{
		Share: 4,
		Checks: []mutant.Check{
			explore(Literal, 1),
			explore(Literal, 2),
			explore(Literal, 2, twice, fifo),
			explore(Literal, 2, crashes),
			explore(Literal, 2, cancels),
			explore(Literal, 1, bothTwice, cancels),
			explore(periodic(Literal), 1, checks, twice),
			tell(common(Literal)),
			explore(Literal, 3, fifo, large),
			simulate(),
			simulate(restarting),
			simulate(crashing),
			explore(periodic(Literal), 2, checks, large),
			explore(Literal, 2, twice, large),
		},
		Outside: outside("Client", "Server", "queue", "waiter", "rank", "view", "gossip", "newGossip", "share", "shortlist", "choice", "keeps", "alone", "newWaiter", "newDefault", "thrift"),
		Needed:  needed,
		Replace: append([]mutant.Replacement{
			mutant.Edit("line 4 forgotten",
				"c.section = protocol.InRem\n\tclear(c.resp)\n\tout.Broadcast(Message{Kind: Release, Time: old})",
				"c.section = protocol.InRem\n\tout.Broadcast(Message{Kind: Release, Time: old})"),
			mutant.Edit("line 11 without the timestamp",
				"count(c.resp, me, true) >= c.m {", countOwn),
			mutant.Edit("line 11 without the timestamp, and line 8 without its second part",
				`if r.client == c.id && r.time != c.timestamp { // line 8
		return
	}
	c.resp[j] = r                              // line 9
	if count(c.resp, request{}, false) < c.m { // line 10
		return
	}
	if count(c.resp, me, true) >= c.m {`, `c.resp[j] = r
	if count(c.resp, request{}, false) < c.m {
		return
	}
	if `+countOwn),
			mutant.Edit("line 11 without the timestamp, and no line 4",
				"if count(c.resp, me, true) >= c.m {", "if "+countOwn),
			mutant.Edit("line 11 without the timestamp, and no line 4",
				"c.section = protocol.InRem\n\tclear(c.resp)", "c.section = protocol.InRem"),
			mutant.Edit("lines 14-18: what was polled still counts",
				"Message{Kind: Inquiry, Time: c.timestamp})\n\t\t}\n\t}\n\tclear(c.resp)",
				"Message{Kind: Inquiry, Time: c.timestamp})\n\t\t}\n\t}"),
			mutant.Edit("line 20: no fresh timestamp on exit",
				"old := c.timestamp\n\tc.timestamp = c.fresh(now)", "old := c.timestamp"),
			mutant.Edit("line 22: RELEASE of the new timestamp", "Time: old}", "Time: max(old, c.timestamp)}"),
			mutant.Edit("lines 28 and 29 merged: what differs is deleted",
				"if t < stored.time { // line 28\n\t\t\treturn\n\t\t}\n\t\tif t > stored.time {",
				"if t != stored.time {"),
			mutant.Edit("line 31: a REQUEST of the owner is answered",
				"if s.owner.client == from {\n\t\t\treturn",
				"if s.owner.client == from {\n\t\t\ts.respond(from, out)\n\t\t\treturn"),
			mutant.Edit("line 38: a YIELD is not queued",
				"s.insert(me)\n\t\ts.dequeue(out)", "if len(s.queue) > 0 {\n\t\t\ts.dequeue(out)\n\t\t}"),
			mutant.Edit("line 45: every INQUIRY is answered",
				"if s.owner.client != from && s.owner != (request{}) {\n\t\t\ts.respond", "{\n\t\t\ts.respond"),
			mutant.Edit("lines 46-47: suspicion is an edge, of the owner only",
				"s.delete(s.stored(ev.From), out)",
				"if s.owner.client == ev.From {\n\t\t\ts.delete(s.owner, out)\n\t\t}"),
			mutant.Edit("line 54: the next owner is not told", "s.respond(s.owner.client, out)", ""),
			mutant.Edit("line 55: the last one of the queue comes first",
				"s.queue = slices.Delete(s.queue, 0, 1)\n\ts.respond(",
				"k := len(s.queue) - 1\n\ts.owner, s.queue = s.queue[k], s.queue[:k]\n\ts.respond("),
		}, toSupporters...),
		Survivors: map[string]string{
			"line 11 without the timestamp": "implied by line 4, which forgets the answers of former epochs, " +
				"and line 8, which drops those that come late; without either of them it is needed",
			"LiteralServer.onMessage: t < stored.time -> false": "line 28 alone: a late REQUEST finds its client " +
				"stored and is at most answered, as a late INQUIRY is; a late YIELD or RELEASE is of a request " +
				"that is neither owner nor queued; only to delete what differs, line 29, would be wrong",
			"LiteralServer.onMessage: stored != (request{}) -> true": "nil has timestamp 0, so that line 29 deletes " +
				"it, which does nothing: it is no request in the queue, and when it is the owner the queue is " +
				"empty by P1",
			"algorithm: m.Kind == Check -> false": idempotent,
		},
	})
}

const idempotent = "only the checker asks; without CHECKs it has none to repeat, and with them a RELEASE " +
	"must count as repeated too: see periodic"

var toSupporters = []mutant.Replacement{
	mutant.Edit("line 22: RELEASE to recorded supporters only",
		"clear(c.resp)\n\t\tout.Crit(0)", "out.Crit(0)"),
	mutant.Edit("line 22: RELEASE to recorded supporters only",
		"clear(c.resp)\n\tout.Broadcast(Message{Kind: Release, Time: old})",
		`for j, r := range c.resp {
		if (r == request{c.id, old}) {
			out.Send(protocol.ID(j), Message{Kind: Release, Time: old})
		}
	}
	clear(c.resp)`),
}

// RELEASE goes to all servers. Sent to recorded supporters only it leaves requests
// behind where a support was still on its way, or where the client waits in the
// queue. CHECK finds these, so that no property falls, and what is lost is time.
// TestMutantsLiteral, most of whose models have no CHECK, catches it.
func TestReleaseToSupporters(t *testing.T) {
	simulate := func(changes ...func(*sim.Config)) mutant.Check {
		c := contended(changes...)
		c.Options = map[string]int64{"check": int64(10 * time.Millisecond)}
		return mutant.Simulate(Literal, c)
	}
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			explore(periodic(Literal), 1, checks, twice),
			explore(periodic(Literal), 1, checks, cancels),
			explore(periodic(Literal), 2, checks, large),
			simulate(),
			simulate(restarting),
			simulate(crashing),
		},
		Outside: outside("LiteralClient", "LiteralServer", "Client", "Server", "queue", "waiter", "rank", "view", "gossip", "newGossip", "share", "shortlist", "choice", "keeps", "alone", "newWaiter", "newLiteral", "newDefault", "thrift",
			"algorithm", "request", "count", "setCheckTimer"),
		Replace:   toSupporters,
		Survivors: map[string]string{toSupporters[0].Name: "CHECK of a former epoch is answered by RELEASE"},
	})
}

// countOwn is the test of line 11 without the timestamp.
const countOwn = `func() (k int) {
	for _, r := range c.resp {
		if r.client == c.id {
			k++
		}
	}
	return k
}() >= c.m {`

func TestMutants(t *testing.T) {
	simulate := func(changes ...func(*sim.Config)) mutant.Check {
		return mutant.Simulate(Algorithm, contended(changes...))
	}
	mutant.Test(t, mutant.Config{
		Share: 4,
		Checks: []mutant.Check{
			explore(Algorithm, 1),
			explore(Algorithm, 1, tokens),
			explore(Algorithm, 2, twice, fifo),
			explore(Algorithm, 2),
			explore(Algorithm, 1, crashes, lapses),
			explore(periodic(Algorithm), 1, checks, bothTwice, cancels),
			explore(periodic(Algorithm), 1, checks),
			explore(Algorithm, 2, lasts, shifts),
			explore(Algorithm, 1, forgets, shifts),
			tell(common(Algorithm)),
			tell(extensions),
			tell(fencing),
			tell(refreshes),
			tell(drains),
			tell(servers),
			simulate(),
			simulate(restarting),
			simulate(crashing),
			simulate(partitioned),
			fences(5),
			algotest.Examine(Algorithm, algotest.Options{Sizes: []int{4}, Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "no property", "Events": "done above",
			}}),
			tell(sharings),
			tell(downgrades),
			tell(severals),
			tell(hostile[:2]),
			tell(promises),
			paced,
			explore(Algorithm, 2, rooms, shifts, large),
			explore(Algorithm, 2, falling, shifts, large),
			explore(Algorithm, 2, either, shifts, large),
			explore(Algorithm, 2, choosers, shifts, large),
			begun(explore(Algorithm, 4, lowering, oneLoss, shifts, large)),
			explore(Algorithm, 3, readers, shifts, large),
			begun(explore(Algorithm, 3, sharing, oneLoss, shifts, large)),
			mutant.Simulate(Algorithm, contended(drawn)),
			mutant.Simulate(Algorithm, contended(drawn, crashing)),
			mutant.Simulate(Algorithm, contended(drawnTwice)),
			mutant.Simulate(Algorithm, contended(drawn, restarting)),
			explore(periodic(Algorithm), 2, rooms, checks, shifts, large),
			explore(Algorithm, 2, crashes, shifts, large),
			explore(Algorithm, 2, tokens, fifo, large),
			explore(Algorithm, 2, lapses, shifts, large),
			tell(promises),
			explore(Algorithm, 2, promising, third, never, shifts, large),
			begun(explore(Algorithm, 4, promisedNext, drained, shifts)),
			begun(explore(Algorithm, 2, promisingTokens, shifts, large)),
			handedOver,
			tell(heads),
			tell(thrifts),
			explore(Algorithm, 3, never, thrifty),
		},
		Outside: outside(append([]string{
			"LiteralClient", "LiteralServer", "newLiteral", "count", "fresh", "setCheckTimer", "request",
		}, promiseFunctions...)...),
		Needed: needed,
		Replace: append([]mutant.Replacement{
			mutant.Edit("line 4 forgotten",
				"view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, response: c.servers[j].response}"),
			mutant.Edit("lines 14-18: what was polled still counts",
				"Message{Kind: Inquiry, Time: c.time})\n\t\t}\n\t\tc.servers[j].response = response{}",
				"Message{Kind: Inquiry, Time: c.time})\n\t\t}"),
			mutant.Edit("line 16: the REQUEST is repeated to a life that has it",
				"\t\tdefault:\n\t\t\tout.Send(protocol.ID(j), Message{Kind: Inquiry",
				"\t\tcase c.me().before(s.request):\n\t\t\tc.rerequest(j, Again, out)\n"+
					"\t\tdefault:\n\t\t\tout.Send(protocol.ID(j), Message{Kind: Inquiry"),
			mutant.Edit("lines 28 and 29 merged: what differs is deleted",
				"if m.Time < stored.time { // line 28\n\t\t\treturn\n\t\t}\n\t\tif m.Time > stored.time {",
				"if m.Time != stored.time {"),
			mutant.Edit("lines 46-47: suspicion is an edge, of the owner only",
				"s.delete(e, farewell{}, ev.Now, out)\n\tcase protocol.Drain",
				"if s.owner.client == ev.From {\n\t\t\ts.delete(e, farewell{}, ev.Now, out)\n\t\t}\n\tcase protocol.Drain"),

			mutant.Edit("numbers: what was given back is not noted", "c.servers[j].given = serial", ""),
			mutant.Edit("numbers: those of the last epoch count",
				"view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, given: c.servers[j].given}"),
			mutant.Edit("numbers: a REQUEST tells none", "Serial: c.servers[j].given, Stage: s", "Stage: s"),
			mutant.Edit("numbers: one for all supports of a request", "e.serial++", "e.serial = 1"),
			mutant.Edit("numbers: who waits cannot tell its own",
				"w.serial = max(w.serial, known.serial)", "w.serial = known.serial"),
			mutant.Edit("numbers: who waits lowers its own",
				"w.serial = max(w.serial, known.serial)", ""),
			mutant.Edit("numbers: an owner that gave back more is numbered from its own",
				"newWaiter(e, groups, m.After, false)", "newWaiter(*own, groups, m.After, false)"),

			mutant.Edit("incarnations: a server does not tell its own", "Time: s.owner.time, Inc: s.inc, Group", "Time: s.owner.time, Group"),
			mutant.Edit("incarnations: a server does not know its own", "s.inc = ev.Arg", ""),
			mutant.Edit("incarnations: what the dead one said counts",
				"= inc, false\n\tc.lose(j, now, out)", "= inc, false"),
			mutant.Edit("incarnations: a waiting client does not ask again",
				"c.rerequest(j, Again, out)\n\tcase c.section == protocol.InCrit", "case c.section == protocol.InCrit"),

			mutant.Edit("refresh: who is inside waits its turn",
				"w.mode |= known.mode & inside", "w.mode &^= inside"),
			mutant.Edit("refresh: a late REQUEST takes a holder back into line",
				"w.mode |= known.mode & inside", ""),
			mutant.Edit("drain: a client never trusts that life again", "view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, draining: c.servers[j].draining}"),
			mutant.Edit("drain: a client does not trust the next life either",
				"s.inc, s.draining = inc, false", "s.inc = inc"),
			mutant.Edit("drain: a client takes it for the life that it knew",
				"s.inc, s.draining = inc, true", "s.draining = true"),
			mutant.Edit("drain: a client counts what that server said",
				"inc, true\n\tc.lose(j, now, out)", "inc, true"),
			mutant.Edit("drain: a server that drains counts as one that gives", "c.count((*view).gives) < c.m", "c.count(func(s *view) bool { return s.inc != 0 }) < c.m"),
			mutant.Edit("drain: whoever gives up says that too few servers give", " && c.count((*view).gives) < c.m {", " {"),
			mutant.Edit("drain: who waits is not told", "if !w.promised() {\n\t\t\ts.turnAway(w.client, out)", "if !w.promised() {"),
			mutant.Edit("drain: who waits is not forgotten",
				"*s.queue = queue{shared: s.queue.shared}", ""),

			mutant.Edit("leases: a lapsed one still delivers", "c.servers[j].inc = 0", ""),
			mutant.Edit("leases: a lapsed one still supports",
				"c.servers[j].inc = 0\n\tc.lose(j, now, out)", "c.servers[j].inc = 0"),
			mutant.Edit("leases: n-m live supports are enough", "len(c.servers)-c.m+1", "len(c.servers)-c.m"),
			mutant.Edit("leases: n-m+1 live supports are not enough", "len(c.servers)-c.m+1", "len(c.servers)-c.m+2"),
			mutant.Edit("leases: an ejected holder keeps what it knew",
				"c.servers[j].response, c.servers[j].given = response{}, 0", "c.servers[j].given = 0"),

			mutant.Edit("deferral: poll at once",
				"c.resting = true\n\t\tout.SetTimer(retryTimer, c.backOff, c.backOff)", "c.resolve(out)"),
			mutant.Edit("deferral: the pause never grows",
				"c.backOff = min(2*c.backOff, maxBackOff*c.delay)", ""),
			mutant.Edit("deferral: the pause grows for ever",
				"min(2*c.backOff, maxBackOff*c.delay)", "2 * c.backOff"),
			mutant.Edit("deferral: a new try keeps the pause",
				"c.backOff, c.patience = c.delay, safetyDelay*c.delay\n\tc.request", "c.patience = safetyDelay * c.delay\n\tc.request"),
			mutant.Edit("deferral: no rest before the first support that is counted",
				"c.backOff, c.patience = c.delay, safetyDelay*c.delay\n\tc.request", "c.backOff = c.delay\n\tc.request"),
			mutant.Edit("deferral: no rest ends by itself",
				"c.patience = safetyDelay * c.delay\n\t\t}\n\t\tout.SetTimer(retryTimer, c.patience, 0)",
				"c.patience = safetyDelay * c.delay\n\t\t}"),
			mutant.Edit("deferral: a rest that follows on another never ends",
				"c.reask(out)\n\t\t}\n\t\tout.SetTimer(retryTimer, c.patience, 0)", "c.reask(out)\n\t\t}"),
			mutant.Edit("deferral: a server that refused is asked again while it is known to refuse",
				"s.refused = false\n\t\t\tc.rerequest", "c.rerequest"),
			mutant.Edit("deferral: rests never grow", "c.patience = min(2*c.patience, maxSafety*c.delay)", ""),
			mutant.Edit("deferral: rests grow for ever", "min(2*c.patience, maxSafety*c.delay)", "2 * c.patience"),
			mutant.Edit("deferral: a new support shortens no rest", "c.patience = safetyDelay * c.delay", ""),
			mutant.Edit("again: at once",
				"out.SetTimer(retryTimer, c.backOff, c.backOff)\n\tc.backOff", "c.request(0, now, out)\n\tc.backOff"),
			mutant.Edit("again: the pause never grows", "c.backOff = min(2*c.backOff, safetyDelay*c.delay)", ""),
			mutant.Edit("again: the pause grows for ever", "min(2*c.backOff, safetyDelay*c.delay)", "2 * c.backOff"),
			mutant.Edit("deferral: a holder polls", "if c.later == 0 {\n\t\tout.StopTimer(retryTimer)\n\t}", ""),
			mutant.Edit("deferral: the remainder section polls",
				"out.StopTimer(retryTimer)\n\tout.StopTimer(tokenTimer)\n\tout.GiveUp",
				"out.StopTimer(tokenTimer)\n\tout.GiveUp"),

			mutant.Edit("TryOnce: the next try gives up too",
				"c.section, c.once, c.rounds, c.clock = protocol.InRem, false, 0, 0", "c.section, c.rounds, c.clock = protocol.InRem, 0, 0"),
			mutant.Edit("TryOnce: the next one polls less",
				"c.section, c.once, c.rounds, c.clock = protocol.InRem, false, 0, 0", "c.section, c.once, c.clock = protocol.InRem, false, 0"),
			mutant.Edit("TryOnce: the next one polls less after an entry",
				"c.section, c.once, c.rounds = protocol.InCrit, false, 0", "c.section, c.once = protocol.InCrit, false"),

			mutant.Edit("timestamps: Lamport's rule forgotten", "c.last = max(c.last, m.Time)", ""),
			mutant.Edit("timestamps: who was refused repeats its own", "c.clock, c.last = clock, 0", "c.last = 0"),
			mutant.Edit("timestamps: one that was refused counts", "c.clock, c.last = clock, 0", "c.clock = clock"),
			mutant.Edit("timestamps: a foreign clock serves the next try",
				"c.section, c.once, c.rounds, c.clock = protocol.InRem, false, 0, 0", "c.section, c.once, c.rounds = protocol.InRem, false, 0"),
			mutant.Edit("timestamps: the last one is kept until the clock is there", "min(int64(c.last)-now+1, longestWait)", "int64(c.last)-now+1"),
			mutant.Edit("timestamps: far ahead is behind", "time > uint64(now+2*s.terms.Value().eps)", "int64(time) > now+2*s.terms.Value().eps"),
			mutant.Edit("timestamps: refusals of the last epoch count",
				"view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, refused: c.servers[j].refused}"),

			mutant.Edit("groups: owners conflict", "if s.queue.waiters[i].takes(g) {", "if true {"),
			mutant.Edit("groups: any group shares with any other", "if s.queue.waiters[i].takes(g) {", "if s.queue.waiters[i].group() != 0 {"),
			mutant.Edit("groups: who is stuck gives nothing back", "case c.wants() != (choice{}):", "case false:"),
			mutant.Edit("groups: nobody closes a session", "&& (begins || s.queue.waiters[i].takes(g)); {", "; {"),
			mutant.Edit("groups: a new session takes in the first ones only", "(begins || s.queue.waiters[i].takes(g))", "s.queue.waiters[i].takes(g)"),
			mutant.Edit("groups: a session takes in later requests by a clock that is ahead", "began: min(uint64(now), newest+uint64(2*s.terms.Value().eps))", "began: uint64(now) + 0*newest"),
			mutant.Edit("groups: a session takes in later requests", "began: min(uint64(now), newest+uint64(2*s.terms.Value().eps))", "began: newest+uint64(2*s.terms.Value().eps)"),
			mutant.Edit("groups: answers for all groups are answers for one", "return sideOf(s.group)", "return sideOf(1)"),
			mutant.Edit("groups: one owner hears that somebody waits", "for e := range s.owners() {\n\t\t\ts.tell(e, out)\n\t\t}", "s.tell(s.owner, out)"),
			mutant.Edit("groups: owners hear of each that waits", "s.group() != 0 && s.queue.len() == 1", "s.group() != 0"),
			mutant.Edit("groups: a support does not say that somebody waits", "m.Stage = Wanted", ""),
			mutant.Edit("groups: RECALL goes to one owner", "for e := range s.owners() {\n\t\t\ts.recall(e, out)\n\t\t}", "s.recall(s.owner, out)"),
			mutant.Edit("groups: CHECK goes to one owner",
				"some, from := s.sharers(), 0", "some, from := s.sharers()[:0], 0"),
			mutant.Edit("groups: CHECK goes to the same ones of many, time and again", "s.queue.shared.asked = end % len(some)", "s.queue.shared.asked = 0"),
			mutant.Edit("groups: CHECK goes to many at once", "from+crowd, len(some)", "from+2*crowd, len(some)"),
			mutant.Edit("groups: many are asked no sooner again", "s.terms.Value().period/int64(s.turns())", "s.terms.Value().period"),
			mutant.Edit("groups: a yielded support wants to be alone", "mode: s.group(), head: m.After}", "head: m.After}"),
			mutant.Edit("groups: tokens are ordered within one", "return sideOf(g).client", "return c"),
			mutant.Edit("groups: a session has no end", "s.owner, s.queue.shared = entry{}, nil", "s.owner = entry{}"),
			mutant.Edit("groups: who asks again is alone", "m.Group, m.Token, m.Inc = groups[0], groups[1], groups[2]", "if m.Stage == First {\n\t\tm.Group, m.Token, m.Inc = groups[0], groups[1], groups[2]\n\t}"),
			mutant.Edit("groups: the next try wants the same", "c.groups, c.head = \"\", 0", "c.head = 0"),

			mutant.Edit("several: supports of all groups count together", "return s.supports() && (s.group == group || alone(s.group))", "return s.supports()"),
			mutant.Edit("several: nothing is chosen before the first support is given back", "case c.groups.Len() > 1:\n\t\t// Before", "case false:\n\t\t// Before"),
			mutant.Edit("several: the first of two with as many supports is chosen", "k >= supporters", "k > supporters"),
			mutant.Edit("several: servers are not told what is chosen", "case !all:\n\t\t\tcontinue\n\t\t}\n\t\tout.Send(protocol.ID(j), c.lower())", "case !all:\n\t\t\tcontinue\n\t\t}"),
			mutant.Edit("several: what is given back counts", "s.given, s.response = s.serial, response{}", "s.given = s.serial"),
			mutant.Edit("several: what is given back is not noted", "s.given, s.response = s.serial, response{}", "s.response = response{}"),
			mutant.Edit("several: a late support in another group counts", "r.request == c.me() && !c.takes(m.Group)", "false"),
			mutant.Edit("several: a late support in another group is kept", "s.given = max(s.given, m.Serial)\n\t\tout.Send(protocol.ID(j), c.lower())", "s.given = max(s.given, m.Serial)"),
			mutant.Edit("several: a late support in another group is not noted", "s.given = max(s.given, m.Serial)", ""),
			mutant.Edit("several: an owner stays in another group", "case !alone(s.group()):\n\t\ts.yield(w, now, out)", "case !alone(s.group()):"),
			mutant.Edit("several: who has chosen waits for all", "known.groups() != w.groups()", "known.group() != w.group()"),
			mutant.Edit("several: a REQUEST names the first", "m.Group, m.Token, m.Inc = groups[0], groups[1], groups[2]", "m.Group = groups[0]"),
			mutant.Edit("several: a server knows the first", "w.others = &[2]uint64{groups[1], groups[2]}", ""),
			mutant.Edit("several: a server knows two", "w.others = &[2]uint64{groups[1], groups[2]}", "w.others = &[2]uint64{groups[1]}"),
			mutant.Edit("several: whoever asks an owner again wants what it had", "s.yield(newWaiter(e, groups, m.After, false), now, out)",
				"s.yield(waiter{entry: e, mode: s.group(), head: m.After}, now, out)"),
			mutant.Edit("several: whoever chose among several groups has no head start", "Group: c.wants()[0], After: c.head}", "Group: c.wants()[0]}"),
			mutant.Edit("several: an owner that chooses another group has no head start", "w := waiter{entry: stored, mode: m.Group, head: m.After}", "w := waiter{entry: stored, mode: m.Group}"),
			mutant.Edit("several: an owner that chooses another group gets its support back in that of the session", "case ok && w.group() == 0 && w.precedes(h)", "case ok && w.precedes(h)"),

			mutant.Edit("head start: the queue knows none", "w.time + protocol.MaxHeadStart - w.head", "w.time"),
			mutant.Edit("head start: who asks again has none", "m.Kind, m.Time, m.After = Request, c.time, c.head", "if m.Kind, m.Time = Request, c.time; m.Stage == First {\n\t\tm.After = c.head\n\t}"),
			mutant.Edit("head start: a YIELD says none", "Serial: serial, After: c.head}", "Serial: serial}"),
			mutant.Edit("head start: whoever gives a support back has none", "mode: s.group(), head: m.After}", "mode: s.group()}"),
			mutant.Edit("head start: whoever gave a support back before it asks again has none",
				"s.yield(newWaiter(e, groups, m.After, false), now, out)", "s.yield(newWaiter(e, groups, 0, false), now, out)"),
			mutant.Edit("head start: a downgrade loses it", "w.head = known.head", ""),
			mutant.Edit("head start: a session that began before takes it in", "w.time <= s.queue.shared.began", "w.time-w.head <= s.queue.shared.began"),
			mutant.Edit("head start: no promise is asked back for one", "return w.compare(heir) < 0", "return w.before(heir.request)"),
			mutant.Edit("head start: it outlives the try", "c.groups, c.head = \"\", 0", "c.groups = \"\""),
			mutant.Edit("thrift: the others are asked by chance only", "out.SetTimer(retryTimer, askAfter*c.delay, 0)", ""),
			mutant.Edit("thrift: the others hear RELEASEs", "c.toAsked(m, out)\n\t\tc.hand", "out.Broadcast(m)\n\t\tc.hand"),
			mutant.Edit("thrift: the next try has not asked them either", "c.resting, c.later = 0, 0, false, 0", "c.resting = 0, 0, false"),
			mutant.Edit("thrift: whoever lacks a support waits for the timer", "if c.later != 0 && c.lacks() {\n\t\tc.askRest(out)\n\t}", ""),
			mutant.Edit("thrift: a new life is asked twice", "s.inc = 0 // it is asked as one that we know\n", ""),
			mutant.Edit("thrift: a new life keeps the timer", "s.inc = 0 // it is asked as one that we know\n\tc.askRest(out)\n", "c.later &^= 1 << j\n"),
			mutant.Edit("thrift: whoever loses a support waits for the timer", "c.servers[j].response = response{}\n\tc.askRest(out)", "c.servers[j].response = response{}"),
			mutant.Edit("thrift: whoever is refused waits for the timer", "c.servers[j].refused = true\n\tc.askRest(out)", "c.servers[j].refused = true"),
			mutant.Edit("thrift: who has to have a token recorded does not ask them", "case !sure && c.expects():\n\t\tc.askRest(out)", "case !sure && c.expects():"),
			mutant.Edit("thrift: who is inside asks as one that waits", "stage = Inside", ""),
			mutant.Edit("keep: it is alone with all who keep", "return kept | uint64(client)%kept", "return kept | uint64(0*client)"),
			mutant.Edit("keep: tokens beside it are its own", "case most+c.spare() < c.time:", "case most < c.time:"),
			mutant.Edit("keep: recorded tokens are in its way", "c.token = 1 + most + c.spare()", "c.token = 1 + most"),
			mutant.Edit("keep: a clock that was set back gives them again", "alone(s.group()) && x != 0", "s.group() == 0 && x != 0"),
			mutant.Edit("fencing: the token is one that somebody had", "c.token = 1 + most + c.spare()", "c.token = most + c.spare()"),
			mutant.Edit("downgrade: servers are not told", "out.Broadcast(c.lower())", ""),
			mutant.Edit("downgrade: the next entry tells of it, too", "c.relaxed = false\n", ""),
			mutant.Edit("downgrade: a request that asks again says that it is alone", "c.groups, c.relaxed = protocol.Groups(g), true", "c.relaxed = true"),
			mutant.Edit("downgrade: who waits for the group waits on", "s.begin(m.Group, now, out)\n\t\tif", "s.queue.shared = &shared{group: m.Group}\n\t\tif"),
			mutant.Edit("downgrade: who waits for the group waits behind the first one that does not",
				"s.letIn(true, now, out)", "s.letIn(s.owner == (entry{}), now, out)"),
			mutant.Edit("downgrade: tokens beside it may be smaller", "rest: s.others(sideOf(group).client, now)", "rest: 0 * s.others(sideOf(group).client, now)"),
			mutant.Edit("downgrade: it does not hear that somebody waits", "s.tell(stored, out)", ""),
			mutant.Edit("downgrade: its request goes on waiting for its own group", "s.wait(w, now, out)\n\t\t}", "}"),
			mutant.Edit("downgrade: those who watch do not hear of it", "out.Joined(stored.client, stored.time, named(m.Group))", ""),

			mutant.Edit("fencing: the largest reports are chosen",
				"cmp.Compare(c.servers[i].token, c.servers[j].token)", "cmp.Compare(c.servers[j].token, c.servers[i].token)"),
			mutant.Edit("fencing: no wait is longer than a rest", "6*c.eps", "min(6*c.eps, safetyDelay*c.delay)"),
			mutant.Edit("fencing: a clock far behind is waited for", "min(wait, 6*c.eps)", "wait"),
			mutant.Edit("fencing: a clock far behind is waited for as long as a rest", "6*c.eps", "max(6*c.eps, safetyDelay*c.delay)"),
			mutant.Edit("fencing: the next timestamp may be below the last token",
				"c.last = max(c.last, c.token)\n\t\tc.enter", "c.enter"),
			mutant.Edit("fencing: the last epoch's records count",
				"view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, recorded: c.servers[j].recorded}"),
			mutant.Edit("fencing: the last epoch's servers are asked",
				"view{inc: c.servers[j].inc}", "view{inc: c.servers[j].inc, asked: c.servers[j].asked}"),
			mutant.Edit("fencing: a token's timer outlives the entry",
				"out.StopTimer(tokenTimer)\n\tout.Crit", "out.Crit"),
			mutant.Edit("fencing: a token's timer outlives the try",
				"out.StopTimer(tokenTimer)\n\tout.GiveUp", "out.GiveUp"),
			mutant.Edit("fencing: a support records nothing",
				"case FenceOn, FenceNoFloor:\n\t\ts.raise(s.fenced(e.client), e.time, now, out)", "case FenceOn, FenceNoFloor:"),
			mutant.Edit("fencing: RECORDED is a lie", "s.raise(s.fenced(from), m.Token, now, out)", ""),
			mutant.Edit("fencing: tokens are remembered for ever",
				"out.SetTimer(forgetTimer, s.terms.Value().memory, 0)", ""),
			mutant.Edit("fencing: the second largest token is lost",
				"[2]uint64{x, s.tokens[0]}", "[2]uint64{x, 0}"),
			mutant.Edit("fencing: a floor at the clock", " + 4*t.eps)", ")"),
			mutant.Edit("fencing: a life that began by a wrong clock", "min(int64(s.inc), now)", "int64(s.inc)"),
			mutant.Edit("fencing: a client that forgot its token may have a smaller one",
				"known := s.report(e.request, now)", "known := s.others(e.client, now)"),
			mutant.Edit("fencing: the first quorum decides", "case !sure && c.expects():", "case false:"),
			mutant.Edit("fencing: a token from the future counts for ever",
				"return now > 0 && x > uint64(now+4*s.terms.Value().eps)", "return false"),
			mutant.Edit("fencing: tokens from the future push others out",
				"s.tokens[1] = max(s.others(nobody, now), x)", ""),
			mutant.Edit("fencing: a token that was refused is asked for again", "c.last = max(c.last, c.token)\n\t\tc.again", "c.again"),
			mutant.Edit("fencing: the first token replaces the floor",
				"s.largest, s.tokens[0] = nobody, s.floor(now)",
				"s.largest = nobody"),
		}, refreshEdits...),
		Survivors: map[string]string{
			"shortlist: wanted.Len() == 1 -> false": "one group is a shortlist already; to make it again takes time",
			"Server.wait: w.group() != 0 -> true":   "a server that has an owner admits nobody who is to be alone; to ask takes time",
			"Client.lose: c.section == protocol.InTry -> true": "elsewhere the client knows no answer, and finds " +
				"neither m supports nor a split",
			"Server.onMessage: stored != (entry{}) -> true": "nil has timestamp 0, so that line 29 deletes it, " +
				"which does nothing",
			"queue.find: q == nil || q.index == nil -> true":               "finds the same, in a long queue more slowly",
			"Client.toAsked: c.later == 0 -> false":                        "the same messages one by one take longer",
			"Client.evaluate: c.later != 0 dropped":                        "there is nobody to ask then; to look takes time",
			"Client.split: slices.Contains(known, p) -> false":             "a side is looked at again and again, with the same result",
			"queue.insert: i > 0 && w.compare(q.waiters[i-1]) < 0 -> true": "finds the same place, more slowly",
			"queue.insert: w.compare(q.waiters[i-1]) < 0 dropped":          "finds the same place, more slowly",
			"algorithm: m.Kind == Check -> false":                          idempotent,
		},
	})
}
