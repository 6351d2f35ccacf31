package poundlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/protocol"
)

// poll asks every server whom it supports in one lock; nil stands for nobody. It
// returns when all have answered, or a quorum has and the rest does not follow
// soon. The error says why a quorum did not answer within limit.
func (g *group) poll(ctx context.Context, name string, limit time.Duration) ([]*control.Request, error) {
	ctx, enough := context.WithTimeout(ctx, limit)
	defer enough()
	if err := g.node.WaitAlive(ctx, g.quorum); err != nil {
		return nil, g.explain(err)
	}
	type answer struct {
		holder *control.Request
		err    error
	}
	n := len(g.Servers)
	answers := make(chan answer, n)
	begin := time.Now()
	for id := range n {
		go func() {
			h, err := g.holderAt(ctx, protocol.ID(id), name)
			answers <- answer{h, err}
		}()
	}
	var holders []*control.Request
	var failures []error
	for range n {
		a := <-answers
		if a.err != nil {
			failures = append(failures, a.err)
			continue
		}
		if holders = append(holders, a.holder); len(holders) == g.quorum {
			// The others get as long again and a little more; then their calls fail.
			rest := time.AfterFunc(time.Since(begin)+10*time.Millisecond, enough)
			defer rest.Stop()
		}
	}
	if len(holders) < g.quorum {
		return nil, g.explain(errors.Join(failures...))
	}
	return holders, nil
}

// holderAt asks one server whom it supports in one lock.
func (g *group) holderAt(ctx context.Context, server protocol.ID, name string) (*control.Request, error) {
	p, err := control.Ask(ctx, g.node, server, control.Query{Ask: control.OneLock, Name: []byte(name)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Servers[server].Name, err)
	}
	if len(p.Locks) == 0 {
		return nil, nil
	}
	return p.Locks[0].Holder, nil
}

// leader is whom the answers of a quorum of servers prove to lead, or to be let in
// as soon as it hears of it: whom a quorum supports. Servers that forget may leave it
// with fewer supports, but with too many for anybody else to get in; then it still
// leads if it did before, or has a token. Otherwise it may be about to yield to
// somebody else, and is only likely to lead.
func (g *group) leader(holders []*control.Request, last Leader) (l Leader, likely bool) {
	supports := map[string]int{}
	found := map[string]Leader{}
	for _, h := range holders {
		if h == nil {
			continue
		}
		supports[h.ID]++
		l := found[h.ID]
		found[h.ID] = Leader{ID: h.ID, Label: cmp.Or(l.Label, h.Label), Token: max(l.Token, h.Token)}
	}
	var proved, strong []Leader
	for id, l := range found {
		k := supports[id]
		if k >= g.quorum || k > g.spare() && (l.Token != 0 || id == last.ID) {
			proved = append(proved, l)
		}
		if k > g.spare() {
			strong = append(strong, l)
		}
	}
	switch {
	case len(proved) == 1:
		return proved[0], false
	case len(proved) == 0 && len(strong) == 1:
		return strong[0], true
	}
	return Leader{}, false
}
