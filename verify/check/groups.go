package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
)

// ConcurrentEntry: no user of a group algorithm tries for ever while there is a group that
// can be shared, that everybody who tries wants, and that everybody who is inside has,
// although those inside need not leave. Like Starvation it is about infinite runs: those in
// which whatever must happen, but the exit of who is inside, and stays possible does happen.
const ConcurrentEntry = "concurrent-entry"

// DefaultWants are the alternatives of each user of a group algorithm where a Config does
// not say: one of two groups.
var DefaultWants = []protocol.Groups{"1", "2"}

// held is the group of each user that is inside, nil where there are no groups. It is valid
// until the next call.
func (x *worker) held(st []uint32) []protocol.Group {
	if !x.rules.Grouped {
		return nil
	}
	x.holds = x.holds[:0]
	for _, n := range st[1 : 1+x.rules.Total] {
		x.holds = append(x.holds, x.locals[n].Group)
	}
	return x.holds
}

// excluded reports whether user u tries in a state and shares with all who try or are inside: see
// Users.Together.
func (x *worker) excluded(st []uint32, u int) bool {
	if !x.rules.Grouped || x.summaries[st[1+u]].section != protocol.InTry {
		return false
	}
	for i, n := range st[1 : 1+x.rules.Total] {
		if x.users[i] = x.summaries[n].section; x.users[i] == protocol.InTry {
			x.tries[i] = x.locals[n].Wants
		}
	}
	return x.users.Together(x.tries, x.held(st))
}

// concurrentEntry: nobody tries for ever who could share with all who are inside or try. A
// run that comes to rest is preferred, and of these the first one that was found.
func (l *live) concurrentEntry(*Property) *finding {
	visit := *l.graph
	visit.stays = true
	solver := lasso.New(&visit, l.interrupted)
	var best *lasso.Lasso
	of := 0
	for u := range l.rules.Total {
		run := solver.Fair(func(s uint32) bool {
			st := l.store.state(s)
			return l.excluded(st, u) && l.enough(st)
		})
		if solver.Stopped() {
			l.solver = solver // whoever asks hears that it gave up
			break
		}
		if run != nil && (best == nil || len(best.Loop) > 0 && len(run.Loop) == 0 || len(run.Loop) == 0 && run.First < best.First) {
			best, of = run, u
		}
	}
	return l.finding(best, fmt.Sprintf("concurrent-entry: %s tries for ever, and shares with all who are inside or try",
		l.rules.Names.Of(protocol.ID(of))))
}

// wishes says what users want, for the bounds of a verdict.
func (r *searcher) wishes() string {
	list := func(sets []protocol.Groups) string {
		words := make([]string, len(sets))
		for i, set := range sets {
			words[i] = string(set)
		}
		return strings.Join(words, " or ")
	}
	equal := func(sets []protocol.Groups) bool { return slices.Equal(sets, r.c.Wants[0]) }
	if !slices.ContainsFunc(r.c.Wants, func(sets []protocol.Groups) bool { return !equal(sets) }) {
		return "a try wants " + list(r.c.Wants[0])
	}
	var each []string
	for k, sets := range r.c.Wants {
		u := r.rules.Total - len(r.c.Wants) + k
		each = append(each, r.rules.Names.Of(protocol.ID(u))+" wants "+list(sets))
	}
	return strings.Join(each, ", ")
}
