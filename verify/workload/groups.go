package workload

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// Popularity says that Beta % of the requests are for the first Alpha % of the groups, of
// which there is at least one. The groups on either side are alike; where one side has
// none, all requests are for the other one.
type Popularity struct{ Alpha, Beta float64 }

// popular is how many of the groups that is.
func (p Popularity) popular(groups int) int {
	return min(groups, max(1, int(math.Round(p.Alpha*float64(groups)/100))))
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
func (w *wishes) draw(r *Stream) protocol.Groups {
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
func (w *wishes) one(r *Stream) int {
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
