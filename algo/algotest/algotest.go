// Package algotest is the conformance suite: what every algorithm must satisfy
// to be simulated, model-checked and run on a network. A test of one line runs
// all of it:
//
//	func TestConformance(t *testing.T) { algotest.Run(t, Algorithm) }
//
// Most parts watch the algorithm through a probe: a process that wraps the real
// one, is driven by the simulator with every fault that the algorithm's model
// allows, and at each step repeats on a copy what the process did.
//
// Beside the suite stand FuzzRead and FuzzLoadState, the fuzz targets of the two
// decoders, and package mutant, which tests the tests.
package algotest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Options adapt the suite to an algorithm. The zero value suits most.
type Options struct {
	// Sizes are the numbers of members in simulated runs. Default 2, 3 and 5, of those up to Info.Largest.
	Sizes []int
	// Options are the algorithm's own, as in protocol.Config.
	Options map[string]int64
	// Exhaustive are the small models in which all properties must hold but those that the
	// algorithm lacks. Default: two members, two clients where there are any, one entry
	// each, and of a group algorithm all properties, with two groups and an exclusive one; an
	// election has three members, a crash and a recovery where it survives them. A
	// model that names no cap on memory has 256 MiB: more is no small model.
	Exhaustive []check.Config
	// Lacking are models in which the properties of Info.Lacks and Info.Refuted are violated,
	// each in one of them: each in which it is named, or that names none. An algorithm that
	// lacks something needs them.
	Lacking []check.Config
	// Allocations is how many a step may make in steady state. Default 0; an
	// algorithm whose messages carry vectors needs a little more.
	Allocations float64
	// Skip maps a part that does not apply to the reason.
	Skip map[string]string
}

const smallMemory = 256 << 20

// errNothing says that a part has nothing to examine.
var errNothing = errors.New("nothing to examine")

// A suite is one algorithm with its completed options. The types of messages are erased, so that the
// suite is compiled once.
type suite struct {
	alg    protocol.Algorithm[any]
	absent []string // functions that the algorithm has not
	replay replay   // by its own processes
	Options
}

// A part is one subtest. It returns what is wrong, with the way to see it again.
type part struct {
	name string
	run  func(*suite) error
}

func parts() []part {
	return []part{
		{"Info", (*suite).info},
		{"Codec", (*suite).codec},
		{"State", (*suite).state},
		{"Shift", (*suite).shift},
		{"Determinism", (*suite).determinism},
		{"Allocations", (*suite).allocations},
		{"Events", (*suite).events},
		{"Claims", (*suite).claims},
		{"Exhaustive", (*suite).exhaustive},
		{"Lacking", (*suite).lacking},
		{"Order", (*suite).order},
		{"Fencing", (*suite).fencing},
	}
}

// Run runs every part of the suite as a subtest. It takes at most one Options.
func Run[M any](t *testing.T, a protocol.Algorithm[M], o ...Options) {
	t.Helper()
	s, err := newSuite(a, o...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) {
			if why := s.Skip[p.name]; why != "" {
				t.Skip("does not apply: " + why)
			}
			if err := p.run(s); errors.Is(err, errNothing) {
				t.Skip(err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func newSuite[M any](a protocol.Algorithm[M], options ...Options) (*suite, error) {
	s := &suite{alg: protocol.Erase(a), replay: replays(a)}
	for name, absent := range map[string]bool{
		"New": a.New == nil, "Fields": a.Fields == nil, "KindOf": a.KindOf == nil, "Ints": a.Ints == nil, "Text": a.Text == nil,
	} {
		if absent {
			s.absent = append(s.absent, name)
		}
	}
	return s, s.complete(options)
}

// complete sets the options, and the defaults of those that are missing.
func (s *suite) complete(options []Options) error {
	a := s.alg
	var o Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		return errors.New("algotest: more than one Options")
	}
	if len(o.Sizes) == 0 {
		for _, n := range []int{2, 3, 5} {
			if a.Fit(n) == n {
				o.Sizes = append(o.Sizes, n)
			}
		}
	}
	if len(o.Exhaustive) == 0 {
		c := check.Config{Config: protocol.Config{N: 2, Options: o.Options}}
		if a.Users == protocol.Clients {
			c.Clients = 2
		}
		if a.Grouped {
			sets := []protocol.Groups{"1", "2", protocol.Alone + "w"}
			if a.Several {
				sets = append(sets, "1,2")
			}
			c.Wants, c.Properties = [][]protocol.Groups{sets}, []string{"all"}
		}
		if a.Users == protocol.Nobody {
			c.N, c.Properties = 3, []string{"all"}
			c.Crash, c.Recover = one(a.Tolerates&protocol.Crash != 0), one(a.Tolerates&protocol.Recovery != 0)
		}
		o.Exhaustive = []check.Config{c}
	}
	o.Exhaustive = slices.Clone(o.Exhaustive)
	for i := range o.Exhaustive {
		if o.Exhaustive[i].MaxMemory == 0 {
			o.Exhaustive[i].MaxMemory = smallMemory
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Skip)) {
		if !slices.ContainsFunc(parts(), func(p part) bool { return p.name == name }) {
			return fmt.Errorf("algotest: Skip names no part of the suite: %q", name)
		}
		if strings.TrimSpace(o.Skip[name]) == "" {
			return fmt.Errorf("algotest: Skip gives no reason for %q", name)
		}
	}
	s.Options = o
	return nil
}

// one is how many faults of a kind a small model has, where there are any.
func one(any bool) int {
	if any {
		return 1
	}
	return 0
}

// Examine returns a function that makes all parts of the suite that are not
// skipped, and returns what is wrong: a mutant.Check.
func Examine[M any](a protocol.Algorithm[M], o Options) func() (fault string, err error) {
	return func() (string, error) {
		s, err := newSuite(a, o)
		if err != nil {
			return "", err
		}
		for _, p := range parts() {
			if s.Skip[p.name] != "" {
				continue
			}
			if err := p.run(s); err != nil && !errors.Is(err, errNothing) {
				return strings.ToLower(p.name) + " by conformance, " + err.Error(), nil
			}
		}
		return "", nil
	}
}

// info: what tables and drivers read is there.
func (s *suite) info() error {
	i := s.alg.Info
	if i.Name == "" || strings.ContainsFunc(i.Name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return fmt.Errorf("name %q: want lower case, digits and hyphens", i.Name)
	}
	missing := slices.Clone(s.absent)
	for what, absent := range map[string]bool{
		"Title": i.Title == "", "Source": i.Source == "", "Messages": len(i.Messages) == 0 && i.Registers == nil,
		"Claims": len(i.Claims) == 0 && !s.elects(),
	} {
		if absent {
			missing = append(missing, what)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("%s lacks %s", i.Name, strings.Join(missing, ", "))
	}
	if (s.alg.MapState == nil) != (s.alg.MapMsg == nil) {
		return errors.New("MapState and MapMsg make one claim: want both or neither")
	}
	return nil
}
