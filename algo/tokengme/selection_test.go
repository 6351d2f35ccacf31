package tokengme

import (
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// queueOf is a holder of the primary token with a queue: entries such as "a:2", a set of
// groups and an age.
func queueOf(selection int64, n int, entries ...string) *Process {
	p := newProcess(0, protocol.Config{N: n, Options: map[string]int64{"selection": selection}}, form{several: true})
	for i, text := range entries {
		set, age, _ := strings.Cut(text, ":")
		e := Entry{Process: protocol.ID(i), Number: 1, Groups: protocol.Groups(set)}
		if _, err := fmt.Sscan(age, &e.Age); err != nil {
			panic(err)
		}
		p.token.Queue = append(p.token.Queue, e)
		p.queued[i] = true
	}
	return p
}

// Mittal & Mohan 2007, section 3.2.1, for several groups section 5.1; and the other selections.
func TestSelection(t *testing.T) { test(t, selectionByStory) }

func selectionByStory() {
	for _, x := range []struct {
		queue                   []string
		priority, fifo, largest protocol.Group
	}{
		{[]string{"a:0"}, "a", "a", "a"},
		{[]string{"a:0", "b:0"}, "a", "a", "a"},        // the first one decides
		{[]string{"a:0", "b:0", "b:0"}, "b", "a", "b"}, // the number of requests
		{[]string{"a:2", "b:0", "b:0"}, "a", "a", "b"}, // their ages
		{[]string{"a:1", "b:0", "b:0"}, "a", "a", "b"}, // a tie
		{[]string{"a:2", "b:1", "b:1", "b:1", "a:0", "a:0"}, "b", "a", "a"},
		{[]string{"a:4", "b:3", "b:3", "c:0"}, "b", "a", "a"},      // four processes: a process that is as old comes first
		{[]string{"a:3", "b:3", "b:3", "c:0"}, "b", "a", "b"},      // who is younger does not
		{[]string{"!w:1", "!w:1", "a:0", "b:0"}, "!w", "!w", "!w"}, // one of the exclusive ones
		{[]string{"!w:1", "!w:1", "a:1", "a:0"}, "a", "!w", "a"},   // speaks for them
		{[]string{"a,b:0", "b,c:0", "c:0"}, "b", "b", "b"},         // a request counts in all its groups
		{[]string{"a,b:0", "c:0", "c:0", "b:0"}, "b", "b", "b"},
		{[]string{"a,b:0", "c:0", "c:0", "c:0"}, "c", "a", "c"},
	} {
		for selection, want := range []protocol.Group{x.priority, x.fifo, x.largest} {
			if got := queueOf(int64(selection), max(4, len(x.queue)), x.queue...).choose(); got != want {
				wrong("%v, selection %d: got %s, want %s", x.queue, selection, got, want)
			}
		}
	}
}

// Longest is what doc.go derives, and a bound of every run of the queue: in each session
// whoever is not in it may queue any request. A longest run is found by search, for up to 3 processes, and how long
// it is shows how much the bound leaves.
func TestLongest(t *testing.T) { test(t, longestByStory) }

func longestByStory() {
	for selection, want := range map[int64][]uint64{Priority: {0, 3, 7, 11}, FirstCome: {0, 1, 2, 3}, Largest: {0, 3, 5, 7}} {
		for k, want := range want {
			if got := Longest(selection, k+1); got != want {
				wrong("n=%d, selection %d: a bound of %d, want %d", k+1, selection, got, want)
			}
		}
	}
	want := map[int64][]uint64{Priority: {0, 1, 2}, FirstCome: {0, 1, 2}, Largest: {0, 1, 3}}
	for selection, list := range want {
		for k, want := range list {
			n := k + 1
			got := longest(selection, n, Longest(selection, n)+1)
			if got != want || got > Longest(selection, n) {
				wrong("n=%d, selection %d: a request waits for %d sessions, want %d, at most %d",
					n, selection, got, want, Longest(selection, n))
			}
		}
	}
}

// longest searches all runs of a queue for the oldest request, up to an age of stop.
func longest(selection int64, n int, stop uint64) (oldest uint64) {
	const groups = "abc!"
	seen := map[string]bool{}
	var fill func(queue []string)
	visit := func(queue []string) {
		key := strings.Join(queue, " ")
		if seen[key] || oldest >= stop {
			return
		}
		seen[key] = true
		p := queueOf(selection, n, queue...)
		var rest []string
		for _, e := range p.split(p.choose()) {
			oldest = max(oldest, e.Age)
			rest = append(rest, fmt.Sprintf("%s:%d", e.Groups, e.Age))
		}
		fill(rest)
	}
	fill = func(queue []string) {
		if len(queue) > 0 {
			visit(queue)
		}
		if len(queue) == n {
			return
		}
		for _, g := range groups {
			fill(append(queue[:len(queue):len(queue)], string(g)+":0"))
		}
	}
	fill(nil)
	return oldest
}
