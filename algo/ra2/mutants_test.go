package ra2

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

func TestMutants(t *testing.T) {
	small := func(o map[string]int64, wants [][]protocol.Groups, entries ...int) check.Config {
		return check.Config{
			Config: protocol.Config{N: len(wants), Options: o}, Entries: entries, Wants: wants, MaxMemory: 512 << 20,
			NoShift: true, // so that a property is violated, and not the claim about counters
		}
	}
	model := func(o map[string]int64, wants [][]protocol.Groups, entries ...int) mutant.Check {
		return mutant.Model(Algorithm, small(o, wants, entries...))
	}
	alike := small(nil, [][]protocol.Groups{{"1"}, {"1"}}, 1)
	alike.Properties = []string{check.ConcurrentEntry}
	step := func(number uint32, in protocol.Input) func() {
		return func() {
			p := newProcess(0, protocol.Config{N: 2}).(*Process)
			p.number = number
			var out protocol.Out[Message]
			p.Step(protocol.Event[Message]{Input: in}, &out)
		}
	}
	told := func(story func() string) mutant.Check { return func() (string, error) { return story(), nil } }
	entry := with("invite", InviteOnEntry)
	mutant.Test(t, mutant.Config{
		Share: 3,
		Checks: []mutant.Check{
			model(nil, [][]protocol.Groups{{"!w", "1", "2"}, {"!w", "1", "2"}}, 2),
			model(nil, mixed, 1),
			model(entry, mixed, 1),
			mutant.Model(algotest.Fenced(Algorithm), small(nil, [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, 2, 1, 1)),
			mutant.Model(algotest.Fenced(Algorithm), small(nil, [][]protocol.Groups{{"!w", "1"}, {"!w", "1"}}, 2)),
			mutant.Model(Algorithm, alike),
			model(entry, [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, 1, 2, 1),
			model(nil, [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, 2, 1, 1),
			mutant.Model(twins(), check.Config{
				Config: protocol.Config{N: 3}, Wants: [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, MaxMemory: 512 << 20,
			}),
			mutant.Panics("ra2: ", step(0, protocol.Input{Kind: protocol.Try, Data: "a,b"})),
			mutant.Panics("ra2: ", step(1<<32-1, protocol.Input{Kind: protocol.Try, Data: "a"})),
			counts,
			// What only the memory of a process shows, not its encoding.
			algotest.Examine(Algorithm, algotest.Options{Allocations: 0.01, Skip: map[string]string{
				"Exhaustive": "done above", "Events": "done above",
			}}),
			mutant.Simulate(Algorithm, sim.Config{
				Config: protocol.Config{N: 8}, Entries: []int{100}, Groups: 3, Delay: sim.Exponential(time.Millisecond),
				Think: sim.Exponential(time.Millisecond), Hold: sim.Exponential(time.Millisecond),
			}),
			told(synchronization), told(invitations), told(followers), told(spared), told(choices), told(tells), told(knows), told(parts),
			model(nil, [][]protocol.Groups{{"1"}, {"1"}, {"1"}}, 1),
			mutant.Reduced(Algorithm, check.Config{Config: protocol.Config{N: 2}, Wants: [][]protocol.Groups{{"!w"}, {"1"}}}, 27),
			mutant.Reduced(Algorithm, small(entry, [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, 1), 4874),
			mutant.Reduced(Algorithm, check.Config{Config: protocol.Config{N: 2}, Wants: [][]protocol.Groups{{"1", "2"}, {"1"}}}, 78),
		},
		Survivors: map[string]string{
			"Process.enter: !p.leads dropped":              "a follower does not look at the time of its request",
			"listed: len(list) == 0 -> false":              "a shortcut: a part of nothing tells nothing",
			"vector.forget: v.self != nobody -> true":      "a shortcut: it begins a page more often",
			"vector.merge: made <= v.known[r.by] -> false": "a shortcut: to look at what is known changes nothing",
		},
		Outside: map[string]string{
			"choice":   "what an option is, not the machine",
			"oneGroup": "a property, not the machine", "counted": "a property, not the machine",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("a leader does not heed the vector", "p.missing == 0 && !p.obstructed()", "p.missing == 0"),
			mutant.Edit("a follower does not reply a second time", "(follows || p.deferred.Has(j))", "(follows && false || p.deferred.Has(j))"),
			mutant.Edit("any START is followed", "p.section == protocol.InTry && m.Number == p.number {\n\t\tp.enter(leader", "p.section == protocol.InTry {\n\t\tp.enter(leader"),
			mutant.Edit("any REPLY counts", "m.Number == p.number && !p.replied", "!p.replied"),
			mutant.Edit("a newer request ends nothing", "number > heard || number == heard && p.excludes(protocol.ID(j))", "number > heard || p.excludes(protocol.ID(j))"),
			mutant.Edit("a REPLY does not say that the sender is out", "p.open.Remove(j)", ""),
			mutant.Edit("a REPLY does not tell the vector", "p.granted.merge(m.Grants)\n\tif p.section == protocol.InTry && m.Number == p.number && ", "if p.section == protocol.InTry && m.Number == p.number && "),
			mutant.Edit("a START does not tell the vector", "p.granted.merge(m.Grants)\n\tif p.section == protocol.InTry && m.Number == p.number {", "if p.section == protocol.InTry && m.Number == p.number {"),
			mutant.Edit("who invites does not record it", "p.granted.set(p.granted.write(Grant{uint32(j), number}))", ""),
			mutant.Edit("followers invite, too", "if p.leads {\n\t\tp.lead(out)\n\t}", "p.lead(out)"),
			mutant.Edit("a follower has the token of its own request", "Stamp{Time: time, ID: leader}.Number", "Stamp{Time: p.request, ID: p.id}.Number"),
			mutant.Edit("whoever comes while a leader is inside has the first token", "Time: p.request, Grants", "Grants"),
			mutant.Edit("a leader has no token", "p.enter(p.id, p.request, out)", "p.enter(p.id, 0, out)"),
			mutant.Edit("nobody is asked again after a REQUEST", "\tdefault:\n\t\tp.reply(j, out)\n\t}\n\tp.leadIfPermitted(out)", "\tdefault:\n\t\tp.reply(j, out)\n\t}"),
			mutant.Edit("onRequest does not merge the clock", "p.clock = max(p.clock, time)", ""),
			mutant.Edit("onRequest takes over any clock", "p.clock = max(p.clock, time)", "p.clock = time"),
			mutant.Edit("onRequest does not count", "p.heard[j]++", ""),
			mutant.Edit("try does not advance the clock", "p.clock++", ""),
			mutant.Edit("try does not count", "p.number++", ""),
			mutant.Edit("try waits for one REPLY less", "uint32(len(p.heard)-1)", "uint32(max(len(p.heard)-2, 0))"),
			mutant.Edit("enter remembers who has replied", "p.replied.Clear()\n\tout", "out"),
			mutant.Edit("exit remembers REPLYs", "p.deferred.Clear()\n\tp.group = \"\"", "p.group = \"\""),
			mutant.Edit("exit keeps the group", "p.deferred.Clear()\n\tp.group = \"\"", "p.deferred.Clear()"),
			mutant.Edit("exit stays a leader", "p.section, p.leads = protocol.InRem, false", "p.section = protocol.InRem"),
			mutant.Edit("completed counts the request that is open", "return p.number - 1", "return p.number"),
			mutant.Edit("a message tells everything again", "v.told[j] = uint32(to)", "_ = to"),
			mutant.Edit("a part of which something is known is known", "made := r.before + r.to", "made := r.before + r.from + 1"),
			mutant.Edit("pages are not counted on", "v.page = &page{v.self, v.made, ", "v.page = &page{v.self, 0, "),
			mutant.Edit("what was known before LoadState is known", "clear(v.known)", ""),
			mutant.Edit("parts grow that have been told", "v.frozen = to", ""),
			mutant.Edit("parts grow that were told before compact", "v.frozen = len(v.log)\n\tv.moved[len(old)] = uint32(v.frozen)", "v.moved[len(old)] = uint32(len(v.log))"),
			mutant.Edit("set leaves the old change alive", "v.live[v.at[c.Of]]--", ""),
			mutant.Edit("append remembers what was live", "v.live[place] = 0", ""),
			mutant.Edit("compact does not move what was told", "v.told[j], v.at[j] = v.moved[v.told[j]], v.moved", "v.at[j] = v.moved"),
			mutant.Edit("compact does not move where changes are", "v.told[j], v.at[j] = v.moved[v.told[j]], v.moved[v.at[j]]", "v.told[j] = v.moved[v.told[j]]"),
			mutant.Edit("renew uses memory again", "v.log, v.memory = v.memory[:0:size], v.memory[size:]", "v.log = v.memory[:0:size]"),
		},
	})
}
