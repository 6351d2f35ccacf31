package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	toy "github.com/poundlock/poundlock/algo/algotest/toys/sessions"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/world"
	"github.com/poundlock/poundlock/wrap/membership"
)

// A mesh is a network with a cable for each two members.
type mesh struct{ faultnet.Mesh }

func (m *mesh) between(a, b protocol.ID) *faultnet.Cable {
	return m.Between(fmt.Sprint(a), fmt.Sprint(b))
}

// dial is how member id dials.
func (m *mesh) dial(id protocol.ID) func(context.Context, node.Peer) (net.Conn, error) {
	return func(ctx context.Context, p node.Peer) (net.Conn, error) { return m.Dial(ctx, fmt.Sprint(id), p.Addr) }
}

// A peerage are members that hold leases at each other, in virtual time, and what the simulator's rules say of them.
type peerage struct {
	t     *testing.T
	mesh  mesh
	host  func(id protocol.ID) node.Host
	live  func(id protocol.ID) // what a new life does at once
	nodes []*node.Node         // nil: down
	lives []int

	mu       sync.Mutex
	sides    map[[2]protocol.ID]world.Side // of the first of the two
	begun    map[[2]protocol.ID]bool       // it had a Restore
	problems []string
	events   map[string]int
}

const peerLease = time.Second

func newPeerage(t *testing.T, n int) *peerage {
	p := &peerage{
		t: t, nodes: make([]*node.Node, n), lives: make([]int, n),
		sides: map[[2]protocol.ID]world.Side{}, begun: map[[2]protocol.ID]bool{}, events: map[string]int{},
	}
	for id := range protocol.ID(n) {
		p.bury(id)
	}
	p.host = func(id protocol.ID) node.Host { return node.HostOf(p.watched(id)) }
	p.live = func(id protocol.ID) {
		p.enter(id, "a")
		synctest.Wait()
	}
	return p
}

// bury notes that a member is down.
func (p *peerage) bury(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range protocol.ID(len(p.nodes)) {
		p.sides[[2]protocol.ID{id, other}] = world.Side{Gone: true, Lapsed: true}
	}
}

// start begins a life of a member, and has its process begin before anybody can be heard.
func (p *peerage) start(id protocol.ID) {
	p.t.Helper()
	defer p.apart(id)()
	l, err := p.mesh.Listen(fmt.Sprint(id))
	if err != nil {
		p.t.Fatal(err)
	}
	var peers []node.Peer
	for k := range p.nodes {
		peers = append(peers, node.Peer{Name: fmt.Sprint("p", k+1), Addr: fmt.Sprint(k)})
	}
	life := p.lives[id]
	p.lives[id]++
	n, err := node.Start(node.Config{
		ID: id, Hosts: mutexes(p.host(id)), Peers: peers, Listener: l, Lease: peerLease, Dial: p.mesh.dial(id),
		Boot: virtual(), Joins: life > 0, Log: slog.New(slog.NewTextHandler(&complaints{p}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.nodes[id] = n
	if life > 0 {
		p.live(id)
	}
}

// apart cuts a member from all from which it is not cut, until what it returns is called.
func (p *peerage) apart(id protocol.ID) (heal func()) {
	var cut []*faultnet.Cable
	for other := range protocol.ID(len(p.nodes)) {
		if other == id {
			continue
		}
		if c := p.mesh.between(id, other); !c.IsCut() {
			c.Cut(true)
			cut = append(cut, c)
		}
	}
	return func() {
		for _, c := range cut {
			c.Cut(false)
		}
	}
}

// enter has a member's user enter a lock, and leave it at once.
func (p *peerage) enter(id protocol.ID, name string) {
	n := p.nodes[id]
	_ = n.Try(node.Mutex, name, &passer{func() { n.Exit(name) }, func() { p.count("entered") }}, false) // it may be there already
}

// A passer leaves as soon as it is inside.
type passer struct{ leave, left func() }

func (v *passer) Crit(node.Entry)                  { v.leave() }
func (v *passer) Ejected()                         { v.leave() }
func (v *passer) Supported(map[protocol.ID]uint64) {}
func (v *passer) Rem(error)                        { v.left() }

func (p *peerage) count(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events[event]++
}

func (p *peerage) entered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events["entered"]
}

// begin starts the first lives of all, one after the other.
func (p *peerage) begin(random *rand.Rand) {
	p.t.Helper()
	for id := range p.nodes {
		p.start(protocol.ID(id))
		time.Sleep(time.Duration(random.Int64N(int64(3 * peerLease))))
	}
	for _, n := range p.nodes { // nobody has a process before all have met
		<-n.Met()
	}
	for id := range p.nodes {
		p.live(protocol.ID(id))
	}
}

// storm does so many things that happen to members, and to their users.
func (p *peerage) storm(random *rand.Rand, steps int, use func(id protocol.ID)) {
	p.t.Helper()
	n := len(p.nodes)
	for range steps {
		id, other := protocol.ID(random.IntN(n)), protocol.ID(random.IntN(n-1))
		if other >= id {
			other++
		}
		switch what := random.IntN(10); {
		case p.nodes[id] == nil:
			p.start(id)
		case what < 4:
			p.mesh.between(id, other).Cut(true)
		case what < 7:
			p.mesh.between(id, other).Cut(false)
		case what < 9:
			use(id)
		default:
			p.crash(id)
		}
		time.Sleep(time.Duration(random.Int64N(int64(3 * peerLease))))
	}
}

// calm mends everything, and waits until that shows.
func (p *peerage) calm() {
	p.t.Helper()
	for id := range protocol.ID(len(p.nodes)) {
		for other := range id {
			p.mesh.between(id, other).Cut(false)
		}
	}
	for id := range p.nodes {
		if p.nodes[id] == nil {
			p.start(protocol.ID(id))
		}
	}
	time.Sleep(4 * peerLease)
}

// crash ends a life, of which nobody hears.
func (p *peerage) crash(id protocol.ID) {
	defer p.apart(id)()
	p.bury(id)
	p.nodes[id].Close()
	p.nodes[id] = nil
}

func (p *peerage) complain(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// complaints takes what nodes log as errors.
type complaints struct{ p *peerage }

func (c *complaints) Write(b []byte) (int, error) {
	c.p.complain(string(b))
	return len(b), nil
}

// watched is the toy that panics at what one member may not hear, and beside it the simulator's rules for two.
func (p *peerage) watched(id protocol.ID) protocol.Algorithm[toy.Letter] {
	a := toy.Algorithm(toy.None, true)
	inner := a.New
	var made atomic.Bool // whichever loop makes the first one
	a.New = func(me protocol.ID, c protocol.Config) protocol.Process[toy.Letter] {
		if made.Swap(true) { // nothing comes of it: see whether another one is idle
			return inner(me, c)
		}
		return &overseen{Process: inner(me, c), p: p, id: id}
	}
	return a
}

type overseen struct {
	protocol.Process[toy.Letter]
	p  *peerage
	id protocol.ID
}

func (o *overseen) Step(ev protocol.Event[toy.Letter], out *protocol.Out[toy.Letter]) {
	o.p.hear(o.id, ev.Input)
	o.Process.Step(ev, out)
}

// State implements protocol.Process. It is never that of a new process, which would take its place.
func (o *overseen) State(c *protocol.Codec) {
	overseen := true
	c.Bool(&overseen)
	o.Process.State(c)
}

// hear judges what a member hears of another one.
func (p *peerage) hear(id protocol.ID, in protocol.Input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine, theirs := [2]protocol.ID{id, in.From}, [2]protocol.ID{in.From, id}
	side := p.sides[mine]
	var want world.Notices
	var name string
	switch {
	case in.Kind == protocol.Start: // the sessions of a first life are there from the start
		for other := range protocol.ID(len(p.nodes)) {
			p.sides[[2]protocol.ID{id, other}] = world.Side{Lapsed: in.Arg != 1}
		}
		return
	case in.Kind == protocol.Suspect && in.Arg == protocol.Lapsed:
		name, want, side = "Lapsed", world.ToLapse|world.MayLapse, world.Side{Lapsed: true}
	case in.Kind == protocol.Suspect:
		name, want = "Ended", world.ToSuspect
		side.Ended = true
	case in.Kind == protocol.Restore && !p.begun[mine]:
		p.begun[mine] = true
		if p.lives[id] == 1 {
			return
		}
		fallthrough
	case in.Kind == protocol.Restore:
		name, want, side = "Restore", world.ToRestore, world.Side{}
	default:
		return
	}
	if p.sides[mine].Notices(p.sides[theirs])&want == 0 {
		p.problems = append(p.problems, fmt.Sprintf("%v: p%d gets %s of p%d: it is %+v, and the other one %+v",
			time.Now().Format("04:05.000"), id+1, name, in.From+1, p.sides[mine], p.sides[theirs]))
	}
	p.events[name]++
	p.sides[mine] = side
}

// Whatever breaks, members hear of each other as protocol.LeaseDetector has it, and at last all have sessions.
func TestMutualLeases(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			const n = 3
			p := newPeerage(t, n)
			random, names := rand.New(rand.NewPCG(seed, 1)), 0
			p.begin(random)
			p.storm(random, 150, func(id protocol.ID) {
				if name := "a"; random.IntN(3) > 0 {
					p.enter(id, name) // it revokes a lease
				} else {
					names++ // of a process that begins in the middle, and hears what it has missed
					p.enter(id, fmt.Sprint("lock ", names))
				}
			})
			p.calm()
			p.mu.Lock()
			for mine, side := range p.sides {
				if mine[0] != mine[1] && side.Lapsed {
					p.problems = append(p.problems, fmt.Sprintf("p%d has no session with p%d", mine[0]+1, mine[1]+1))
				}
			}
			found := slices.Clone(p.problems)
			p.mu.Unlock()
			for _, n := range p.nodes {
				n.Close()
			}
			if len(found) > 0 {
				t.Errorf("seed %d: %d problems, the first: %s", seed, len(found), found[0])
			}
			for _, name := range []string{"Lapsed", "Ended", "Restore", "entered"} {
				if p.events[name] < 20 {
					t.Errorf("seed %d: %d times %s", seed, p.events[name], name)
				}
			}
			t.Log(p.events)
		})
	}
}

// A room is a critical section, and who is inside by what the users have been told.
type room struct {
	mu      sync.Mutex
	inside  map[protocol.ID]bool
	beside  int // who came in while somebody else was inside
	entries []int
}

// A guest goes in and out for ever.
type guest struct {
	room *room
	n    *node.Node
	id   protocol.ID
	hold time.Duration
}

func (g *guest) try() { _ = g.n.Try(node.Mutex, "a", g, false) } // the node may have been closed

func (g *guest) Crit(node.Entry) {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	if len(g.room.inside) > 0 {
		g.room.beside++
	}
	g.room.inside[g.id] = true
	g.room.entries[g.id]++
	time.AfterFunc(g.hold, g.leave)
}

func (g *guest) leave() {
	g.room.mu.Lock()
	was := g.room.inside[g.id]
	delete(g.room.inside, g.id)
	g.room.mu.Unlock()
	if was {
		g.n.Exit("a")
	}
}

func (g *guest) Ejected()                         { g.leave() }
func (g *guest) Supported(map[protocol.ID]uint64) {}
func (g *guest) Rem(why error)                    { time.AfterFunc(g.hold, g.try) }

// The recoveries exclude on a network whatever breaks, and go on at last.
func TestRecoveries(t *testing.T) {
	for name, host := range map[string]node.Host{
		"suzuki-kasami": node.HostOf(membership.Wrap(suzukikasami.Algorithm)),
		"ra2":           node.HostOf(membership.Wrap(ra2.Algorithm)),
		"tokengme":      node.HostOf(membership.Wrap(tokengme.Algorithm)),
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const n = 3
					p := newPeerage(t, n)
					r := &room{inside: map[protocol.ID]bool{}, entries: make([]int, n)}
					p.host = func(protocol.ID) node.Host { return host }
					p.live = func(id protocol.ID) { (&guest{r, p.nodes[id], id, 100 * time.Millisecond}).try() }
					random := rand.New(rand.NewPCG(seed, 2))
					p.begin(random)
					p.storm(random, 100, func(protocol.ID) {})
					p.calm()
					r.mu.Lock()
					before := slices.Clone(r.entries)
					r.mu.Unlock()
					time.Sleep(10 * peerLease)
					r.mu.Lock()
					t.Logf("entries %v, and then %v", before, r.entries)
					for id := range n {
						if r.entries[id] < before[id]+5 {
							t.Errorf("p%d got in %d times, and then %d times", id+1, before[id], r.entries[id]-before[id])
						}
					}
					if r.beside > 0 {
						t.Errorf("%d times two were inside", r.beside)
					}
					r.mu.Unlock()
					for _, n := range p.nodes {
						n.Close()
					}
					for _, problem := range p.problems {
						t.Error(problem)
					}
				})
			})
		}
	}
}

// After restarts, and while one is down, the only user of a name gets in, wherever it is: the others say where they are, although
// nobody there uses that name. So does one that waits from before.
func TestOnlyUser(t *testing.T) {
	host := node.HostOf(membership.Wrap(tokengme.Algorithm))
	for _, down := range []protocol.ID{0, 1, 2} {
		t.Run(fmt.Sprintf("without p%d", down+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 3
				p := newPeerage(t, n)
				p.host = func(protocol.ID) node.Host { return host }
				p.live = func(protocol.ID) {}
				names := 0
				wantEntries := func(what string, ids ...protocol.ID) {
					t.Helper()
					for _, id := range ids {
						before := p.entered()
						names++
						p.enter(id, fmt.Sprint("lock ", names))
						time.Sleep(3 * peerLease)
						if p.entered() != before+1 {
							t.Errorf("%s: the user of p%d is not inside", what, id+1)
						}
					}
				}
				others := slices.DeleteFunc([]protocol.ID{0, 1, 2}, func(id protocol.ID) bool { return id == down })
				p.begin(rand.New(rand.NewPCG(1, 1)))
				wantEntries("at first", 0, 1, 2)
				p.crash(down)
				time.Sleep(3 * peerLease)
				wantEntries("without one", others...)
				p.calm()
				wantEntries("with a new life", 0, 1, 2)
				for id := range p.nodes {
					p.crash(protocol.ID(id))
				}
				p.start(others[0])
				before := p.entered()
				p.enter(others[0], "waits")
				time.Sleep(3 * peerLease)
				p.start(others[1])
				time.Sleep(4 * peerLease)
				if p.entered() != before+1 {
					t.Errorf("the one that waited for a majority is not inside")
				}
				wantEntries("of new lives only", others...)
				for _, n := range p.nodes {
					if n != nil {
						n.Close()
					}
				}
			})
		})
	}
}
