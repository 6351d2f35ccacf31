package api

import (
	"connectrpc.com/connect"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/limit"
)

// Places are what many clients share, such as connections.
type places struct {
	limit.Room
	what string // many of them
}

func newPlaces(what string, most int) *places {
	return &places{limit.Room{Most: most}, what}
}

// enter takes a place. giveUp is called with an error for the client should it be given up: see limit.Guest. A nil
// place is with an error, too.
func (p *places) enter(from string, spare bool, giveUp func(error)) (*limit.Guest, error) {
	x := p.Guest(from, spare, func(has int) { giveUp(p.refusal(from, has)) })
	if has, ok := x.Take(1); !ok {
		return nil, p.refusal(from, has)
	}
	return x, nil
}

func (p *places) refusal(who string, count int) *connect.Error {
	return failf(pb.Reason_REASON_LIMIT, "%s has %d %s, and %d are the limit for all: no more for an address with that many",
		who, count, p.what, p.Most)
}
