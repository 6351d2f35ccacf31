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
func (p *plan) wish(c *Config, i protocol.Info) {
	if !i.Grouped {
		return
	}
	if p.wants = c.Wants; len(p.wants) > 0 {
		return
	}
	const most = 4
	for k := range p.between(1, most) {
		p.wants = append(p.wants, protocol.Groups(strconv.Itoa(k+1)))
	}
	if p.chance.IntN(2) == 0 {
		p.wants = append(p.wants, protocol.Alone+"w")
	}
	single := slices.Clone(p.wants)
	for k := p.between(0, most); k > 0 && i.Several; k-- {
		one, other := single[p.chance.IntN(len(single))], single[p.chance.IntN(len(single))]
		set, _ := protocol.ParseGroups(string(one) + "," + string(other)) // of names that are fine
		p.wants = append(p.wants, set)
	}
}

// timeWants draws what users want in a timed run: each always the same set, or with each
// try one of the groups.
func (p *plan) timeWants(i protocol.Info) {
	if !i.Grouped {
		return
	}
	users := p.N
	if i.Users == protocol.Clients {
		users = p.clients
	}
	for range users {
		p.config.Wants = append(p.config.Wants, p.wants[p.chance.IntN(len(p.wants))])
	}
}

// want draws what a user wants with its next try.
func (w *walker) want() protocol.Groups {
	if len(w.sys.wants) == 0 {
		return ""
	}
	return w.sys.wants[w.r.IntN(len(w.sys.wants))]
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
		if u := w.excluded(); u >= 0 {
			w.Report(check.ConcurrentEntry, fmt.Sprintf("concurrent-entry: %s tries for ever, and shares with all who are inside or try",
				w.Names.Of(protocol.ID(u))))
		}
		break
	}
	w.stay = false
}
