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

// revoke ends what the user of one lock does in the request of a certain time: its
// wait, or its grant as Config.MaxHold would, with a grace of at least
// Config.ReleaseGrace.
func (c *Client) revoke(r control.Release, since uint64) control.Released {
	grace := c.config.Grace
	if r.GraceMS != nil {
		grace = max(time.Duration(*r.GraceMS)*time.Millisecond, c.config.ReleaseGrace)
	}
	why := &RevokedError{By: r.By, Reason: r.Reason}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines.Get(string(r.Name))
	if l == nil || l.hold == nil || !l.hold.isIn(since) {
		return control.Released{Outcome: control.Gone}
	}
	if s := l.hold.section; !s.begun {
		s.lose(why)
		grace = 0
	} else {
		grace = s.revokeLocked(why, grace)
	}
	grace += time.Millisecond - 1 // it says when at the latest
	return control.Released{Outcome: control.Told, GraceMS: grace.Milliseconds()}
}

// isIn reports whether the request of a certain time is the one that got h inside,
// or one that it waits with. Client.mu is held.
func (h *hold) isIn(since uint64) bool {
	switch {
	case h.left:
		return false
	case h.state == trying:
		return since >= uint64(h.began.UnixNano())
	}
	return h.state == inside && h.request == since
}
