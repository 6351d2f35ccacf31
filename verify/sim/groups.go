package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/world"
)

// DefaultGroups is Config.Groups where users want groups and Config.Wants does not say which.
const DefaultGroups = 2

// What a run can be asked for.
const (
	maxGroups     = 1 << 20
	maxPerRequest = 1000
)

// Popularity says that Beta % of the requests are for the first Alpha % of the groups, of
// which there is at least one. The groups on either side are alike; where one side has
// none, all requests are for the other one.
type Popularity struct{ Alpha, Beta float64 }

// popular is how many of the groups that is.
func (p Popularity) popular(groups int) int {
	return min(groups, max(1, int(math.Round(p.Alpha*float64(groups)/100))))
}

// checkGroups completes what c says of groups.
func (c *Config) checkGroups(r *world.Rules) error {
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
	p := cmp.Or(c.Popularity, Popularity{100, 100})
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

// wishes draw what users want.
type wishes struct {
	groups  []protocol.Groups // by number
	popular int               // the first ones
	share   float64           // the part of the requests that goes to those
	size    int               // groups a request names
	taken   []int             // scratch
	names   []string          // scratch
}

// reset is the wishes of a run, in the memory of an earlier one.
func (w *wishes) reset(c *Config) {
	for k := len(w.groups); k < c.Groups; k++ {
		w.groups = append(w.groups, protocol.Groups(strconv.Itoa(k+1)))
	}
	w.groups = w.groups[:c.Groups]
	w.popular, w.share, w.size = c.Popularity.popular(c.Groups), c.Popularity.Beta/100, c.PerRequest
}

// draw takes the next request from a stream.
func (w *wishes) draw(r *stream) protocol.Groups {
	if w.size == 1 {
		return w.groups[w.one(r)]
	}
	w.taken = w.taken[:0]
	for range w.size {
		g := w.one(r)
		i, _ := slices.BinarySearch(w.taken, g)
		w.taken = slices.Insert(w.taken, i, g)
	}
	w.names = w.names[:0]
	for _, g := range w.taken {
		w.names = append(w.names, string(w.groups[g]))
	}
	set, _ := protocol.ParseGroups(strings.Join(w.names, ",")) // numbers are good names
	return set
}

// one draws a group that is not taken yet: first whether it is a popular one, and where
// those are all taken, another one.
func (w *wishes) one(r *stream) int {
	hot, _ := slices.BinarySearch(w.taken, w.popular) // of those that are taken
	cold := len(w.taken) - hot
	least, free := 0, w.popular-hot
	if others := len(w.groups) - w.popular - cold; others > 0 && (free == 0 || r.Float64() >= w.share) {
		least, free = w.popular, others
	}
	g := least + r.IntN(free)
	for _, t := range w.taken {
		if t >= least && t <= g {
			g++
		}
	}
	return g
}

// wanted is what user u wants now. Who did not get it wants the same again.
func (s *simulator[M]) wanted(u int) protocol.Groups {
	us := &s.users[u]
	switch {
	case !s.alg.Grouped:
		return ""
	case s.cfg.Wants != nil:
		return s.cfg.Wants[u]
	case us.wants == "":
		us.wants = s.wishes.draw(&us.groups)
	}
	return us.wants
}
