package recovery

import (
	"os"
	"testing"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/algotest/mutant"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// inStorms is what falls in worlds with faults. The wrapper as written leaves at most one of
// these with somebody waiting.
func inStorms[M any](a protocol.Algorithm[M], worlds int) mutant.Check {
	return func() (string, error) {
		fault, _, stuck := storm(a, 0, worlds)
		if fault == "" && stuck[4]+stuck[5] > 4 {
			fault = "stuck in several worlds"
		}
		return fault, nil
	}
}

// TestMutants removes what the argument of the package needs, one thing at a time, with
// POUNDLOCK_FULL=1.
func TestMutants(t *testing.T) {
	if os.Getenv("POUNDLOCK_FULL") == "" {
		t.Skip("SHORTENED to nothing: POUNDLOCK_FULL=1 breaks the wrapper in ways that have names")
	}
	outside := map[string]string{}
	for _, name := range []string{
		"Process", "wrapped", "Note", "set", "peer", "lead", "Wrap", "wrappable", "In", "tags", "readNote", "appendWords", "readWords",
		"words", "only",
	} {
		outside[name] = "broken by name"
	}
	models := func(c check.Config) mutant.Check {
		c.N, c.MaxMemory = 3, 256<<20
		return mutant.Model(Wrap(suzukikasami.Algorithm), c)
	}
	mutant.Test(t, mutant.Config{
		Outside: outside,
		Checks: []mutant.Check{
			models(check.Config{Entries: []int{1}, Crash: 1}),
			models(check.Config{Entries: []int{1, 0, 0}, Suspect: 1}),
			inStorms(suzukikasami.Algorithm, 400),
			inStorms(tokengme.Several, 800),
			func() (string, error) {
				for _, fault := range costs() {
					return "costs, " + fault, nil
				}
				return "", nil
			},
		},
		Survivors: map[string]string{
			"LEAVEs of the last are not told apart": "not met: the coordinator has to be of the last group, behind a member whose LEAVE overtakes those of the group before",
			"a session that came back counts":       "not met: the session has to break and come back in the first phase, and another instance to begin without its end meanwhile",
			"guests need not have said JOIN":        "not met: as the one before, of a guest",
			"old requests are not reported":         "they wait for RESUME, as those do that come later, and cost messages again",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("a minority stays", "if p.active && !p.majority(p.linked) {", "if false {"),
			mutant.Edit("it does not wait until who is left out knows", "if rest := p.counted &^ n.Set; rest != 0 {", "if rest := p.counted &^ n.Set; false {"),
			mutant.Edit("it does not revoke", "out.Revoke(j)", ""),
			mutant.Edit("lapsed is as good as ended", "\tp.change(j)\n\tp.peers[j] = peer{session: lapsed}", "\tp.change(j)\n\tp.counted &^= only(j)\n\tp.peers[j] = peer{session: lapsed}"),
			mutant.Edit("a minority begins an instance", "case !p.majority(target):", "case false:"),
			mutant.Edit("DONE does not wait for the user", "return p.section != protocol.InCrit", "return true"),
			mutant.Edit("frames of older instances are taken", "case f.Epoch != p.epoch || !p.linked.has(from):", "case !p.linked.has(from):"),
			mutant.Edit("frames cross a break", "case f.Epoch != p.epoch || !p.linked.has(from):", "case f.Epoch != p.epoch:"),
			mutant.Edit("a session that came back counts", "if s := p.peers[j].since; s == 0 || s > n.Number {", "if s := p.peers[j].since; s == 0 {"),
			mutant.Edit("a smaller epoch is joined", "case !p.epoch.Before(r.Epoch), from != p.id && !p.tried.Before(r.Epoch):", "case p.epoch == r.Epoch:"),
			mutant.Edit("not all have to be in reach", "n.Set&^p.reach() != 0 || ", ""),
			mutant.Edit("guests need not have said JOIN", "if (q.joins == nil || !q.joins.Before(r.Epoch)) && (q.said == nil || !q.said.epoch.Before(r.Epoch)) {", "if q == nil {"),
			mutant.Edit("guests are asked with the others", "	if joins == 0 {\n\t\tp.askRest(out)\n\t}", "	p.askRest(out)"),
			mutant.Edit("it begins to serve before all have joined", "case l.done == l.members:", "case p.majority(l.done) && l.done.has(p.id):"),
			mutant.Edit("old requests enter at once", "if p.old.started && p.old.leaves == p.old.before {", "if p.old.started {"),
			mutant.Edit("LEAVEs of the last are not told apart", "if l := &p.lead; l.epoch == p.epoch && l.await.has(from) {", "if l := &p.lead; l.epoch == p.epoch && l.await != 0 && !p.old.pending {"),
			mutant.Edit("the coordinator resumes after one LEAVE", "if l.await &^= only(from); l.await == 0 {", "if l.await = 0; l.await == 0 {"),
			mutant.Edit("old requests are not reported", "p.old = old{pending: p.section == protocol.InTry && p.phases > 1}", "p.old = old{}"),
			mutant.Edit("the coordinator does not wait", "p.frozen = p.running && from == p.id", "p.frozen = false"),
			mutant.Edit("a broken instance holds", "if s := p.peers[a].said.since[b]; s == 0 || s > l.based[a] {", "if s := p.peers[a].said.since[b]; false && s == 0 {"),
			mutant.Edit("nobody is told of a crash", "			if c != p.id {\n\t\t\t\tp.notify(c, out)\n\t\t\t}", ""),
			mutant.Edit("who is alone does not say so", "		out.Send(j, Frame[M]{Kind: Join, Epoch: e})", "		_ = e"),
			mutant.Edit("a try while it is suspended is forgotten", "	p.running = true\n\tp.ask(out)", "	p.running = true"),
			mutant.Edit("frames that come too early are lost", "		p.wait(from, f)\n", ""),
			mutant.Edit("the token is not at the coordinator", "case id == leader && p.w.last:\n\t\treturn k - 1", "case id == leader && p.w.last && k < 0:\n\t\treturn k - 1"),
			mutant.Edit("unlike groups are one", "if g.Shares(g) && p.lead.wants[j].Has(g) {", "if g.Shares(g) {"),
			mutant.Edit("exclusive groups are shared", "if g.Shares(g) && p.lead.wants[j].Has(g) {", "if p.lead.wants[j].Has(g) {"),
			mutant.Edit("the first to report a crash is left out", "if p.says(a, b) && !p.says(b, a) {", "if p.says(a, b) && a == b {"),
		},
	})
}
