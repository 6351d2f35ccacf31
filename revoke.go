package poundlock

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/internal/control"
)

// A RevokedError says that an operator has ended a grant, or a wait. That of a grant
// comes with ErrLost, that of a wait with ErrNotAcquired.
type RevokedError struct {
	By     string // who asked for it, as the server that passed it on knows
	Reason string
}

func (e *RevokedError) Error() string { return fmt.Sprintf("released by %s: %s", e.By, e.Reason) }

// answer answers a control request of a server. There is one: to end a grant that an
// operator wants to end.
func (c *Client) answer(request []byte) []byte {
	var r control.Release
	answer := control.Released{Outcome: control.Unknown}
	switch err := json.Unmarshal(request, &r); {
	case err != nil || r.Ask != control.ForcedRelease:
		answer.Err = fmt.Sprintf("poundlock: unknown request %.40q", request)
	default:
		var since uint64
		if _, since, err = r.Check(); err != nil {
			answer.Err = "poundlock: " + err.Error()
			break
		}
		answer = c.revoke(r, since)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil // no value of this type can fail
	}
	return b
}

// revoke ends what the users of one lock do in the request of a certain time: their
// waits, or their grants as Config.MaxHold would, with a grace of at least
// Config.ReleaseGrace.
func (c *Client) revoke(r control.Release, since uint64) control.Released {
	grace := c.config.Grace
	if r.GraceMS != nil {
		grace = max(time.Duration(*r.GraceMS)*time.Millisecond, c.config.ReleaseGrace)
	}
	why := &RevokedError{By: r.By, Reason: r.Reason}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.stays.Get(string(r.Name))
	if at == nil || !at.isIn(since) {
		return control.Released{Outcome: control.Gone}
	}
	at.closed = true
	var left time.Duration
	for _, s := range at.sections() {
		if s.pending != nil {
			s.pending.lose(why)
		} else {
			left = max(left, s.revokeLocked(why, grace))
		}
	}
	at.exit()
	left += time.Millisecond - 1 // it says when at the latest
	return control.Released{Outcome: control.Told, GraceMS: left.Milliseconds()}
}

// isIn reports whether the request of a certain time is the one that got s inside,
// or one that it waits with. Client.mu is held.
func (s *stay) isIn(since uint64) bool {
	switch s.state {
	case trying:
		return since >= s.request
	case inside:
		return s.request == since
	}
	return false
}

// sections are those that rest on s, and as long as it tries those that wait for it. Client.mu is held.
func (s *stay) sections() (all []*section) {
	for h := range s.holds.all() {
		all = append(all, h.section)
	}
	if s.state == trying {
		for h := range s.waiters.all() {
			if s.shares(h.section) {
				all = append(all, h.section)
			}
		}
	}
	return all
}
