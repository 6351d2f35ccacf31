package poundlock

import (
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
func (g *shard) poll(ctx context.Context, name string, limit time.Duration) ([]*control.Request, error) {
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
func (g *shard) holderAt(ctx context.Context, server protocol.ID, name string) (*control.Request, error) {
	p, err := control.Ask(ctx, g.node, server, control.Query{Ask: control.OneLock, Name: []byte(name)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Servers[server].Name, err)
	}
	if len(p.Locks) == 0 {
		return nil, nil
	}
	return p.Locks[0].Holder, nil
}

// A candidate is a client with a request for a lock.
type candidate struct {
	Holder
	request string // node.RequestID
}

// longer is the label of a server that knows more: some have no session with a client, or
// have forgotten the label of its user.
func longer(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// leader is whom the answers of a quorum of servers show to lead, and whether that is
// sure: a quorum supports one request of a candidate, which is inside or will be as
// soon as it hears of it. Servers that forget may leave a leader with fewer supports,
// but with too many for anybody else to get in: then it still leads if it was last
// seen to. Otherwise it may as well wait, and be about to yield; its token does not
// tell, which a server records with each support. The zero candidate is nobody, or,
// unless that is sure, one of two.
func (g *shard) leader(holders []*control.Request, last candidate) (c candidate, sure bool) {
	supports := map[[2]string]int{}
	found := map[[2]string]candidate{}
	for _, h := range holders {
		if h == nil {
			continue
		}
		key := [2]string{h.ID, h.Request}
		supports[key]++
		c := found[key]
		found[key] = candidate{Holder{
			Leader: Leader{ID: h.ID, Label: longer(c.Label, h.Label), Token: max(c.Token, h.Token)},
			Held:   max(c.Held, time.Duration(h.HeldMS)*time.Millisecond),
		}, h.Request}
	}
	var strong []candidate
	for key, c := range found {
		k := supports[key]
		if k >= g.quorum || k > g.spare() && c.ID == last.ID && c.request == last.request {
			return c, true
		}
		if k > g.spare() {
			strong = append(strong, c)
		}
	}
	if len(strong) == 1 {
		return strong[0], false
	}
	return candidate{}, len(strong) == 0
}
