package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/certs"
)

// A farewell is what the watchdog needs to give up the lock of a holder that was killed: a client of servers, or
// a session of a peer. Whoever knows it can end that client or session.
type farewell struct {
	Secret     uint64             `json:",omitempty"`
	Servers    []poundlock.Server `json:",omitempty"`
	Epoch      uint64             `json:",omitempty"`
	ClockBound time.Duration      `json:",omitempty"`
	NoAmnesia  bool               `json:",omitempty"`
	Label      string             `json:",omitempty"`
	TLS        certs.Files        `json:",omitzero"`

	Peer    string `json:",omitempty"` // the address of its API
	Session string `json:",omitempty"`
}

// farewellTime is how long servers have to answer, and a peer.
const farewellTime = time.Second

// farewell is that of a client of the cluster that the flags name.
func (f *holdFlags) farewell(h *holder) farewell {
	c := &h.config
	b := farewell{
		Secret: h.Secret(), Servers: c.Servers, Epoch: c.Epoch, ClockBound: c.ClockBound, NoAmnesia: c.NoAmnesia, Label: c.Label,
	}
	if c.TLS != nil {
		b.TLS = f.files()
		for _, path := range []*string{&b.TLS.Cert, &b.TLS.Key, &b.TLS.CA} {
			if full, err := filepath.Abs(*path); *path != "" && err == nil { // the watchdog is elsewhere
				*path = full
			}
		}
	}
	return b
}

// farewell is that of a session, which nil has none of.
func (r *remote) farewell() farewell {
	if r == nil {
		return farewell{}
	}
	return farewell{Peer: r.addr, Session: r.session}
}

// encode is nil for a farewell to nobody.
func (b farewell) encode() []byte {
	text, err := json.Marshal(b)
	if err != nil || b.Secret == 0 && b.Session == "" {
		return nil
	}
	return text
}

// sayFarewell is for the watchdog, when nothing is left of the command.
func sayFarewell(text []byte) error {
	var b farewell
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	if b.Peer != "" {
		return closeRemote(ctx, newLockService(b.Peer), b.Session)
	}
	c := poundlock.Config{Servers: b.Servers, Epoch: b.Epoch, ClockBound: b.ClockBound, NoAmnesia: b.NoAmnesia, Label: b.Label}
	if b.TLS != (certs.Files{}) {
		store, err := certs.Open(b.TLS, nil)
		if err != nil {
			return err
		}
		c.TLS = store.Client()
	}
	if err := poundlock.CloseKilled(ctx, c, b.Secret); err != nil {
		return trimPrefix(err)
	}
	return nil
}
