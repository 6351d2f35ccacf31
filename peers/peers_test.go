package peers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/peers"
)

const patience = 20 * time.Second

// A crew are the members of one system, over unix sockets.
type crew struct {
	t       *testing.T
	config  peers.Config
	members []*peers.Member
}

func newCrew(t *testing.T, n int, change func(*peers.Config)) *crew {
	t.Helper()
	c := &crew{t: t, config: peers.Config{Lease: time.Second / 2, Bootstrap: true}, members: make([]*peers.Member, n)}
	dir := proctest.SocketDir(t)
	for i := range n {
		name := fmt.Sprintf("p%d", i+1)
		c.config.Members = append(c.config.Members, peers.Peer{Name: name, Addr: "unix:" + filepath.Join(dir, name)})
	}
	if change != nil {
		change(&c.config)
	}
	return c
}

func (c *crew) join(ctx context.Context, i int, bootstrap bool) error {
	config := c.config
	config.Name, config.Bootstrap = config.Members[i].Name, bootstrap
	m, err := peers.Join(ctx, config)
	if err == nil {
		c.members[i] = m
		c.t.Cleanup(func() { m.Close() })
	}
	return err
}

// start starts all at once.
func (c *crew) start(bootstrap bool) *crew {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := make([]error, len(c.members))
	var all sync.WaitGroup
	for i := range c.members {
		all.Go(func() { errs[i] = c.join(ctx, i, bootstrap) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// unfenced are the algorithms without fencing tokens.
var unfenced = map[string]bool{
	"carvalho-roucairol": true, "centralised": true, "maekawa": true, "raymond": true, "token-ring/resting": true, "tokengme/bounded": true,
	"tokengme/bounded-recovery": true, "centralised/recovery": true,
}

// passes has a user of a member in and out.
func passes(t *testing.T, ctx context.Context, m *peers.Member) {
	t.Helper()
	g, err := m.Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestAlgorithms: with each algorithm goroutines of three members exclude each other, each gets in as often as it wants, and tokens grow.
func TestAlgorithms(t *testing.T) {
	for _, name := range peers.Algorithms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var inside, entries atomic.Int64
			var last uint64
			var all sync.WaitGroup
			for _, m := range c.members {
				for range 2 {
					all.Go(func() {
						for range 20 {
							g, err := m.Mutex("a").Lock(ctx)
							if err != nil {
								t.Error(err)
								return
							}
							if inside.Add(1) != 1 {
								t.Error("two are inside")
							}
							entries.Add(1)
							if token := g.Token(); (token == 0) != unfenced[name] || token <= last && token > 0 {
								t.Errorf("token %d after %d", token, last)
							}
							last = g.Token()
							inside.Add(-1)
							if err := g.Unlock(); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			all.Wait()
			if k := entries.Load(); k != 120 {
				t.Errorf("%d entries", k)
			}
		})
	}
}

// TestReaders: readers of all members are inside together, and a writer alone.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "ra2/recovery", "ra1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var grants []*poundlock.Grant
			for _, m := range c.members {
				g, err := m.RWMutex("book").RLock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				grants = append(grants, g)
			}
			var readers atomic.Int64
			readers.Store(3)
			written := make(chan error, 1)
			go func() {
				g, err := c.members[0].RWMutex("book").Lock(ctx)
				if err == nil {
					if readers.Load() > 0 {
						err = errors.New("a writer is inside with readers")
					}
					err = errors.Join(err, g.Unlock())
				}
				written <- err
			}()
			for _, g := range grants {
				readers.Add(-1)
				if err := g.Unlock(); err != nil {
					t.Error(err)
				}
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSeveral: whoever wants any one of several groups joins the one that is inside, at another member, and not its first choice.
func TestSeveral(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tokengme/several", "tokengme/several-recovery"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for _, groups := range [][]string{{"b"}, {"a", "b"}} {
				g, err := c.members[len(groups)].Groups("rooms").Lock(ctx, groups[0], groups[1:]...)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Unlock()
				if g.Group() != "b" {
					t.Errorf("who wants %q is in %q", groups, g.Group())
				}
			}
		})
	}
}

// TestJoined: a reader that comes while another one of its member is inside joins it, until a writer waits elsewhere; then readers
// come in after the writer.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "tokengme", "tokengme/several-recovery", "tokengme/bounded"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var grants []*poundlock.Grant
			for _, m := range c.members[1:] {
				for range 2 { // the first one stays
					g, err := m.RWMutex("book").RLock(ctx)
					if err != nil {
						t.Fatal(err)
					}
					grants = append(grants, g)
				}
			}
			written := make(chan error, 1)
			go func() {
				g, err := c.members[0].RWMutex("book").Lock(ctx)
				if err == nil {
					err = g.Unlock()
				}
				written <- err
			}()
			for { // until the members have heard of the writer
				g, err := c.members[2].RWMutex("book").TryRLock(ctx)
				if err != nil {
					if !strings.Contains(err.Error(), "nobody may join now") {
						t.Error(err)
					}
					break
				}
				if err := g.Unlock(); err != nil {
					t.Fatal(err)
				}
			}
			for _, g := range grants {
				if err := g.Unlock(); err != nil {
					t.Error(err)
				}
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadersGoOn: while one reads all the time a member dies and comes back, and readers of each member come in; a writer waits.
func TestReadersGoOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "tokengme/several-recovery", "tokengme/bounded-recovery", "ra2/recovery"} {
		for holder := range 2 { // the coordinator of a restart, and another one
			t.Run(fmt.Sprint(name, " p", holder+1), func(t *testing.T) {
				t.Parallel()
				c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				read := func(k int) *poundlock.Grant {
					t.Helper()
					g, err := c.members[k].RWMutex("book").RLock(ctx)
					if err != nil {
						t.Fatalf("p%d: %v", k+1, err)
					}
					return g
				}
				inside := read(holder)
				c.members[2].Close()
				for range 3 {
					if err := read(1 - holder).Unlock(); err != nil {
						t.Error(err)
					}
				}
				if err := c.join(ctx, 2, false); err != nil {
					t.Fatal(err)
				}
				for _, k := range []int{2, 1 - holder, 2} {
					if err := read(k).Unlock(); err != nil {
						t.Error(err)
					}
				}
				if g, err := c.members[2].RWMutex("book").TryLock(ctx); err == nil {
					t.Errorf("a writer is inside with a reader, with token %d", g.Token())
				}
				if err := inside.Unlock(); err != nil {
					t.Error(err)
				}
				passes(t, ctx, c.members[1])
			})
		}
	}
}

// TestFirstTry: at the first start a member may give up, and try again, before all are there.
func TestFirstTry(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = "ricart-agrawala" })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var joined sync.WaitGroup
	join := func(k int) {
		joined.Go(func() {
			if err := c.join(ctx, k, true); err != nil {
				t.Errorf("p%d: %v", k+1, err)
			}
		})
	}
	join(0)
	brief, giveUp := context.WithTimeout(ctx, 300*time.Millisecond)
	defer giveUp()
	if err := c.join(brief, 1, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone with p1: %v", err)
	}
	join(2)
	time.Sleep(100 * time.Millisecond) // p1 meets p3, most of the time, and has met p2
	join(1)
	joined.Wait()
}

// TestSizes: systems of one, two and five members.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{peers.Default, "suzuki-kasami"} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(algorithm, " ", n), func(t *testing.T) {
				t.Parallel()
				c := newCrew(t, n, func(c *peers.Config) { c.Algorithm = algorithm }).start(true)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				for range 3 {
					for _, m := range c.members {
						passes(t, ctx, m)
						if err := m.Healthy(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

// TestConfig: what makes no sense is refused, with the value and the way out.
func TestConfig(t *testing.T) {
	t.Parallel()
	three := []peers.Peer{{Name: "p1", Addr: "127.0.0.1:1"}, {Name: "p2", Addr: "127.0.0.1:2"}, {Name: "p3", Addr: "127.0.0.1:3"}}
	for want, c := range map[string]peers.Config{
		`"" is not among the members: p1, p2, p3`:     {Members: three},
		`"p4" is not among the members: p1`:           {Name: "p4", Members: three},
		`name "p1" appears twice`:                     {Name: "p1", Members: append(three[:1:1], three...)},
		`name "": want 1 to 255 bytes`:                {Name: "p1", Members: append(three[:1:1], peers.Peer{Addr: "127.0.0.1:4"})},
		`algorithm "sigma": want one of`:              {Name: "p1", Members: three, Algorithm: "sigma"},
		`patience 1s: want at least two leases, 4s`:   {Name: "p1", Members: three, Patience: time.Second},
		`the lease 1h0m0s: want`:                      {Name: "p1", Members: three, Lease: time.Hour, Patience: 3 * time.Hour},
		`option "what"`:                               {Name: "p1", Members: three, Options: map[string]int64{"what": 1}},
		`negative MaxHold -1ns`:                       {Name: "p1", Members: three, MaxHold: -1},
		`listening off loopback without TLS lets any`: {Name: "p1", Members: three, Listen: "0.0.0.0:0"},
	} {
		c.Listen = cmp.Or(c.Listen, "127.0.0.1:0")
		m, err := peers.Join(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %s", m, err, want)
		}
		if later := []string{"the lease", "negative", "listening"}; errors.Is(err, peers.ErrConfig) == slices.ContainsFunc(later, func(word string) bool { return strings.Contains(want, word) }) {
			t.Errorf("%v: ErrConfig: %v", err, errors.Is(err, peers.ErrConfig))
		}
	}
}

// TestLacks: what an algorithm has not is refused by name.
func TestLacks(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(c *peers.Config) { c.Algorithm = "lamport" }).start(true)
	d := newCrew(t, 1, nil).start(true)
	for want, lock := range map[string]func(context.Context) (*poundlock.Grant, error){
		`lamport has no groups ("shared"): its users are alone inside`:                     c.members[0].RWMutex("a").RLock,
		`tokengme/recovery has no choice of 2 groups: its users want one at a time`:        d.members[0].Mutex("a").In("x", "y").Lock,
		`tokengme/recovery has no locks to keep (1s): whoever asks anew needs a new token`: d.members[0].Mutex("a").Keep(time.Second).Lock,
		`tokengme/recovery has no head starts (1s): it serves requests in its own order`:   d.members[0].Mutex("a").HeadStart(time.Second).Lock,
	} {
		if g, err := lock(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %s", g, err, want)
		}
	}
	g, err := d.members[0].Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Downgrade(poundlock.Shared); err == nil {
		t.Error("it comes down to a group")
	} else {
		t.Log(err)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestAlone: two members that each want to be alone do not share, although the algorithm has groups.
func TestAlone(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, nil).start(true)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := c.members[0].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := c.members[1].Mutex("a").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
		t.Errorf("%v, %v", g, err)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	// The Try that nobody waits for any more is over, and gives the lock back.
	for _, m := range c.members {
		passes(t, ctx, m)
	}
}

// TestGivesUp: a caller whose context ends leaves at once, and another one goes on with the request that it has made.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(c *peers.Config) { c.Algorithm = "ricart-agrawala" }).start(true)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := c.members[0].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	short, enough := context.WithTimeout(ctx, 20*time.Millisecond)
	defer enough()
	if _, err := c.members[1].Mutex("a").Lock(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it waits: %v", err)
	}
	next := make(chan error, 1)
	go func() {
		g, err := c.members[1].Mutex("a").Lock(ctx)
		if err == nil {
			err = g.Unlock()
		}
		next <- err
	}()
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// TestPeerDown: whoever waits while a member is down hears that, and who it is; so does Healthy. With recovery a majority goes on.
func TestPeerDown(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		algorithm string
		goesOn    bool
	}{{"suzuki-kasami", false}, {"lamport", false}, {"suzuki-kasami/recovery", true}, {"tokengme/recovery", true}} {
		t.Run(x.algorithm, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = x.algorithm }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := c.members[2].Close(); err != nil {
				t.Fatal(err)
			}
			for k := range 2 {
				g, err := c.members[0].Mutex(fmt.Sprint(k)).Lock(ctx)
				switch {
				case x.goesOn && err == nil:
					if err := g.Unlock(); err != nil {
						t.Error(err)
					}
				case x.goesOn || !errors.Is(err, peers.ErrPeerDown) || !errors.Is(err, poundlock.ErrNoQuorum):
					t.Fatalf("%v, %v", g, err)
				case err != nil && !strings.Contains(err.Error(), "p3"):
					t.Errorf("who is down: %v", err)
				}
				if x.goesOn {
					continue
				}
				if err := c.members[0].Healthy(); !errors.Is(err, peers.ErrPeerDown) {
					t.Errorf("healthy: %v", err)
				}
			}
			if !x.goesOn {
				return
			}
			if err := c.members[1].Close(); err != nil {
				t.Fatal(err)
			}
			if g, err := c.members[0].Mutex("a").Lock(ctx); !errors.Is(err, peers.ErrPeerDown) {
				t.Errorf("without a majority: %v, %v", g, err)
			}
		})
	}
}

// TestComesBack: a member that was killed inside comes back, joins, and gets the lock after the others have gone on without it.
func TestComesBack(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, nil).start(true)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := c.members[2].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.members[2].Close()
	if cause := context.Cause(g.Context()); !errors.Is(cause, poundlock.ErrLost) {
		t.Errorf("the grant of a member that has left ends with %v", cause)
	}
	for _, k := range []int{0, 2, 1} {
		if k == 2 {
			if err := c.join(ctx, 2, false); err != nil {
				t.Fatal(err)
			}
		}
		passes(t, ctx, c.members[k])
	}
	if err := c.members[2].Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.join(ctx, 2, true); !errors.Is(err, peers.ErrMetBefore) || !strings.Contains(err.Error(), "without Bootstrap") {
		t.Errorf("who says to be the first life again: %v", err)
	}
}

// TestTwoOfOneName: a second process of a name joins while the first one is inside. Nobody else gets in before the first one has lost its lock.
func TestTwoOfOneName(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, nil).start(true)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := c.members[2].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	config := c.config
	config.Name, config.Bootstrap, config.Listen = "p3", false, config.Members[2].Addr+"b"
	joined := make(chan error, 1)
	go func() {
		m, err := peers.Join(ctx, config)
		if err == nil {
			t.Cleanup(func() { m.Close() })
		}
		joined <- err
	}()
	h, err := c.members[0].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(g.Context()), poundlock.ErrLost) || !g.LeaseEnd().IsZero() {
		t.Errorf("beside p1, the old process of p3 has a grant whose context says %v, until %v", g.Context().Err(), g.LeaseEnd())
	}
	if err := errors.Join(h.Unlock(), <-joined); err != nil {
		t.Error(err)
	}
}

// apart starts the first member of one crew and the second one of another, which do not meet, and wants to hear why.
func apart(t *testing.T, one, other *crew, want string) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		first := make(chan error, 1)
		go func() { first <- one.join(ctx, 0, true) }()
		err = errors.Join(other.join(ctx, 1, true), <-first)
		cancel()
		if errors.Is(err, peers.ErrPeerDown) && strings.Contains(err.Error(), want) {
			return
		}
	}
	t.Errorf("%v, want %s", err, want)
}

// TestOptions: members with other options do not talk to each other.
func TestOptions(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, nil)
	other := *c
	other.config.Options = map[string]int64{"phases": 1}
	apart(t, &other, c, "phases=1")
}

// TestNeverBootstrapped: where all join, as after a restart of everybody, they begin without what was before.
func TestNeverBootstrapped(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, nil).start(false)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range c.members {
		passes(t, ctx, m)
	}
}

// A fenced lock is one whose grants are judged by their tokens.
type fenced struct {
	t      *testing.T
	c      *crew
	tokens fence.Checker
}

// lock takes the lock of a name at a member, and gives it back.
func (f *fenced) lock(ctx context.Context, k int, reads bool) {
	f.t.Helper()
	m, group := f.c.members[k].RWMutex("a"), ""
	lock := m.Lock
	if reads {
		lock, group = m.RLock, "r"
	}
	g, err := lock(ctx)
	if err != nil {
		f.t.Fatalf("p%d: %v", k+1, err)
	}
	if largest := f.tokens.Largest("a"); g.Token() == 0 || !reads && g.Token() == largest {
		f.t.Errorf("p%d has token %d after %d", k+1, g.Token(), largest)
	}
	if err := f.tokens.CheckGroup("a", group, g.Token()); err != nil {
		f.t.Errorf("p%d: %v", k+1, err)
	}
	if err := g.Unlock(); err != nil {
		f.t.Error(err)
	}
}

// TestTokens: each grant has a larger token than those before that it does not share with, also when a member was killed
// and has come back, and when all were.
func TestTokens(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tokengme/recovery", "ra2/recovery", "suzuki-kasami/recovery"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, func(c *peers.Config) { c.Algorithm = name }).start(true)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			f := &fenced{t: t, c: c}
			rounds := func(members ...int) {
				t.Helper()
				for range 3 {
					for _, k := range members {
						f.lock(ctx, k, false)
						f.lock(ctx, k, false)
						if name != "suzuki-kasami/recovery" {
							f.lock(ctx, k, true)
						}
					}
				}
			}
			rounds(0, 1, 2)
			c.members[0].Close()
			rounds(1, 2)
			if err := c.join(ctx, 0, false); err != nil {
				t.Fatal(err)
			}
			rounds(0, 1, 2)
			for range 2 {
				for _, m := range c.members {
					m.Close()
				}
				time.Sleep(100 * time.Millisecond) // all clocks go on
				c.start(false)
				rounds(2, 0, 1)
			}
		})
	}
}

// TestMoves: a member that is restarted at another address takes part again, also with one that learns of that from another one.
func TestMoves(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCrew(t, 3, nil).start(true)
	passes(t, ctx, c.members[0])
	if err := c.members[0].Close(); err != nil {
		t.Fatal(err)
	}
	c.config.Members = slices.Clone(c.config.Members)
	c.config.Members[0].Addr += "-new"
	c.config.Epoch = 1
	if err := c.members[1].SetTable(0, c.config.Members); err == nil || !strings.Contains(err.Error(), "peers: node: two slot tables have epoch 0") {
		t.Error(err)
	}
	slices.Reverse(c.config.Members)
	if err := c.members[1].SetTable(1, c.config.Members); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(c.config.Members)
	if err := c.join(ctx, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.members {
		passes(t, ctx, m)
	}
	if err := c.members[1].Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*peers.Member{c.members[0], c.members[2]} { // each is the other one's majority
		passes(t, ctx, m)
	}
}

// TestHolders: every member knows who is inside, of several that share all, and nobody where the others cannot be asked.
func TestHolders(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCrew(t, 3, nil).start(true)
	holders := func(want ...string) {
		t.Helper()
		for _, m := range c.members {
			all, err := m.Client().Holders(ctx, "a")
			if err != nil {
				t.Error(err)
			}
			var got []string
			for _, h := range all {
				got = append(got, fmt.Sprint(h.Label, " ", h.Group, " ", h.Token > 0))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	holders()
	g, err := c.members[1].Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	holders("p2  true")
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	for _, m := range c.members[:2] {
		g, err := m.RWMutex("a").RLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Unlock()
	}
	holders("p1 shared true", "p2 shared true")
	c.members[0].Close()
	c.members[1].Close()
	if _, err := c.members[2].Client().Holder(ctx, "a"); !errors.Is(err, peers.ErrPeerDown) {
		t.Error(err)
	}
}

// TestDifferentLists: peers that have different lists of members refuse each other, and say what differs.
func TestDifferentLists(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, nil)
	other := *c
	other.config.Members = append(slices.Clone(c.config.Members), peers.Peer{Name: "p3", Addr: "unix:/nowhere"})
	other.members = make([]*peers.Member, 3)
	apart(t, c, &other, "names of the peers: p1,p2 there, p1,p2,p3 here")
}
