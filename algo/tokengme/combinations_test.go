package tokengme

import (
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// The catalogue has the plain form and each of the three others by itself. They go together,
// too, with each selection and each admission: two processes with two entries each, or three
// clients of two members; and three processes with two, one and one entries, or four clients
// of three members, three with bounded numbers.
func TestCombinations(t *testing.T) {
	full := lane.Long.Runs()
	if !full {
		fmt.Println("SHORTENED: TestCombinations of tokengme has two members, TEST_LANE=long takes more, and all selections")
	}
	for k := range 8 {
		f := form{several: k&1 > 0, bounded: k&2 > 0, clients: k&4 > 0}
		for admission := range int64(2) {
			if f.several && admission == Open {
				continue
			}
			small, large := f.models()
			combination(t, f, Priority, admission, small)
			for selection := range int64(3) {
				if full {
					combination(t, f, selection, admission, large)
				}
			}
		}
	}
}

func (f form) models() (small, large check.Config) {
	wants, first := []protocol.Groups{"!w", "1", "2"}, twoGroups
	if f.several {
		wants, first = sets, sets[1:]
	}
	lists := [][]protocol.Groups{first, {"1"}, {"2"}, {"!w"}}
	if !f.clients {
		small, large = model(2, wants, 2), model(3, nil, 2, 1, 1)
		large.Wants = lists[:3]
		return small, large
	}
	if f.bounded {
		lists = lists[:3]
	}
	small, large = clients(wants, wants, wants), clients(lists...)
	large.N = 3
	return small, large
}

func combination(t *testing.T, f form, selection, admission int64, c check.Config) {
	t.Helper()
	c.Properties = []string{"all"}
	c.Options = map[string]int64{"selection": selection}
	if !f.several {
		c.Options["admission"] = admission
	}
	holds(t, f.algorithm(), c)
}
