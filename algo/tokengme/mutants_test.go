package tokengme

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func storyOf(tell func()) mutant.Check { return func() (string, error) { return told(tell), nil } }

// Each guard removed once, and each mistake that one makes, reading the paper.
func TestMutants(t *testing.T) {
	of := func(a protocol.Algorithm[Message], c check.Config) mutant.Check {
		c.NoShift = true // so that a property is violated, and not the claim about counters
		c.MaxMemory, a.Bounds = 64<<20, nil
		return mutant.Model(a, c)
	}
	cancel := func(c check.Config, times int) check.Config { c.Cancel = times; return c }
	homes := func(per int64, c check.Config) check.Config { c.Options = map[string]int64{"per": per}; return c }
	entries := func(c check.Config, entries ...int) check.Config { c.Entries = entries; return c }
	r, w := readWrite[1:], readWrite[:1]
	concurrent := model(3, nil, 1)
	concurrent.Wants, concurrent.Properties = [][]protocol.Groups{{"1"}, {"2"}, {"2"}}, []string{check.ConcurrentEntry}
	fifo := model(3, nil, 3, 2, 1)
	fifo.Wants, fifo.Options = [][]protocol.Groups{{"1"}, {"2"}, {"3"}}, map[string]int64{"selection": FirstCome}
	late := model(3, nil, 2, 1, 1)
	late.Wants = [][]protocol.Groups{twoGroups, {"1"}, {"2"}}
	three := form{clients: true, several: true, bounded: true}.algorithm()
	var checks []mutant.Check
	for _, c := range overlapping() {
		checks = append(checks, mutant.Model(ordered(WithClients), c))
	}
	checks = append(checks,
		of(Algorithm, concurrent),
		of(Bounded, model(2, twoGroups, 2)),
		of(algotest.Fenced(Algorithm), model(2, readWrite, 2)),
		of(algotest.Fenced(Algorithm), model(3, twoGroups, 1)),
		of(WithClients, clients(readWrite, readWrite, readWrite)),
		of(WithClients, homes(3, clients(r, w, w, r))),
		of(WithClients, homes(2, entries(clients(r, w, r), 1, 1, 3))),
		of(WithClients, cancel(entries(clients(readWrite, readWrite), 2, 1), 1)),
		of(Algorithm, model(2, twoGroups, 3)),
		of(Algorithm, model(3, twoGroups, 1)),
		of(Algorithm, model(3, readWrite, 1)),
		of(WithClients, cancel(clients(readWrite, readWrite, readWrite), 2)),
	)
	for _, tell := range []func(){
		messagesByStory, exclusiveByStory, admissionByStory, severalByStory, clientsByStory, selectionByStory, longestByStory,
		batchByStory, keptByStory, latecomerByStory, overtakenByStory, tokensByStory, knownByTokenByStory, servedByStory, resetsByStory, wantedByStory,
	} {
		checks = append(checks, storyOf(tell))
	}
	for _, f := range refusals() {
		checks = append(checks, mutant.Panics("tokengme: ", f))
	}
	checks = append(checks,
		of(Algorithm, late),
		of(Algorithm, fifo),
		of(WithClients, clients(r, r, w, append(r, "1"))),
		of(Several, model(3, sets, 1)),
		of(Bounded, model(3, twoGroups, 3, 1, 0)),
		of(Bounded, model(2, twoGroups, 4, 3)),
		of(three, cancel(clients(readWrite, sets, readWrite), 2)),
		overlapByRun, conflictsByRun,
		storyOf(givesUpByStory),
	)
	mutant.Test(t, mutant.Config{
		Share:    20,
		Checks:   checks,
		Patience: 20 * time.Second,
		Needed: []string{
			"exclusion", "deadlock", check.Starvation, check.ConcurrentEntry, "well-formed",
			"tokengme/primary", "tokengme/one-token", "tokengme/sessions", "tokengme/safe", "tokengme/wait", "tokengme/bounds",
		},
		Survivors: map[string]string{
			"Process.returns: p.smax > 0 -> true":          "it counts what nobody reads where numbers are not bounded",
			"newProcess: p.smax > 0 -> true":               "it takes memory that nobody needs where numbers are not bounded",
			"Process.resetSession: !p.asked dropped":       "the total is 0 until somebody asks, and one RELEASE at least has been counted",
			"Process.sessionReset: p.missing > 0 -> false": "the session begins when nobody is missing: resetting says so, too",
			"Process.keep: p.session+1 < t.Session -> false": "what came of earlier sessions is not looked at where the token tells that there is nothing to wait for: " +
				"they make more states. Both at once are caught",
			"member.safe: t.Old == 0 dropped":                  "what keep forgets says so, too: no RELEASE of the session before. Both at once are caught",
			"member.safe: m.session+1 == t.Session dropped":    "what keep forgets leaves only this session and its own one, which is as good",
			"A2: who is queued is forgotten":                   "a request is considered once while the token stays; who is queued matters where the queue comes with the token",
			"Process.block: len(p.entries) < n -> true":        "it allocates more often",
			"Process.admit: len(p.waiting) == 0 dropped":       "a shortcut: nobody waits, so nobody enters",
			"Client.Step: ev.Kind == protocol.Receive dropped": "other events carry no message, and REQUEST is number 0",
		},
		Outside: map[string]string{
			"oneToken": "a property", "sessions": "a property", "safeTokens": "a property",
			"form": "the catalogue", "tokens": "a property", "newest": "a bound", "latest": "a bound",
			"stale": "the checker", "memberOf": "a property",
			"LiteralProcess": "TestMutantsLiteral", "Entry.sameType": "TestMutantsLiteral", "selectType": "TestMutantsLiteral",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("A1: a request of who holds the primary token goes to nobody", "out.Broadcast(Message{Kind: Request, Number: number, Groups: groups})",
				"if !p.held { out.Broadcast(Message{Kind: Request, Number: number, Groups: groups}) }"),
			mutant.Edit("A1: a request has the number of the last one", "p.requests[p.id].number+1, p", "max(1, p.requests[p.id].number), p"),
			mutant.Edit("A1: the own request is not considered", "p.onRequest(p.id, number, groups, out)", "p.requests[p.id] = request{number, groups}"),
			mutant.Edit("A1: who holds a token of its group asks all the same", "p.admit(out)\n\tp.request(out)", "p.request(out)"),
			mutant.Edit("A2: fulfilled must differ, not be smaller", "return number > fulfilled", "return number != fulfilled"),
			mutant.Edit("A2: a late secondary token is not counted", "t.Issued++\n\t\tp.record(j)", "p.record(j)"),
			mutant.Edit("A2: it is processes that are counted, not tokens", "t.Issued++\n\t\tp.record(j)", "t.Issued = min(t.Issued+1, uint64(p.n-1))\n\t\tp.record(j)"),
			mutant.Edit("A2: a late secondary token does not fulfil its request", "t.Fulfilled[j], r.groups = r.number, \"\"", "r.groups = \"\""),
			mutant.Edit("A2: a late secondary token is not safe", "return &Token{Safe: t.Safe, Group", "return &Token{Group"),
			mutant.Edit("A2: a late secondary token has none before it", "Old: t.Old, Fulfilled", "Fulfilled"),
			mutant.Edit("A2: who is queued is forgotten", "p.queued[j] = true", "_ = j"),
			mutant.Edit("A2: the queue is last come first", "\t\tt.Queue = append(t.Queue, Entry{Process: j, Number: r.number, Groups: r.groups})",
				"\t\tt.Queue = append([]Entry{{Process: j, Number: r.number, Groups: r.groups}}, t.Queue...)"),
			mutant.Edit("A3: the token does not say who is queued", "p.queued[e.Process] = true", "_ = e"),
			mutant.Edit("A3: the queue of the token is lost", "append(queue[:0], t.Queue...)", "queue[:0]"),
			mutant.Edit("A3: the token does not say what is fulfilled", "t.Queue...)\n\tcopy(fulfilled, t.Fulfilled)", "t.Queue...)"),
			mutant.Edit("A3: a RELEASE of the session itself does not count on arrival", "if p.safe() {\n\t\tp.open(out)",
				"if p.safe() && (t.Safe || t.Old == 0 || p.session < t.Session) {\n\t\tp.open(out)"),
			mutant.Edit("A3: neither (a) nor what keep forgets", "t.Old == 0 || m.session+1", "m.session+1"),
			mutant.Edit("A3: neither (a) nor what keep forgets", "if p.session+1 < t.Session {", "if false {"),
			mutant.Edit("A4: the token is kept for who is still to come", "p.newSession(out)\n\tp.request(out)", "p.request(out)"),
			mutant.Edit("A5: the own RELEASE is not counted", "out.Broadcast(Message{Kind: Release, Number: session})\n\tp.onRelease(session, out)",
				"out.Broadcast(Message{Kind: Release, Number: session})"),
			mutant.Edit("A5: the own RELEASE counts twice", "session := p.token.Session\n\tp.drop()", "session := p.token.Session\n\tp.drop()\n\tdefer p.onRelease(session, out)"),
			mutant.Edit("A5: RELEASEs of all sessions are counted together", "p.session, p.releases = session, 1", "p.session = session; p.releases++"),
			mutant.Edit("A6: the number is that of the newest request known", "t.Fulfilled[e.Process] = e.Number", "t.Fulfilled[e.Process] = p.requests[e.Process].number"),
			mutant.Edit("A6: the session is that of before", "Session: t.Session + 1, Old", "Session: t.Session, Old"),
			mutant.Edit("A6: no tokens were issued before", "Old: t.Issued, Fulfilled", "Fulfilled"),
			mutant.Edit("A6: one token too many has been issued", "uint64(len(p.batch)-1), rest", "uint64(len(p.batch)), rest"),
			mutant.Edit("A6: the batch has not been issued", "uint64(len(p.batch)-1), rest", "0, rest"),
			mutant.Edit("A6: the others are forgotten", "true, uint64(len(p.batch)-1), rest", "true, uint64(len(p.batch)-1), rest[:0]"),
			mutant.Edit("A6: the others do not grow older", "e.Age++\n\t\trest", "rest"),
			mutant.Edit("A6: the next session is safe", "others := Token{Group", "others := Token{Safe: true, Group"),
			mutant.Edit("A6: it is the last of a batch that gets the primary token", "given := secondary\n\t\tif i == 0 {", "given := secondary\n\t\tif i == len(p.batch)-1 {"),
			mutant.Edit("A6: a session lasts until all secondary tokens are back", "p.busy() || len(t.Queue) == 0",
				"p.busy() || t.Issued > 0 && (p.session != t.Session || p.releases != t.Issued) || len(t.Queue) == 0"),
			mutant.Edit("A6: the token stays here", "p.recordBatch(&first)\n\tp.drop()", "p.recordBatch(&first)"),
			mutant.Edit("A6: the fencing token is that of the session before", "others.Fence++", ""),
			mutant.Edit("who is alone in a session again has the same fencing token", "m.token.Fence++", ""),
			mutant.Edit("a late secondary token has the first fencing token", "Old: t.Old, Fulfilled: fulfilled, Fence: t.Fence}", "Old: t.Old, Fulfilled: fulfilled}"),
			mutant.Edit("a new conflict is not remembered", "p.contested = true\n", ""),
			mutant.Edit("who enters is not told of what is known already", "out.CritIn(p.token.Group, 0)\n\t}\n\tp.tell(out)", "out.CritIn(p.token.Group, 0)\n\t}"),
			mutant.Edit("who has the primary token is not told", "p.consider(j, out)\n\t\tp.tell(out)", "p.consider(j, out)"),
			mutant.Edit("who has a secondary token is not told", "p.contested = true\n\t\tp.tell(out)", "p.contested = true"),
			mutant.Edit("a token has the conflicts of the last one", "p.contested = p.opposed()\n\tif p.safe()", "p.contested = p.contested || p.opposed()\n\tif p.safe()"),
			mutant.Edit("a token comes without conflicts", "p.contested = p.opposed()\n\tif p.safe()", "p.contested = false\n\tif p.safe()"),
			mutant.Edit("whoever asks conflicts", "case !p.serves(r.groups):\n\t\tp.contested", "default:\n\t\tp.contested"),
			mutant.Edit("drop keeps who is queued", "clear(p.queued)", ""),
			mutant.Edit("secondary sends its own memory", "copy(fulfilled, m.token.Fulfilled)\n\tt", "fulfilled = m.token.Fulfilled\n\tt"),
			mutant.Edit("a user that leaves is still inside", "p.inside = slices.Delete(p.inside, i, i+1)\n\t\tp.idle", "_ = i\n\t\tp.idle"),
			mutant.Edit("who waits behind one that gives up waits on", "p.waiting = slices.Delete(p.waiting, i, i+1)\n\t\tp.admit(out)", "p.waiting = slices.Delete(p.waiting, i, i+1)"),
			mutant.Edit("local users enter though others wait", "p.token.Safe || p.conflict()", "p.token.Safe"),
			mutant.Edit("a LEAVE before its ASK is forgotten", "p.left = slices.Insert(p.left, at, u)", "_ = at"),
			mutant.Edit("a client does not count its tries", "c.try++", ""),
			mutant.Edit("RSN: as in the paper, numbers are successors", "if p.smax == 0 || p.half(number) == p.half(fulfilled) {",
				"if p.smax > 0 { return p.place(number) == p.place(fulfilled)%p.smax+1 }\n\tif p.smax == 0 {"),
			mutant.Edit("RSN: nobody waits for late REQUESTs", "p.wanted[j] && p.heard[j] == p.smax", "p.wanted[j]"),
			mutant.Edit("RSN: REQUESTs before the last reset are counted", "p.heard[j], p.wanted[j] = 0, false", "p.wanted[j] = false"),
			mutant.Edit("RSN: the half stays the same", "(1 - p.half(p.requests[j].number))", "p.half(p.requests[j].number)"),
			mutant.Edit("SSN: no RELEASE is counted", "p.back++", ""),
			mutant.Edit("SSN: the RELEASEs counted are not forgotten", "p.back, p.asked, p.holder, p.total = 0, false, 0, 0", "p.asked, p.holder, p.total = false, 0, 0"),
			mutant.Edit("SSN: sessions are not forgotten", "p.session, p.releases = 0, 0", ""),
			mutant.Edit("SSN: the tokens issued are not forgotten", "p.token.Session, p.token.Issued, p.token.Total = 0, 0, 0", "p.token.Session, p.token.Total = 0, 0"),
			mutant.Edit("SSN: the total is not forgotten", "p.token.Session, p.token.Issued, p.token.Total = 0, 0, 0", "p.token.Session, p.token.Issued = 0, 0"),
			mutant.Edit("SSN: late tokens are not in the total", "p.token.Total++", ""),
			mutant.Edit("SSN: tokens of batches are not in the total", "t.Total = p.token.Total + t.Issued", "t.Total = p.token.Total"),
			mutant.Edit("SSN: the next primary token forgets who was served", "t.Served[e.Process] = true", "_ = e"),
			mutant.Edit("several: with open admission", "return f.several || f", "return f"),
			mutant.Edit("several: a request is served in all of its groups or none", "if e.Groups.Has(group) && (", "if e.Groups == protocol.Groups(group) && ("),
			mutant.Edit("fifo: the last request is next", "some = some[:first.Groups.Len()]", "some = some[len(some)-1:]"),
			mutant.Edit("priority: exclusive requests speak together", "if !g.Exclusive() {", "if true {"),
		},
	})
}
