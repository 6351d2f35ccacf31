package diagram

import (
	"slices"
	"strings"

	"github.com/poundlock/poundlock/verify/scenario"
)

// A flight is one message: an arrow from one step to another one.
type flight struct {
	from, to string
	text     string
	sent     int  // index of the step
	arrived  int  // index of the step, or one of the following
	gone     bool // while matching: a fault took it
}

// Where a message that never arrives ended.
const (
	onItsWay = -1 - iota // it is still on its way at the end
	lost                 // the channel lost it
)

// flights matches deliveries with what was sent.
func flights(r scenario.Run) (list []flight) {
	for i, e := range r.Steps {
		take(list, e)
		if e.Verb == scenario.Deliver {
			list = arrive(list, e, i)
		}
		for _, f := range e.Effects {
			if f.Do == scenario.Sends {
				sent := flight{from: e.Process, to: f.To, text: f.Message, sent: i, arrived: onItsWay}
				if f.Lost != "" {
					sent.arrived = lost
				}
				list = append(list, sent)
			}
		}
	}
	return list
}

// arrive ends the flight that e delivers, if such a message was sent in the run.
func arrive(list []flight, e scenario.Event, i int) []flight {
	best := -1
	for k, f := range list {
		switch {
		case f.from != e.From || f.to != e.To || f.text != e.Message || f.arrived == lost:
		case best < 0, rank(f) < rank(list[best]):
			best = k
		case rank(f) == rank(list[best]) && f.arrived >= 0: // the last one that arrived
			best = k
		}
	}
	if best < 0 {
		return list
	}
	if list[best].arrived >= 0 {
		list, best = append(list, list[best]), len(list)
	}
	list[best].arrived = i
	return list
}

// rank orders equal messages by how likely it is that they arrive now.
func rank(f flight) int {
	switch {
	case f.arrived >= 0:
		return 2
	case f.gone:
		return 1
	}
	return 0
}

// take lets a fault take messages from the channels.
func take(list []flight, e scenario.Event) {
	gone := func(from, to string) {
		for k := range list {
			if f := &list[k]; f.arrived == onItsWay && f.to == to && (from == "" || f.from == from) {
				f.gone = true
			}
		}
	}
	switch e.Verb {
	case scenario.Crash:
		gone("", e.Process)
	case scenario.Lapse, scenario.Suspect:
		if !strings.HasPrefix(e.Process, "p") { // members that suspect each other hear what was sent before
			gone(e.Subject, e.Process)
		}
	case scenario.Lose:
		k := slices.IndexFunc(list, func(f flight) bool {
			return f.from == e.From && f.to == e.To && f.text == e.Message && f.arrived == onItsWay
		})
		if k >= 0 {
			list[k].arrived = lost
		}
	}
}
