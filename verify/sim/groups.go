package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// DefaultGroups is Config.Groups where users want groups and Config.Wants does not say which.
const DefaultGroups = 2

// What a run can be asked for.
const (
	maxGroups     = 1 << 20
	maxPerRequest = 1000
)

// checkGroups completes what c says of groups.
func (c *Config) checkGroups(r *world.Rules) error {
	if err := c.checkDowngrade(r); err != nil {
		return err
	}
	if !r.Grouped {
		if c.Groups != 0 || c.Wants != nil || c.PerRequest != 0 || c.Popularity != (Popularity{}) {
			return errors.New("it has no groups: whoever is inside is there alone")
		}
		return nil
	}
	switch drawing := c.drawing(); {
	case c.Wants != nil && drawing != "":
		return fmt.Errorf("users want %s all the time, or draw from %s: want one of the two", c.Wants[0], drawing)
	case c.Wants != nil:
		return nil
	}
	p := cmp.Or(c.Popularity, Popularity{Alpha: 100, Beta: 100})
	c.Groups, c.PerRequest, c.Popularity = cmp.Or(c.Groups, DefaultGroups), cmp.Or(c.PerRequest, 1), p
	switch {
	case c.Groups < 1 || c.Groups > maxGroups:
		return fmt.Errorf("%d groups: want 1 to %d", c.Groups, maxGroups)
	case c.PerRequest < 1 || c.PerRequest > min(c.Groups, maxPerRequest):
		return fmt.Errorf("%d groups a request: want 1 to %d, of %d groups", c.PerRequest, min(c.Groups, maxPerRequest), c.Groups)
	case c.PerRequest > 1 && !r.Several:
		return fmt.Errorf("%d groups a request: its users want one at a time", c.PerRequest)
	case !(p.Alpha > 0 && p.Alpha <= 100 && p.Beta >= 0 && p.Beta <= 100):
		return fmt.Errorf("popularity %v,%v: want percentages of the groups, more than 0, and of the requests", p.Alpha, p.Beta)
	case p.Alpha == 100 && p.Beta != 100:
		return fmt.Errorf("popularity %v,%v: all requests are for all groups: want 100,100, or less than 100 %% of the groups", p.Alpha, p.Beta)
	}
	return nil
}

// checkDowngrade refuses users that come down where none can.
func (c *Config) checkDowngrade(r *world.Rules) error {
	switch p := c.Downgrade; {
	case !(p >= 0 && p <= 1):
		return fmt.Errorf("downgrade %v: want a probability", p)
	case p > 0 && !r.Shares:
		return fmt.Errorf("downgrade %v: its users cannot share what they hold alone", p)
	case p > 0 && !slices.ContainsFunc(c.Wants, protocol.Groups.Lowers):
		return fmt.Errorf("downgrade %v: want users that want a group such as !r, and come down to r", p)
	}
	return nil
}

// drawing says what c has of users that draw from groups.
func (c *Config) drawing() string {
	var parts []string
	if c.Groups != 0 {
		parts = append(parts, fmt.Sprintf("%d groups", c.Groups))
	}
	if c.PerRequest != 0 {
		parts = append(parts, fmt.Sprintf("%d a request", c.PerRequest))
	}
	if p := c.Popularity; p != (Popularity{}) {
		parts = append(parts, fmt.Sprintf("popularity %v,%v", p.Alpha, p.Beta))
	}
	return strings.Join(parts, ", ")
}

// comesDown draws whether user u, which has come inside, will come down to a group.
func (s *engine) comesDown(u int) bool {
	return s.Downgrades(s.monitor.Section(u), s.monitor.Group(u)) && s.load.ComesDown(u)
}

// downgrade lets a user come down, and leave when the rest of its hold is over.
func (s *engine) downgrade(it item) {
	u := s.ready(it)
	if u == nil {
		return
	}
	s.totals.Downgrades++
	s.schedule(int(it.to), userExit, u.rest)
	in := protocol.NewDowngrade(s.monitor.Group(int(it.to)).Below())
	s.logVerb(scenario.Downgrade, u.proc, 0, "")
	s.monitor.Input(int(it.to), s.now, in)
	s.input(u.proc, in)
}
