package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/peers"
	"github.com/poundlock/poundlock/verify/history"
)

// A peerage are five peers, each in a network namespace, that want one lock: two and two of a group and a writer, or
// each alone. It is in trouble again and again: one of them is killed, comes back, and holds the lock; then it is cut
// off or stopped.
type peerage struct {
	t        *testing.T
	net      *namespaces
	j        *journal
	resource *resource
	args     peersArgs
	lease    time.Duration
	groups   map[string]string
	lives    map[string]int
	deaf     bool // broken variant: who holds does not hear that the lock is lost
}

var peerNames = names("p1 p2 p3 p4 p5")

func newPeerage(t *testing.T, algorithm string, groups, deaf bool) *peerage {
	t.Helper()
	x := &peerage{
		t: t, net: newNamespaces(t, peerNames...), j: newJournal(t), resource: newResource(t, deaf), lease: time.Second,
		args: peersArgs{Algorithm: algorithm, Bootstrap: true}, groups: map[string]string{}, lives: map[string]int{}, deaf: deaf,
	}
	if groups {
		x.groups = map[string]string{"p1": "red", "p2": "red", "p3": "blue", "p4": "blue"}
	}
	for _, name := range peerNames {
		x.args.Members = append(x.args.Members, peers.Peer{Name: name, Addr: x.net.addr[name] + ":7000"})
	}
	for _, name := range peerNames {
		x.launch(name, false)
	}
	for _, name := range peerNames {
		x.j.ready(x.label(name))
	}
	x.args.Bootstrap = false
	return x
}

func (x *peerage) label(name string) string { return fmt.Sprint(name, " life ", x.lives[name]) }

// launch starts the next life of a peer, whose first grant is a long one.
func (x *peerage) launch(name string, long bool) {
	x.t.Helper()
	x.lives[name]++
	x.j.launch(clientArgs{
		Host: x.net.host(name), Peers: x.args, Lease: x.lease, Name: "lock", Label: x.label(name), Hold: 20 * time.Millisecond,
		work: work{
			Deadline: x.lease / 2, Pause: 10 * time.Millisecond, Resource: x.resource.socket, Group: x.groups[name],
			Long: long, Deaf: long && x.deaf,
		},
	})
}

// shares reports whether two peers may be inside at once.
func (x *peerage) shares(a, b string) bool {
	return a == b || x.groups[a] != "" && x.groups[a] == x.groups[b]
}

// await waits for a record of one of these peers after an instant.
func (x *peerage) await(what string, after int64, names ...string) *record {
	var labels []string
	for _, name := range names {
		labels = append(labels, x.label(name))
	}
	return x.j.await(func(r record) bool { return r.What == what && r.At > after && slices.Contains(labels, r.Client) })
}

// without are the other peers, without those that share with it.
func (x *peerage) without(name string, more ...string) []string {
	return slices.DeleteFunc(slices.Clone(peerNames), func(other string) bool { return x.shares(name, other) || slices.Contains(more, other) })
}

// A peril befalls the peer that holds the lock, until it is over.
type peril struct {
	name string
	do   func(x *peerage, victim, other string) (over func())
}

var perils = []peril{
	{"cut in two, 2 and 3", func(x *peerage, victim, other string) func() {
		rest := slices.DeleteFunc(slices.Clone(peerNames), func(name string) bool { return name == victim || name == other })
		x.net.cut(split{faultnet.Both, []string{victim, other}, rest})
		return x.net.heal
	}},
	{"not heard", func(x *peerage, victim, _ string) func() { return x.oneWay(faultnet.Up, victim) }},
	{"does not hear", func(x *peerage, victim, _ string) func() { return x.oneWay(faultnet.Down, victim) }},
	{"stopped", func(x *peerage, victim, _ string) func() {
		p := x.j.workers[x.label(victim)].cmd.Process
		x.signal(p.Signal(syscall.SIGSTOP))
		return func() { x.signal(p.Signal(syscall.SIGCONT)) }
	}},
}

func (x *peerage) oneWay(d faultnet.Direction, victim string) func() {
	others := slices.DeleteFunc(slices.Clone(peerNames), func(name string) bool { return name == victim })
	x.net.cut(split{d, []string{victim}, others})
	return x.net.heal
}

func (x *peerage) signal(err error) {
	if err != nil {
		x.t.Error(err)
	}
}

// round has a peril befall a holder: it loses the lock, the majority goes on, and when it is over all are served again. It
// reports whether that holder had the lock until then.
func (x *peerage) round(p peril) (held bool) {
	x.t.Helper()
	k := rand.N(len(peerNames))
	victim, other := peerNames[k], peerNames[(k+1+rand.N(len(peerNames)-1))%len(peerNames)]
	x.j.killed(x.label(victim))
	killed := clock.Now()
	x.launch(victim, true)
	x.j.ready(x.label(victim))
	entered := x.await("entered", killed, victim)
	if entered == nil {
		x.t.Fatalf("%s does not get in again after it was killed", victim)
	}
	over := p.do(x, victim, other)
	began := clock.Now()
	majority := x.without(victim, other)
	if p.name != perils[0].name {
		majority = x.without(victim)
	}
	next := x.await("entered", began, majority...)
	if next == nil {
		x.t.Errorf("%s: none of %v gets in while %s is away", p.name, majority, victim)
	} else {
		x.t.Logf("%s, %s: %s enters after %v", victim, p.name, next.Client, time.Duration(next.At-began).Round(time.Millisecond))
	}
	over()
	ended := clock.Now()
	lost := x.await("lost", entered.At, victim)
	switch {
	case x.deaf:
		x.j.workers[x.label(victim)].say("leave")
	case lost == nil:
		x.t.Errorf("%s: %s does not hear that its lock is lost", p.name, victim)
	case lost.At < began:
		x.t.Logf("AGAIN: %s had lost the lock %v before", victim, time.Duration(began-lost.At).Round(time.Millisecond))
	}
	for _, name := range peerNames {
		if x.await("entered", ended, name) == nil {
			x.t.Errorf("after: %s: %s never gets in again", p.name, name)
		}
	}
	return lost != nil && lost.At >= began
}

// judge are what both judges, the resource and the peers' errors reject.
func (x *peerage) judge() []string {
	x.t.Helper()
	h := x.j.end()
	for _, r := range h {
		if r.Kind == lockLost {
			x.t.Logf("%s: %s", r.Client, r.Error)
		}
	}
	r := x.j.judge()
	x.t.Logf("%s; %d events; %v", h.summary(), r.Events, x.resource)
	all := problems(r)
	for _, found := range [][]string{h.strange(lockLost, noQuorum, notAcquired), x.resource.problems()} {
		all = append(all, found...)
	}
	if lost := h.count(lockLost); x.resource.refused > lost {
		all = append(all, fmt.Sprintf("%d uses were refused, and %d grants lost: tokens of holders are stale", x.resource.refused, lost))
	}
	for _, illegal := range opinion(x.t, operations(x.t, x.j.files), x.resource) {
		all = append(all, "porcupine rejects "+illegal)
	}
	if !slices.ContainsFunc(r.Files, func(f history.File) bool { return !f.Ended }) {
		all = append(all, "no killed peer is in the history")
	}
	return all
}

// TestPeersCut: five peers in namespaces. Whoever holds the lock is cut off with another one, is heard no more, hears
// nothing, or is stopped: it loses the lock before anybody else is let in, the majority goes on, and tokens grow. All
// are killed now and then, and come back.
func TestPeersCut(t *testing.T) {
	lane.CI.Need(t, "half a minute of peers that are cut off")
	duration := 20 * time.Second
	if full(t, "20 seconds", "10 minutes") {
		duration = 10 * time.Minute
	}
	for algorithm, groups := range map[string]bool{"tokengme/recovery": true, "ra2/recovery": true, "suzuki-kasami/recovery": false} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			x := newPeerage(t, algorithm, groups, false)
			began := time.Now()
			for k := 0; k < len(perils) || time.Since(began) < duration; {
				if x.round(perils[k%len(perils)]) {
					k++
				}
			}
			report(t, "problems", x.judge())
		})
	}
}

// TestPeersCutNoticed: a holder that does not hear of its loss is reported by both judges, and does damage to a
// resource that takes every token.
func TestPeersCutNoticed(t *testing.T) {
	lane.CI.Need(t, "ten seconds")
	x := newPeerage(t, "", true, true)
	x.round(perils[0])
	found := strings.Join(x.judge(), "\n")
	for _, want := range []string{"exclusion violated", "porcupine rejects lock", "porcupine rejects counter"} {
		if !strings.Contains(found, want) {
			t.Errorf("nobody says %q: %s", want, found)
		}
	}
}
