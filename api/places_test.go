package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/limit"
)

// However many places one host takes, another one gets in; a lone host has them all; and
// nothing stays counted.
func TestPlaces(t *testing.T) {
	a, b := "10.0.0.9", "10.0.0.1"
	p := newPlaces("connections", 10)
	var given []string
	enter := func(host string, name string, spare bool) (*limit.Guest, error) {
		return p.enter(host, spare, func(why error) { given = append(given, name+": "+why.Error()) })
	}
	must := func(host string, name string, spare bool) *limit.Guest {
		t.Helper()
		x, err := enter(host, name, spare)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	var all []*limit.Guest
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
	all[len(all)-1].SetSpare(true)
	all = append(all, must(b, "b5", false)) // in the place of its own spare one
	if len(given) != 6 || !strings.HasPrefix(given[5], "b4: ") {
		t.Errorf("given up: %q", given)
	}
	for range 2 { // a second time changes nothing
		for _, x := range all {
			x.Leave()
			x.SetSpare(true)
		}
	}
	if p.Size() != 0 {
		t.Errorf("%d places are taken", p.Size())
	}
}
