package poundlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/node"
)

// Secret is what this client proves to servers with that it is itself: whoever knows it can end the client's sessions.
// It is for CloseKilled, in a process that outlives this one. That of a client without servers, as peers have it, is 0.
func (c *Client) Secret() uint64 { return c.secret }

// CloseKilled is Close for a client whose process was killed: servers give what it held to the next one at once, and not
// when its lease has ended. config is the client's, and secret its Secret. Call it when that process and whatever acts under its
// locks have ended for certain, and never before: nobody would tell them that the locks are somebody else's.
//
// It returns when all servers have heard of it, at the latest a second after ctx has ended. The error says which ones
// have not: there the client's lease ends its locks, as without a call.
func CloseKilled(ctx context.Context, config Config, secret uint64) error {
	if secret == 0 {
		return errors.New("poundlock: close a client that was killed: its secret is 0: want what Client.Secret said")
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	c.secret, c.id = secret, node.ClientID(secret)
	c.config.EndWithConnection, c.config.Outlived = false, true // another call for this client may take the connections over
	if err := c.start(true); err != nil {
		return err
	}
	errs := make([]error, len(c.shards))
	var all sync.WaitGroup
	for i, g := range c.shards {
		all.Go(func() { errs[i] = g.explain(g.node.WaitAlive(ctx, len(g.Servers))) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(fmt.Errorf("poundlock: close a client that was killed: %w", err), c.closeNodes())
	}
	return c.closeNodes()
}
