package hunt

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// wish draws what the users of a run choose from: some groups, of which one may be
// exclusive, and some sets of them.
func (p *plan) wish(i protocol.Info) {
	if !i.Grouped || len(p.Wants) > 0 {
		return
	}
	const most = 4
	var wants []protocol.Groups
	for k := range p.between(1, most) {
		wants = append(wants, protocol.Groups(strconv.Itoa(k+1)))
	}
	if p.chance.IntN(2) == 0 {
		wants = append(wants, protocol.Alone+"w")
	}
	single := slices.Clone(wants)
	for k := p.between(0, most); k > 0 && i.Several; k-- {
		one, other := single[p.chance.IntN(len(single))], single[p.chance.IntN(len(single))]
		set, _ := protocol.ParseGroups(string(one) + "," + string(other)) // of names that are fine
		wants = append(wants, set)
	}
	p.Wants = [][]protocol.Groups{wants}
}

// timeWants draws what users want in a timed run: each always the same set. Some of those
// who are alone come down.
func (p *plan) timeWants(i protocol.Info) {
	if !i.Grouped {
		return
	}
	_, users := p.System.Users(i)
	for range users {
		p.config.Wants = append(p.config.Wants, p.Wants[0][p.chance.IntN(len(p.Wants[0]))])
	}
	if i.Shares && slices.ContainsFunc(p.config.Wants, protocol.Groups.Lowers) {
		p.config.Downgrade = p.chance.Float64()
	}
}

// want draws what a user wants with its next try.
func (w *walker) want() protocol.Groups {
	if len(w.sys.Wants) == 0 {
		return ""
	}
	return w.sys.Wants[0][w.r.IntN(len(w.sys.Wants[0]))]
}

// visit is a calm in which nobody tries anew and who is inside stays, until nothing is left
// to happen: whoever tries then could share, or waits for others with good reason.
func (w *walker) visit() {
	if !w.Grouped || w.leave {
		return
	}
	w.stay = true
	patience := len(w.run) + 300*w.Total*w.sys.N + 20*w.Pending()
	for w.Found == nil && len(w.run) < patience {
		if w.next() {
			continue
		}
		if users := w.Users(); users.Together(w.Wanted(), w.Granted()) {
			u := slices.Index(users, protocol.InTry)
			w.Report(check.ConcurrentEntry, fmt.Sprintf("concurrent-entry: %s tries for ever, and shares with all who are inside or try",
				w.Names.Of(protocol.ID(u))))
		}
		break
	}
	w.stay = false
}
