package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// found is the fault of a test, by what found it, "" if there is none.
func found(fault, by string) string {
	if fault == "" {
		return ""
	}
	property := "claim"
	for _, name := range []string{"exclusion", "tags", "fencing", "stuck", "panic"} {
		if strings.Contains(fault, name+":") {
			property = name
			break
		}
	}
	return fmt.Sprintf("%s by %s, %s", property, by, fault)
}

// faults is the first fault that one of them finds.
func faults(by string, of ...func() string) mutant.Check {
	return func() (string, error) {
		for _, f := range of {
			if fault := found(f(), by); fault != "" {
				return fault, nil
			}
		}
		return "", nil
	}
}

func worlds[M any](a protocol.Algorithm[M], from, to int) mutant.Check {
	return faults("worlds", func() string { fault, _ := storm(a, from, to); return fault })
}

func models[M any](a protocol.Algorithm[M], m model, also ...string) mutant.Check {
	c := m.config(slices.Concat(kept, also)...)
	c.MaxMemory = 64 << 20
	return mutant.Model(Wrap(a), c)
}

// Each guard removed once, and each step forgotten that the argument of the package needs.
func TestMutants(t *testing.T) {
	stories := func(tell ...func() string) mutant.Check {
		return func() (string, error) {
			for _, story := range tell {
				if fault := story(); fault != "" {
					return fault, nil
				}
			}
			return "", nil
		}
	}
	halves, one := "at 1s partition p1,p2 for 5s\n", "at 1s partition p5 for 5s\n"
	checks := []mutant.Check{
		stories(cameBack, joinCameBack, refusedLast, unfenced),
		stories(begins...),
		stories(impatient, handedOn, inVain, mostWanted, keptEarly, asideTold, staysInside, comesLater, comesEarly, comesForAnother, wantsBefore, lastIsTold),
	}
	checks = append(append(checks, refusals()...),
		models(suzukikasami.Algorithm, model{entries: []int{1}}),
		models(suzukikasami.Algorithm, model{n: 2, entries: []int{1}, cut: 2}),
		models(tokengme.Algorithm, model{entries: []int{0, 0, 1}, crash: 1}),
		models(tokengme.Algorithm, model{entries: []int{0, 1, 1}, crash: 1}, check.ConcurrentEntry),
		models(ra2.Algorithm, model{phases: 2, entries: []int{0, 0, 1}, crash: 1}),
		models(ra2.Algorithm, model{phases: 1, entries: []int{0, 0, 1}, crash: 1}),
		faults("simulation",
			func() string { return bill(t, suzukikasami.Algorithm, right, 5, 9) },
			func() string { return bill(t, tokengme.Algorithm, right, 5, 9) },
			func() string { return bill(t, ra2.Algorithm, right, 5, 13) },
			func() string { return cutForGood(t) },
			func() string { return parted(t, suzukikasami.Algorithm, right, halves, 0, 1) },
			func() string { return parted(t, tokengme.Algorithm, right, one, 4) },
		),
		worlds(suzukikasami.Algorithm, 0, 200),
		faults("worlds", func() string { return cmp.Or(costs()...) }),
		worlds(tokengme.Several, 0, 50),
		worlds(tokengme.Algorithm, 66, 67),
		worlds(ra2.Algorithm, 0, 50),
		faults("worlds", func() string { return restartedWithin(time.Second) }),
		worlds(suzukikasami.Algorithm, 1115, 1116),
		worlds(suzukikasami.Algorithm, 1587, 1588),
		worlds(suzukikasami.Algorithm, 7847, 7848),
		models(suzukikasami.Algorithm, model{entries: []int{1}, crash: 1}),
		models(suzukikasami.Algorithm, model{entries: []int{0}, cut: 1}),
		models(suzukikasami.Algorithm, model{entries: []int{0}, crash: 1, back: 1}),
		stories(unheard),
	)
	codec, catalogue, property := "the round trips of worlds and of the conformance suite", "the catalogue", "a property"
	mutant.Test(t, mutant.Config{
		Share: 20, Patience: 15 * time.Second, Checks: checks,
		Outside: map[string]string{
			"Process.State": codec, "peer": codec, "lead": codec, "turns": codec, "Note": codec, "words": codec,
			"wrapped": catalogue, "Wrap": catalogue, "wrappable": catalogue, "tags": property, "Process.Show": "shown to people", "Process.Inspect": "for who watches",
			"set": "TestSet", "only": "TestSet", "collect": "TestSet", "trim": "TestSet", "upTo": "TestSet", "byteOf": "TestSet",
		},
		Survivors: map[string]string{
			"Process.onNotify: p.lead.epoch.Before(f.Epoch) dropped": "a late refusal of an older RESTART ends a newer one, which is begun again: messages only",
			"Process.restart: p.coordinator() != p.id dropped":       "who is not the coordinator waits for that one, which says nothing to it; and nobody answers it",
			"Process.restart: p.active -> true":                      "in no instance it begins without those who are about to say JOIN, and once more with them: messages only",
			"Process.restart: p.active -> false":                     "it waits for strangers, too, who are about to say where they are: of two instances one has lost its majority, and its members say JOIN to all",
			"Process.restart: waits && joins.minus(l.members).empty() dropped": "who waits in no instance, and has nobody new, has the members that it asked: " +
				"holds says so, too",
			"Process.done: !l.asked dropped":                 "done is joins once, when the last of these answers: then the others are asked",
			"Process.enter: p.old.started dropped":           "until START it waits for no LEAVE, and one at least has come",
			"Process.admit: t.group == \"\" -> false":        "those who are inside are told once more: messages only",
			"Process.join: inside -> true":                   "who is outside does not look at it: more states only",
			"Process.exit: p.answer(out) -> false":           "it tells the old instance, which ends in the same step: messages only",
			"Process.serve: p.phases == 3 dropped":           "with fewer phases nobody says WANT",
			"Process.hear: f.Epoch.Before(q.oldest) dropped": "only who has lost its coordinator says something else before its JOIN arrives: that instance is broken anyway",
			"Process.accept: n.Old || n.Inside -> true":      "the groups are in DONE, too, where nobody reads them: integers only, with one phase",
			"Process.receive: p.epoch == f.Epoch dropped":    "a frame of an older instance that waits is dropped when its time comes",
			"Process.ask: p.asked dropped":                   "whoever asks has just begun to try, or to run",
			"Process.give: p.linked.has(to) -> true":         "whose session broke there has lost it, too, and takes nothing",
			"who left forgets an old request never":          "who joins begins with a new one: fewer states only",
			"who left has said where it is":                  "who joins says so: fewer states only",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("who is inside is not told that a restart waits for it", "p.wanted(out)\n\treturn false", "return false"),
			mutant.Edit("who is inside is not told that it is to leave its instance", "if p.wanted(out); p.section", "if p.section"),
			mutant.Edit("who enters with an old request is not told that others wait", "p.oldToken())\n\t\tp.besides(out)", "p.oldToken())"),
			mutant.Edit("who was inside is not told that others wait", "p.old.pending = set{}, false\n\t\tp.besides(out)", "p.old.pending = set{}, false"),
			mutant.Edit("who was inside counts on those who have not joined", "p.base = p.support()", "p.base = r.Note.Set"),
			mutant.Edit("a session that breaks does not count against who was inside", "p.linked.without(j), p.base.without(j)", "p.linked.without(j), p.base"),
			mutant.Edit("who was inside is an old request that waits", "g, q = p.among()", "_ = p.among"),
			mutant.Edit("who was inside says nothing when it has left", "default:\n\t\tp.left(out)", "default:"),
			mutant.Edit("who has left and tries again is not heard", "p.want(out) // should it have tried again", ""),
			mutant.Edit("who comes later may overtake its own LEAVE", "case t.await.has(from): // its LEAVE is about to come", "case false:"),
			mutant.Edit("who comes later is no reason to wait", "if t.await = t.await.with(from); from == p.id {", "if from == p.id {"),
			mutant.Edit("more come in though one waits", "t.group = \"\"\n\t\tfor j", "for j"),
			mutant.Edit("who enters forgets that one waits", "p.old.closed = true\n\t\tp.wanted(out)\n\tcase l", "p.wanted(out)\n\tcase l"),
			mutant.Edit("the coordinator's user is not told that one waits", "Note: &Note{}})\n\t\t\t}\n\t\t}\n\t\tp.wanted(out)", "Note: &Note{}})\n\t\t\t}\n\t\t}"),
			mutant.Edit("nobody is told that one waits", "p.old.closed = true\n\t\tp.wanted(out)\n\tcase l", "p.old.closed = true\n\tcase l"),
			mutant.Edit("who is inside is not told what the algorithm says", "case protocol.Wanted:\n\t\t\tout.Wanted()", "case protocol.Wanted:"),
			mutant.Edit("it does not revoke", "out.Revoke(j)", "_ = j"),
			mutant.Edit("lapsed is as good as ended", "p.change(j)\n\tp.peers[j] = peer{session: lapsed}", "p.change(j)\n\tp.counted = p.counted.without(j)\n\tp.peers[j] = peer{session: lapsed}"),
			mutant.Edit("who ended counts for ever", "p.peers[j].session = ended\n\tp.counted = p.counted.without(j)", "p.peers[j].session = ended"),
			mutant.Edit("what was said in a session that broke counts", "p.peers[j] = peer{session: lapsed}", "p.peers[j].session = lapsed"),
			mutant.Edit("a session lasts since the one before", "p.change(j)\n\tp.peers[j].session, p.peers[j].since = up, p.number", "p.change(j)\n\tp.peers[j].session, p.peers[j].since = up, 1"),
			mutant.Edit("a member whose session broke is linked", "p.linked, p.base = p.linked.without(j), p.base.without(j)", "p.base = p.base.without(j)"),
			mutant.Edit("changes are not counted", "if p.number++; p.members.has(j) {", "if p.members.has(j) {"),
			mutant.Edit("to leave is no change", "p.number++\n\tp.active, p.running", "p.active, p.running"),
			mutant.Edit("to join is no change", "p.due = true\n\tp.number++\n\tp.epoch, p.members", "p.due = true\n\tp.epoch, p.members"),
			mutant.Edit("restart does not look at what was heard", "p.due = true\n\tq := &p.peers[from]", "q := &p.peers[from]"),
			mutant.Edit("restart does not look at sessions", "p.due = true\n\tif p.number++", "if p.number++"),
			mutant.Edit("restart does not look when its instance is dropped", ", p.due = lead{}, nil, true", " = lead{}, nil"),
			mutant.Edit("restart does not look when it has joined", "p.due = true\n\tp.number++\n\tp.epoch", "p.number++\n\tp.epoch"),
			mutant.Edit("who left forgets an old request never", "p.old, p.turns, p.base, p.told, p.news = old{}, turns{}, set{}, told{}, 0", "p.turns, p.base, p.told, p.news = turns{}, set{}, told{}, 0"),
			mutant.Edit("who left has said where it is", "p.old, p.turns, p.base, p.told, p.news = old{}, turns{}, set{}, told{}, 0", "p.old, p.turns, p.base = old{}, turns{}, set{}"),
			mutant.Edit("who left is asked for the instance that it led", "told{}, 0\n\tp.drop()", "told{}, 0"),
			mutant.Edit("who joins has said JOIN for ever", "p.active, p.stray, p.offered = r.Epoch, r.Note.Set, true, false, false", "p.active, p.stray = r.Epoch, r.Note.Set, true, false"),
			mutant.Edit("who joins is to leave, too", "p.active, p.stray, p.offered = r.Epoch, r.Note.Set, true, false, false", "p.active, p.offered = r.Epoch, r.Note.Set, true, false"),
			mutant.Edit("who joins counts on nobody", "p.linked, p.counted, p.news = p.members, p.members.without(p.id), p.number", "p.linked, p.news = p.members, p.number"),
			mutant.Edit("who joins says so twice", "p.told = told{from, p.news}", ""),
			mutant.Edit("who joins leads on", "if from != p.id {\n\t\tp.drop()", "if from != p.id {"),
			mutant.Edit("rounds do not grow", "max(p.seen+1, p.now", "max(p.seen, p.now"),
			mutant.Edit("rounds know no clock", "max(p.seen+1, p.now>>roundBits)", "p.seen + 1"),
			mutant.Edit("tokens know no instance", "return p.epoch.Number(p.n)<<numberBits + uint64(p.n) + seq", "return uint64(p.n) + seq"),
			mutant.Edit("tokens of old requests may be others", "return p.epoch.Number(p.n)<<numberBits + uint64(p.n) + seq", "return p.epoch.Number(p.n)<<numberBits + seq"),
			mutant.Edit("old requests have one token", "place = uint64(p.old.next.first())", "_ = place"),
			mutant.Edit("rounds heard of do not count", "p.seen = max(p.seen, f.Epoch.Round)", ""),
			mutant.Edit("rounds joined do not count", "p.seen = max(p.seen, p.epoch.Round)", ""),
			mutant.Edit("a RESTART is not refused", "out.Send(from, Frame[M]{Kind: Notify, Epoch: p.epoch, Note: &Note{}})", ""),
			mutant.Edit("a smaller epoch is joined", "case !p.epoch.Before(r.Epoch):", "case p.epoch == r.Epoch:"),
			mutant.Edit("a DONE is not heard", "p.hear(from, f)\n\tif f.Epoch == p.lead.epoch", "if f.Epoch == p.lead.epoch"),
			mutant.Edit("an instance is based on what was before it", "p.lead.based[from] = f.Note.Number", ""),
			mutant.Edit("it begins to serve before all have joined", "case l.done == l.members:", "case p.majority(l.done) && l.done.has(p.id):"),
			mutant.Edit("the coordinator resumes after one LEAVE", "t.await = t.await.without(from)", "t.await = (set{})"),
			mutant.Edit("a try while it is suspended is forgotten", "p.running, p.old = true, old{}\n\tp.ask(out)", "p.running, p.old = true, old{}"),
			mutant.Edit("a try while the coordinator waits is forgotten", "p.frozen = false\n\t\tp.ask(out)", "p.frozen = false"),
			mutant.Edit("frames that come too early are lost", "p.wait(from, f)\n", "_ = 0\n"),
			mutant.Edit("who is linked need not have said JOIN", "n.Joins.without(p.id).all", "n.Joins.minus(p.linked).without(p.id).all"),
			mutant.Edit("frames wait though their session broke", "return e.from == j", "return e.from == j && j < 0"),
			mutant.Edit("frames that waited are given twice", "frames := p.later\n\tp.later = nil", "frames := p.later"),
			mutant.Edit("frames are not given when all have joined", "p.ask(out)\n\t\tp.deliver(out)", "p.ask(out)"),
			mutant.Edit("frames are not given when it joins", "p.ask(out)\n\tp.deliver(out)", "p.ask(out)"),
			mutant.Edit("who exits as it joins is not told", "if p.section == protocol.InExit {\n\t\tp.rem(0, out)\n\t}\n\tp.join(r)", "p.join(r)"),
			mutant.Edit("it is asked to leave again and again", "s.stray = true\n\t\tout", "out"),
			mutant.Edit("the instance that was led before is led on", "p.lead, p.peers[p.id].asks, p.due = lead{}, nil, true", "p.lead, p.due = lead{}, true"),
			mutant.Edit("who did not answer is waited for again", "p.peers[j].said.asked = true", ""),
			mutant.Edit("who did not answer once is not asked again", "s.asked = false", "s.asked = s.asked && true"),
		},
	})
}
