package tokengme

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// A seen is what all members of a run know of the queue of the primary token, and of the
// clients that wait at them.
type seen struct {
	oldest   uint64 // age of an entry
	priority uint64
	requests uint64 // of a member, answered while one client waited there
	wrong    string // where they are too many
	forgot   string // where what is remembered of conflicts is not what the requests say
}

// A watch is a member that tells.
type watch struct {
	protocol.Process[Message]
	*seen
	clients map[user]*waits
}

// waits is a client that waits.
type waits struct {
	since uint64 // requests of the member that had been answered when it came
	most  uint64 // how many more there may be
}

// Step implements protocol.Process.
func (w watch) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	p, member := w.Process.(*Process)
	if !member {
		w.Process.Step(ev, out)
		return
	}
	before := p.answered()
	w.Process.Step(ev, out)
	w.clientsOf(p, before)
	if p.held && !p.token.Primary && p.contested != p.opposed() && w.forgot == "" {
		w.forgot = fmt.Sprintf("#%d: a conflicting request is known: %t; remembered: %t", p.id, p.opposed(), p.contested)
	}
	if !p.held || !p.token.Primary {
		return
	}
	p.weigh()
	for _, e := range p.token.Queue {
		w.oldest = max(w.oldest, e.Age)
	}
	for _, t := range p.tally {
		w.priority = max(w.priority, t.priority)
	}
}

func (p *Process) answered() uint64 {
	if p.outstanding {
		return p.requests[p.id].number - 1
	}
	return p.requests[p.id].number
}

// clientsOf compares those who wait with those who did before a step.
func (w watch) clientsOf(p *Process, before uint64) {
	for i, u := range p.waiting {
		key := user{id: u.id, try: u.try}
		if w.clients[key] == nil && p.local {
			w.clients[key] = &waits{before, different(p.waiting[:i+1])}
		}
	}
	for u, c := range w.clients {
		n := p.answered() - c.since
		w.requests = max(w.requests, n)
		if n > c.most && w.wrong == "" {
			w.wrong = fmt.Sprintf("%d requests of #%d were answered while #%d waited, at most %d", n, p.id, u.id, c.most)
		}
		if !slices.ContainsFunc(p.waiting, func(v user) bool { return byID(u, v) == 0 }) {
			delete(w.clients, u)
		}
	}
}

// different is how many wishes there are among those who wait, each exclusive one for itself.
func different(list []user) (n uint64) {
	for i, u := range list {
		alone := protocol.Group(u.wants).Exclusive()
		if alone || !slices.ContainsFunc(list[:i], func(v user) bool { return v.wants == u.wants }) {
			n++
		}
	}
	return n
}

func watched(a protocol.Algorithm[Message]) (protocol.Algorithm[Message], *seen) {
	b, s := a, &seen{}
	b.MapState = nil
	b.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return watch{a.New(id, c), s, map[user]*waits{}}
	}
	return b, s
}

// overlap is a run with many readers and a writer at one member, a writer and who wants a
// group that nobody else does at another one, and some of each at those that remain, all of
// them again and again and without a pause.
func overlap(n, readers, entries int, selection int64) (r sim.Result, s *seen, err error) {
	home := readers + 1
	c := sim.Config{
		Config:  protocol.Config{N: n, Options: map[string]int64{"per": int64(home), "selection": selection}},
		Clients: n * home, Hold: sim.Exponential(400 * time.Millisecond), Think: sim.Constant(0),
	}
	c.Wants, c.Entries = slices.Repeat([]protocol.Groups{"hot"}, c.Clients), make([]int, c.Clients)
	at := func(member int, wants ...protocol.Groups) {
		for i, w := range wants {
			c.Wants[member*home+i], c.Entries[member*home+i] = w, entries
		}
	}
	at(0, append(slices.Repeat([]protocol.Groups{"hot"}, readers), "!w")...)
	at(1, "!w", "cold")
	for member := 2; member < n; member++ {
		at(member, "hot", "!w", "cold", "hot")
	}
	a, s := watched(WithClients)
	r, err = sim.Run(a, c)
	return r, s, err
}

// Readers overlap for ten minutes, and yet no request of a member waits for longer than
// Longest, and no client for more of them than there are different wishes before its own.
func TestOverlappingReaders(t *testing.T) {
	const readers = 64
	for n := 3; n <= 5; n++ {
		for selection := range int64(3) {
			r, s, err := overlap(n, readers, 165, selection)
			if err != nil || r.ViolationCount > 0 {
				t.Fatal(err, r.Violations)
			}
			if s.oldest > Longest(selection, n) || s.wrong != "" || r.VirtualSeconds < 600 || r.Concurrency.Max < readers/2 {
				t.Errorf("n=%d, selection %d: an entry waits for %d sessions, at most %d; %s; %g s, %d inside together",
					n, selection, s.oldest, Longest(selection, n), s.wrong, r.VirtualSeconds, r.Concurrency.Max)
			}
			t.Logf("n=%d, selection %d: at most %d sessions of %d, %d requests of a member, %.0f s, %d entries, waiting at most %.0f ms",
				n, selection, s.oldest, Longest(selection, n), s.requests, r.VirtualSeconds, r.Entries, r.Waiting.Max)
		}
	}
}

// overlapping by a shorter run, for those who break it.
func overlapByRun() (fault string, err error) {
	const n = 3
	r, s, err := overlap(n, 8, 10, FirstCome)
	switch {
	case err != nil || r.ViolationCount > 0:
		return fmt.Sprint("run by simulation, ", err, r.Violations), nil
	case s.oldest > Longest(FirstCome, n):
		return fmt.Sprintf("wait by simulation, %d sessions", s.oldest), nil
	case s.wrong != "":
		return "requests by simulation, " + s.wrong, nil
	}
	return "", nil
}

// Section 5.2.3: ages keep below m(n+1), as they do below Longest. A priority is a sum over
// requests, of which nothing is proved; it is measured.
func TestAges(t *testing.T) {
	const n, groups = 20, 4
	for selection := range int64(3) {
		a, s := watched(Algorithm)
		simulated(t, a, sim.Config{
			Config: protocol.Config{N: n, Options: map[string]int64{"selection": selection}}, Groups: groups,
			Popularity: sim.Popularity{Alpha: 25, Beta: 90}, Entries: []int{200},
			Delay: sim.Exponential(time.Millisecond), Hold: sim.Exponential(time.Millisecond), Think: sim.Constant(0),
		})
		if s.oldest > min(Longest(selection, n), groups*(n+1)) {
			t.Errorf("selection %d: an age of %d, at most %d", selection, s.oldest, Longest(selection, n))
		}
		t.Logf("selection %d: the largest age is %d, the largest priority %d; m(n+1) is %d", selection, s.oldest, s.priority, groups*(n+1))
	}
}
