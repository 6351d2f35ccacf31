package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// patience is how long a client may take to answer a Release.
const patience = 2 * time.Second

// release passes a Release on to the client whose request it is about, if this server
// knows that request. Nothing changes here: the client leaves the lock by itself, or
// else its lease ends.
func (s *Server) release(p *control.Page, from protocol.ID, request []byte) {
	var r control.Release
	err := json.Unmarshal(request, &r)
	var client protocol.ID
	var since uint64
	if err == nil {
		client, since, err = r.Check()
	}
	if err != nil {
		p.Err = err.Error()
		return
	}
	p.Released = &control.Released{Outcome: control.Unknown}
	user, known := s.knows(string(r.Name), client, since)
	if !known {
		return
	}
	var label string
	var lease time.Duration
	for _, x := range s.node.Sessions() {
		switch x.Peer {
		case from:
			r.By = x.Label
		case client:
			label, lease = x.Label, time.Until(x.LeaseEnd)
		}
	}
	if control.CheckReason(r.By) != nil { // a label is any text
		r.By = "client " + hex(uint64(from))
	}
	*p.Released = s.tell(client, r)
	if p.Released.Outcome == control.Silent {
		p.Released.LeaseMS = max(0, lease.Milliseconds())
	}
	s.config.Log.Warn("forced release", "lock", string(r.Name), "client", hex(uint64(client)), "label", node.FullLabel(label, user),
		"request", r.Request, "reason", r.Reason, "by", r.By, "outcome", p.Released.Outcome)
}

// knows reports whether a client holds or wants a lock here with the request of a time,
// and the label of its user of that lock.
func (s *Server) knows(name string, client protocol.ID, since uint64) (user string, known bool) {
	is := func(r protocol.Request) bool { return r.User == client && uint64(r.Since) == since }
	for _, l := range s.node.Lock(name) {
		if slices.ContainsFunc(l.Standing.Holders, is) || slices.ContainsFunc(l.Standing.Waiters, is) {
			return l.Labels[client], true
		}
	}
	return "", false
}

// tell sends r to a client.
func (s *Server) tell(client protocol.ID, r control.Release) control.Released {
	silent := func(err error) control.Released {
		return control.Released{Outcome: control.Silent, Err: err.Error()}
	}
	request, err := json.Marshal(r)
	if err != nil {
		return silent(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := s.node.Call(ctx, client, request)
	if err != nil {
		return silent(err)
	}
	var answer control.Released
	if err := json.Unmarshal(reply, &answer); err != nil {
		return silent(err)
	}
	switch answer.Outcome {
	case control.Told, control.Gone:
		return answer
	}
	return silent(fmt.Errorf("the client answers %.100q", answer.Err))
}
