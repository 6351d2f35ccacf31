package lasso_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
)

// A drawing is a graph as it stands in a file:
//
//	want violated 2 3     a run of two steps and a loop of three; or: want holds
//	strong m k            classes
//	s bad: m t            a state in which the property is violated as long as the run
//	                      stays in such states, and the classes with a step in it
//	s waits bad:          the same, but no fair run may rest there, though no class has
//	                      a step: something happens that the graph does not contain
//	s -> t: m             an edge, with the classes that it serves; ? is not known
//
// The first state is the initial one. States are numbered as they appear.
type drawing struct {
	want   string
	names  []string
	bad    []bool
	waits  []bool
	has    [][]lasso.Class
	to     [][]uint32
	serves [][][]lasso.Class
	class  []string
	isHard map[lasso.Class]bool
	asked  int
}

func (d *drawing) Len() int           { return len(d.names) }
func (d *drawing) Ends(s uint32) bool { return len(d.has[s]) == 0 && !d.waits[s] }

func (d *drawing) Edges(s uint32) []uint32 {
	d.ask()
	return d.to[s]
}

func (d *drawing) Enabled(list []lasso.Class, s uint32) []lasso.Class {
	d.ask()
	return append(list, d.has[s]...)
}

// ask ends a mutant of the solver that would go on for ever.
func (d *drawing) ask() {
	if d.asked++; d.asked > 1e6 {
		panic("asked a million times")
	}
}

func (d *drawing) Served(s uint32, some []lasso.Class, f func(place int, c lasso.Class)) {
	for k, served := range d.serves[s] {
		for _, c := range served {
			if slices.Contains(some, c) {
				f(k, c)
			}
		}
	}
}

func (d *drawing) Strong(c lasso.Class) bool { return d.isHard[c] }

func (d *drawing) state(name string) uint32 {
	i := slices.Index(d.names, name)
	if i < 0 {
		i = len(d.names)
		d.names, d.bad, d.waits = append(d.names, name), append(d.bad, false), append(d.waits, false)
		d.has, d.to, d.serves = append(d.has, nil), append(d.to, nil), append(d.serves, nil)
	}
	return uint32(i)
}

func (d *drawing) classes(words string) []lasso.Class {
	var list []lasso.Class
	for _, w := range strings.Fields(words) {
		i := slices.Index(d.class, w)
		if i < 0 {
			i = len(d.class)
			d.class = append(d.class, w)
		}
		list = append(list, lasso.Class(i))
	}
	slices.Sort(list)
	return list
}

func parse(text string) (*drawing, error) {
	d := &drawing{isHard: map[lasso.Class]bool{}}
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		head, classes, _ := strings.Cut(line, ":")
		words := strings.Fields(head)
		switch {
		case line == "" || line[0] == '#':
		case words[0] == "want":
			d.want = strings.Join(words[1:], " ")
		case words[0] == "strong":
			for _, c := range d.classes(strings.Join(words[1:], " ")) {
				d.isHard[c] = true
			}
		case len(words) == 3 && words[1] == "->":
			from, to := d.state(words[0]), lasso.Nowhere
			if words[2] != "?" {
				to = d.state(words[2])
			}
			d.to[from] = append(d.to[from], to)
			d.serves[from] = append(d.serves[from], d.classes(classes))
		default:
			s := d.state(words[0])
			d.bad[s], d.waits[s] = slices.Contains(words, "bad"), slices.Contains(words, "waits")
			d.has[s] = d.classes(classes)
		}
	}
	if d.want == "" || len(d.names) == 0 {
		return nil, fmt.Errorf("no want, or no states")
	}
	return d, nil
}

func (d *drawing) fair() *lasso.Lasso {
	return lasso.New(d, func() bool { return false }).Fair(func(s uint32) bool { return d.bad[s] })
}

// verdict is what want should say.
func (d *drawing) verdict() string {
	l := d.fair()
	if l == nil {
		return "holds"
	}
	return fmt.Sprintf("violated %d %d", d.steps(l.First), len(l.Loop))
}

// steps is the length of a shortest way to a state.
func (d *drawing) steps(to uint32) int {
	depth := map[uint32]int{0: 0}
	for queue := []uint32{0}; len(queue) > 0; queue = queue[1:] {
		for _, t := range d.to[queue[0]] {
			if _, known := depth[t]; !known && t != lasso.Nowhere {
				depth[t] = depth[queue[0]] + 1
				queue = append(queue, t)
			}
		}
	}
	return depth[to]
}

// wrong says what is wrong with a lasso: the graph is asked, not the solver.
func (d *drawing) wrong(l *lasso.Lasso) error {
	if len(l.Loop) == 0 {
		if !d.Ends(l.First) || !d.bad[l.First] {
			return fmt.Errorf("no run may rest in %s", d.names[l.First])
		}
		return nil
	}
	at := l.First
	absent, served, enabled := map[lasso.Class]bool{}, map[lasso.Class]bool{}, map[lasso.Class]bool{}
	for _, a := range l.Loop {
		if a.From != at || !d.bad[at] {
			return fmt.Errorf("the loop leaves %s in %s", d.names[a.From], d.names[at])
		}
		for c := range lasso.Class(len(d.class)) {
			if slices.Contains(d.has[at], c) {
				enabled[c] = true
			} else {
				absent[c] = true
			}
		}
		for _, c := range d.serves[at][a.Place] {
			served[c] = true
		}
		at = d.to[at][a.Place]
	}
	if at != l.First {
		return fmt.Errorf("the loop ends in %s", d.names[at])
	}
	for c := range enabled {
		if !served[c] && (!absent[c] || d.isHard[c]) {
			return fmt.Errorf("the loop neglects %s", d.class[c])
		}
	}
	return nil
}

func drawings() (map[string]*drawing, error) {
	files, err := filepath.Glob("../../testdata/*.graph")
	if err != nil || len(files) < 15 {
		return nil, fmt.Errorf("%d files (%v)", len(files), err)
	}
	all := map[string]*drawing{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if all[filepath.Base(f)], err = parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
	}
	return all, nil
}

// Each file says what it is about, and its verdict.
func TestDrawings(t *testing.T) {
	all, err := drawings()
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range all {
		t.Run(name, func(t *testing.T) {
			if got := d.verdict(); got != d.want {
				t.Errorf("%s, want %s", got, d.want)
			}
			if l := d.fair(); l != nil {
				if err := d.wrong(l); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// random draws a small graph.
func random(r *rand.Rand) *drawing {
	n, k := 1+r.IntN(6), 1+r.IntN(4)
	d := &drawing{isHard: map[lasso.Class]bool{}}
	for i := range n {
		d.state(fmt.Sprint(i))
		d.bad[i], d.waits[i] = r.IntN(5) > 0, r.IntN(3) == 0
	}
	for c := range k {
		d.classes(fmt.Sprint("c", c))
		if r.IntN(3) == 0 {
			d.isHard[lasso.Class(c)] = true
		}
		for i := range n {
			if r.IntN(5) > 1 {
				d.has[i] = append(d.has[i], lasso.Class(c))
			}
		}
	}
	for range r.IntN(3 * n) {
		from, to := r.IntN(n), uint32(r.IntN(n))
		if r.IntN(8) == 0 {
			to = lasso.Nowhere
		}
		d.to[from] = append(d.to[from], to)
		var served []lasso.Class
		for c := range lasso.Class(k) {
			if r.IntN(3) == 0 {
				served = append(served, c)
			}
		}
		d.serves[from] = append(d.serves[from], served)
	}
	return d
}

// violated tries each set of bad states: is there a fair run that visits just these
// again and again, along all edges between them?
func (d *drawing) violated() bool {
	for set := 1; set < 1<<len(d.names); set++ {
		if d.possible(set) {
			return true
		}
	}
	return false
}

func (d *drawing) possible(set int) bool {
	in := func(s uint32) bool { return s != lasso.Nowhere && set>>s&1 == 1 }
	var states []uint32
	for s := range uint32(len(d.names)) {
		if in(s) {
			states = append(states, s)
		}
	}
	if slices.ContainsFunc(states, func(s uint32) bool { return !d.bad[s] }) {
		return false
	}
	if len(states) == 1 && d.Ends(states[0]) {
		return true
	}
	// reach[s] are the states to which a way of at least one edge leads within the set.
	reach := map[uint32]int{}
	for again := true; again; {
		again = false
		for _, s := range states {
			for _, t := range d.to[s] {
				if in(t) && reach[s]|1<<t|reach[t] != reach[s] {
					reach[s] |= 1<<t | reach[t]
					again = true
				}
			}
		}
	}
	served, some, all := map[lasso.Class]bool{}, map[lasso.Class]bool{}, map[lasso.Class]int{}
	for _, s := range states {
		if reach[s] != set {
			return false
		}
		for k, t := range d.to[s] {
			for _, c := range d.serves[s][k] {
				served[c] = served[c] || in(t)
			}
		}
		for _, c := range d.has[s] {
			some[c] = true
			all[c]++
		}
	}
	for c := range some {
		if !served[c] && (all[c] == len(states) || d.isHard[c]) {
			return false
		}
	}
	return true
}

// disagreement draws graphs until the solver is wrong about one.
func disagreement(graphs int) string {
	r := rand.New(rand.NewPCG(1, 2))
	violated := 0
	for i := range graphs {
		d := random(r)
		l, want := d.fair(), d.violated()
		switch {
		case (l != nil) != want:
			return fmt.Sprintf("graph %d: violated is %v, want %v: %+v", i, l != nil, want, d)
		case l == nil:
			continue
		}
		violated++
		if err := d.wrong(l); err != nil {
			return fmt.Sprintf("graph %d: %v: %+v", i, err, d)
		}
		if s := d.shortfall(l.First); s != "" {
			return fmt.Sprintf("graph %d: %s: %+v", i, s, d)
		}
	}
	if violated < graphs/10 || violated > graphs/10*9 {
		return fmt.Sprintf("%d of %d graphs are violated: that tests little", violated, graphs)
	}
	return ""
}

// shortfall says that some run was to be preferred to one with the given start.
func (d *drawing) shortfall(first uint32) string {
	rests := func(s uint32) bool { return d.bad[s] && d.Ends(s) }
	for s := range first {
		if rests(s) {
			return "a run rests earlier"
		}
	}
	for set := 1; set < 1<<len(d.names) && !rests(first); set++ {
		if set&(1<<first-1) != 0 && d.possible(set) {
			return "a loop begins earlier"
		}
	}
	return ""
}

// The solver agrees with a search through all sets of states of small graphs.
func TestAllSets(t *testing.T) {
	if d := disagreement(5000); d != "" {
		t.Error(d)
	}
}

// It gives up when told, and says so; and then it is as good as new.
func TestStop(t *testing.T) {
	if fault := stop(); fault != "" {
		t.Error(fault)
	}
}

func stop() string {
	const n = 5000
	d := &drawing{isHard: map[lasso.Class]bool{}}
	for i := range n {
		s := d.state(fmt.Sprint(i))
		d.bad[s], d.has[s] = true, d.classes("m")
		d.to[s], d.serves[s] = []uint32{uint32((i + 1) % n)}, [][]lasso.Class{d.classes("m")}
	}
	polls := 0
	s := lasso.New(d, func() bool { polls++; return polls == n/1024+1 })
	all := func(uint32) bool { return true }
	if l := s.Fair(all); l != nil || !s.Stopped() {
		return fmt.Sprintf("lasso %v, stopped %v, want none because it was stopped", l != nil, s.Stopped())
	}
	if l := s.Fair(all); l == nil || len(l.Loop) != n || s.Stopped() {
		return fmt.Sprintf("lasso %v, stopped %v, want a loop through all states", l != nil, s.Stopped())
	}
	if polls > 100 {
		return fmt.Sprintf("polled %d times", polls)
	}
	return ""
}

// Components come in an order in which their successors are known, and a cycle goes
// through each edge within one.
func TestComponents(t *testing.T) {
	if fault := components(500); fault != "" {
		t.Error(fault)
	}
}

func components(graphs int) (fault string) {
	r := rand.New(rand.NewPCG(3, 4))
	for range graphs {
		d := random(r)
		s := lasso.New(d, func() bool { return false })
		done := map[uint32]bool{}
		s.Components(func(s uint32) bool { return d.bad[s] }, func(c []uint32) {
			for _, i := range c {
				if done[i] || !d.bad[i] {
					fault = fmt.Sprintf("%d is in two components, or should be in none: %+v", i, d)
				}
				done[i] = true
			}
			for _, i := range c {
				for k, to := range d.to[i] {
					if to != lasso.Nowhere && d.bad[to] && !done[to] {
						fault = fmt.Sprintf("%d leads to %d, which comes later: %+v", i, to, d)
					}
					if f := d.cycle(s, c, lasso.Arc{From: i, Place: k}); f != "" {
						fault = fmt.Sprintf("edge %d of %d: %s: %+v", k, i, f, d)
					}
				}
			}
		})
		for i, bad := range d.bad {
			if bad != done[uint32(i)] {
				fault = fmt.Sprintf("%d is in no component: %+v", i, d)
			}
		}
	}
	return fault
}

// cycle says what is wrong with the loop from arc a.
func (d *drawing) cycle(s *lasso.Solver, c []uint32, a lasso.Arc) string {
	to := d.to[a.From][a.Place]
	if !slices.Contains(c, to) {
		return ""
	}
	l := s.Cycle(c, a)
	if len(l.Loop) == 0 || l.Loop[0] != a || l.First != a.From {
		return fmt.Sprintf("the loop %+v", l)
	}
	at := l.First
	for k, b := range l.Loop {
		if b.From != at || k > 0 && at == l.First {
			return fmt.Sprintf("the loop %+v", l)
		}
		at = d.to[at][b.Place]
	}
	if at != l.First || len(l.Loop) > len(c) {
		return fmt.Sprintf("the loop %+v", l)
	}
	return ""
}

func TestMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Share: 3,
		Checks: []mutant.Check{
			func() (string, error) {
				all, err := drawings()
				for name, d := range all {
					if got := d.verdict(); got != d.want {
						return fmt.Sprintf("%s: %s", name, got), err
					}
				}
				return "", err
			},
			func() (string, error) { return disagreement(2000), nil },
			func() (string, error) { return components(500), nil },
			func() (string, error) { return stop(), nil },
		},
		Survivors: map[string]string{
			"Solver.Fair: !s.stopped dropped":                   "components gives up too, at its first state",
			"Solver.everywhere: len(all) == 0 -> false":         "saves time only: from no classes nothing is taken away",
			"Solver.unserved: len(left) == 0 -> false":          "saves time only: nothing is asked for any more",
			"Solver.strongIn: !found dropped":                   "a class that is there twice is asked for and served twice",
			"Solver.lasso: !slices.Contains(w.owed, f) -> true": "the same",
		},
		Patience: 2 * time.Second,
		Replace: []mutant.Replacement{
			mutant.Edit("fairness of one class is forgotten", "all := s.g.Enabled(nil, c[0])",
				"all := s.g.Enabled(nil, c[0])\n\tall = all[:max(0, len(all)-1)]"),
			mutant.Edit("strong classes leave out nothing", "s.unserved(c, set, s.strongIn(c))", "s.unserved(c, set, nil)"),
			mutant.Edit("an edge out of the component serves, too", "return to != Nowhere && s.part[to] == set", "return to != Nowhere"),
		},
	})
}
