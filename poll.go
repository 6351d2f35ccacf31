package poundlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/protocol"
)

// poll asks every server whom it supports in one lock: nobody, one, or several that share. Peers are asked who
// is inside there. It returns when all have answered, or a quorum has and the rest does not follow
// soon. The error says why a quorum did not answer within limit.
func (g *shard) poll(ctx context.Context, name string, limit time.Duration) ([][]control.Request, error) {
	ctx, enough := context.WithTimeout(ctx, limit)
	defer enough()
	if err := g.node.WaitAlive(ctx, g.quorum); err != nil {
		return nil, g.explain(err)
	}
	type answer struct {
		id      protocol.ID
		holders []control.Request
		live    []control.Session
		err     error
	}
	n, quorum := len(g.Servers), g.quorum
	if g.own != nil {
		quorum++ // this peer, whose answer comes at once
	}
	answers := make(chan answer, n)
	begin := time.Now()
	for id := range n {
		go func() {
			h, live, err := g.holdersAt(ctx, protocol.ID(id), name, limit)
			answers <- answer{protocol.ID(id), h, live, err}
		}()
	}
	var holders [][]control.Request
	var failures []error
	silent, live, nobody := map[string]error{}, map[string]bool{}, true
	for range n {
		a := <-answers
		if a.err != nil {
			failures = append(failures, a.err)
			silent[idText(a.id)] = a.err
			continue
		}
		for _, s := range a.live {
			live[s.ID] = true
		}
		nobody = nobody && len(a.holders) == 0
		if holders = append(holders, a.holders); len(holders) == quorum {
			// The others get as long again and a little more; then their calls fail.
			rest := time.AfterFunc(time.Since(begin)+10*time.Millisecond, enough)
			defer rest.Stop()
		}
	}
	if len(holders) < quorum {
		return nil, g.explain(errors.Join(failures...))
	}
	if g.own != nil && nobody {
		// A peer that is inside has sessions with a majority, one of which has answered.
		for id, err := range silent {
			if live[id] {
				return nil, fmt.Errorf("who is inside may be the one that does not answer: %w", err)
			}
		}
	}
	return holders, nil
}

// holdersAt asks one server whom it supports in one lock.
func (g *shard) holdersAt(
	ctx context.Context, server protocol.ID, name string, limit time.Duration,
) (all []control.Request, live []control.Session, err error) {
	if g.own != nil && server == g.node.ID() {
		for _, s := range g.node.Sessions() {
			live = append(live, control.Session{ID: idText(s.Peer)})
		}
		return g.own(name), live, nil
	}
	q := control.Query{Ask: control.OneLock, Name: []byte(name)}
	err = control.Pages(ctx, g.node, server, limit, q, func(p control.Page) bool {
		live = append(live, p.Sessions...)
		for i := range p.Locks {
			all = append(all, p.Locks[i].Holders()...)
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", g.Servers[server].Name, err)
	}
	return all, live, nil
}

// A candidate is a client with a request for a lock.
type candidate struct {
	Holder
	request string // node.RequestID
}

// same reports whether two candidates are one: the request says whose it is, too.
func (c candidate) same(o candidate) bool { return c.request == o.request }

// shares reports whether both may be inside.
func (c candidate) shares(o candidate) bool { return c.same(o) || c.Group != "" && c.Group == o.Group }

// compare is the order of requests.
func (c candidate) compare(o candidate) int { return control.CompareRequests(c.request, o.request) }

// longer is the label of a server that knows more: some have no session with a client, or
// have forgotten the label of its user.
func longer(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// inside is whom the answers of a quorum of servers show to be inside, the one that asked first first, and whether that
// is sure: a quorum supports one request of a candidate, which is inside or will be as
// soon as it hears of it. Servers that forget may leave a holder with fewer supports,
// but with too many for anybody else to get in: then it is still inside if it was last
// seen to be. Otherwise it may as well wait, and be about to yield; its token does not
// tell, which a server records with each support. Without last, candidates that share with one that is sure, and are
// not, make the answer unsure; with it they are left out. Nobody is inside, or,
// unless that is sure, one of two that do not share.
func (g *shard) inside(answers [][]control.Request, last []candidate) (found []candidate, sure bool) {
	supports := map[string]int{} // by request
	known := map[string]candidate{}
	for _, holders := range answers {
		for _, h := range holders {
			supports[h.Request]++
			c := known[h.Request]
			known[h.Request] = candidate{Holder{
				Leader: Leader{ID: h.ID, Label: longer(c.Label, h.Label), Token: max(c.Token, h.Token)},
				Held:   max(c.Held, time.Duration(h.HeldMS)*time.Millisecond),
				Group:  h.Group,
			}, h.Request}
		}
	}
	if g.own != nil {
		return insiders(known)
	}
	before := map[string]bool{}
	for _, c := range last {
		before[c.request] = true
	}
	var strong, certain []candidate
	for request, c := range known {
		switch k := supports[request]; {
		case k >= g.quorum || k > g.spare() && before[request]:
			certain = append(certain, c)
			strong = append(strong, c)
		case k > g.spare():
			strong = append(strong, c)
		}
	}
	if len(certain) == 0 {
		slices.SortFunc(strong, candidate.compare)
		if slices.ContainsFunc(strong, func(c candidate) bool { return !c.shares(strong[0]) }) {
			return nil, false
		}
		return strong, len(strong) == 0
	}
	apart := func(c candidate) bool { return !c.shares(certain[0]) }
	found = slices.DeleteFunc(strong, apart)
	if sure = len(found) == len(certain) || len(last) > 0; sure {
		found = certain
	}
	slices.SortFunc(found, candidate.compare)
	return found, sure
}

// insiders is inside where peers have said who is inside there. Of two that do not share one has left since it was
// asked: who came last is there. Nobody is sure where all have said so, one after the other: the lock may have gone
// by.
func insiders(known map[string]candidate) (found []candidate, sure bool) {
	found = slices.SortedFunc(maps.Values(known), candidate.compare)
	if len(found) == 0 {
		return nil, false
	}
	last := found[len(found)-1]
	return slices.DeleteFunc(found, func(c candidate) bool { return !c.shares(last) }), true
}
