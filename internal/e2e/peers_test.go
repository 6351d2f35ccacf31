package e2e

import (
	"context"
	"strings"

	"github.com/poundlock/poundlock/peers"
)

// peersArgs say what system a peer is of.
type peersArgs struct {
	Members   []peers.Peer
	Algorithm string
	Bootstrap bool
}

func (p peersArgs) join(a clientArgs) (*peers.Member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name, _, _ := strings.Cut(a.Label, " ")
	return peers.Join(ctx, peers.Config{
		Name: name, Members: p.Members, Algorithm: p.Algorithm, Bootstrap: p.Bootstrap, Insecure: true, Lease: a.Lease, Label: a.Label,
	})
}
