package api

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// However many places one host takes, another one gets in; a lone host has them all; and
// nothing stays counted.
func TestPlaces(t *testing.T) {
	a, b := "10.0.0.9", "10.0.0.1"
	p := newPlaces("connections", 10)
	var given []string
	enter := func(host string, name string, spare bool) (*place, error) {
		return p.enter(host, spare, func(why error) { given = append(given, name+": "+why.Error()) })
	}
	must := func(host string, name string, spare bool) *place {
		t.Helper()
		x, err := enter(host, name, spare)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	var all []*place
	for i := range 10 {
		all = append(all, must(a, fmt.Sprint("a", i), i == 7))
	}
	for i := range 5 { // the spare one first, and then the oldest
		all = append(all, must(b, fmt.Sprint("b", i), false))
	}
	var names []string
	for _, g := range given {
		name, why, _ := strings.Cut(g, ": ")
		names = append(names, name)
		if !strings.Contains(why, "10.0.0.9 has ") || !strings.Contains(why, "connections, and 10 are the limit") {
			t.Error(why)
		}
	}
	if got := strings.Join(names, " "); got != "a7 a0 a1 a2 a3" {
		t.Errorf("given up: %s", got)
	}
	for _, host := range []string{a, b} { // each has half: no more for either
		if _, err := enter(host, "more", false); err == nil || !strings.Contains(err.Error(), host+" has 5 connections") {
			t.Errorf("one more: %v", err)
		}
	}
	all[len(all)-1].setSpare(true)
	all = append(all, must(b, "b5", false)) // in the place of its own spare one
	if len(given) != 6 || !strings.HasPrefix(given[5], "b4: ") {
		t.Errorf("given up: %q", given)
	}
	for range 2 { // a second time changes nothing
		for _, x := range all {
			x.leave()
			x.setSpare(true)
		}
	}
	if p.taken != 0 || len(p.hosts) != 0 {
		t.Errorf("%d places are taken by %d hosts", p.taken, len(p.hosts))
	}
}

// With any order of comings and goings there are never too many, and a host that has two
// fewer than another one is never refused.
func TestPlacesAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := newPlaces("calls", 20)
	inside := map[*place]bool{}
	for range 20_000 {
		host := fmt.Sprint("10.0.0.", r.IntN(r.IntN(8)+1))
		if len(inside) > 0 && r.IntN(3) == 0 {
			for x := range inside {
				x.leave()
				delete(inside, x)
				break
			}
			continue
		}
		most, mine := 0, 0
		for _, h := range p.hosts {
			most = max(most, h.count())
		}
		if h := p.hosts[host]; h != nil {
			mine = h.count()
		}
		var x *place
		x, err := p.enter(host, r.IntN(2) == 0, func(error) {
			for y := range inside {
				if y.list == nil {
					delete(inside, y)
				}
			}
		})
		if err == nil {
			inside[x] = true
		} else if most > mine+1 {
			t.Fatalf("a host with %d is refused where another one has %d", mine, most)
		}
		if p.taken > 20 || p.taken != len(inside) {
			t.Fatalf("%d are taken, and %d inside", p.taken, len(inside))
		}
	}
}
