package sections_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
)

// soon is a context that ends before anything else happens in these tests.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// configs are those of members that are not started.
func configs(t testing.TB, n int) []sections.Config {
	t.Helper()
	addrs, err := freeaddr.Find(n)
	if err != nil {
		t.Fatal(err)
	}
	var peers []sections.Peer
	for i, addr := range addrs {
		peers = append(peers, sections.Peer{Name: fmt.Sprint("s", i+1), Addr: addr})
	}
	all := make([]sections.Config, n)
	for i, p := range peers {
		all[i] = sections.Config{
			Name: p.Name, Members: peers, Objects: map[string]sections.Object{name: &counters.Store{}}, Lease: 100 * time.Millisecond,
		}
	}
	return all
}

// What is wrong with a configuration is said with the value.
func TestConfig(t *testing.T) {
	for want, change := range map[string]func(c *sections.Config){
		"no Name":                               func(c *sections.Config) { c.Name = "" },
		`"p9" is not among the members: s1, s2`: func(c *sections.Config) { c.Name = "p9" },
		`"s1" is not among the members: none`:   func(c *sections.Config) { c.Members = nil },
		`name "s1" appears twice`:               func(c *sections.Config) { c.Members = append(c.Members[:1:1], c.Members[0]) },
		"no Objects":                            func(c *sections.Config) { c.Objects = nil },
		"3 Slots: want 1 to 256 with More":      func(c *sections.Config) { c.Slots = 3 },
		"257 Slots: want":                       func(c *sections.Config) { c.Slots, c.More = 257, func(string) sections.Object { return nil } },
		`object "+1": names with +`:             func(c *sections.Config) { c.Objects["+1"] = c.Objects["o"] },
		`object "x" is nil`:                     func(c *sections.Config) { c.Objects = map[string]sections.Object{"x": nil} },
		"a lock needs a name":                   func(c *sections.Config) { c.Objects = map[string]sections.Object{"": &counters.Store{}} },
		`address "nowhere"`:                     func(c *sections.Config) { c.Listen = "nowhere" },
		"the lease 1ms":                         func(c *sections.Config) { c.Lease = time.Millisecond },
		"MaxState is -1":                        func(c *sections.Config) { c.MaxState = -1 },
		"a network has no consensus":            func(c *sections.Config) { c.Engine = node.HostOf(wme.First) },
		"without TLS":                           func(c *sections.Config) { c.Listen = ":0" },
		"both Listen and a Listener": func(c *sections.Config) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c.Listen, c.Listener = "127.0.0.1:0", l
		},
	} {
		c := configs(t, 2)[0]
		change(&c)
		if _, err := sections.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if c.Listener != nil && c.Listener.Close() == nil {
			t.Errorf("%s: the listener is open still", want)
		}
	}
}

// A first start needs all members, whatever their order in the configuration: the one that is missing is named, and nobody does
// anything before it is there.
func TestFirstStart(t *testing.T) {
	all := configs(t, 3)
	all[1].Members = []sections.Peer{all[0].Members[2], all[0].Members[0], all[0].Members[1]}
	var up []*sections.Member
	for i := range all {
		all[i].Bootstrap = true
		if i == 2 {
			continue
		}
		m, err := sections.Start(all[i])
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		up = append(up, m)
	}
	eventually(t, "they meet", func() error { return up[0].Healthy() })
	if _, err := up[0].Enter(soon(t), name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("somebody is inside before all have met: %v", err)
	}
	up[1].Close()
	_, err := sections.Open(soon(t), all[1])
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 of 2 others can be reached; s3 (") {
		t.Errorf("s2: %v", err)
	}
	eventually(t, "s2 is gone", func() error {
		if up[0].Healthy() == nil {
			return errors.New("a majority is there")
		}
		return nil
	})
	var opened sync.WaitGroup
	for _, c := range []sections.Config{all[2], all[1]} { // s1 has met an s2, and now an s3: not all at once
		opened.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			m, err := sections.Open(ctx, c)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { m.Close() })
			enter(t, m).Exit()
		})
		eventually(t, "one more is there", func() error { return up[0].Healthy() })
	}
	opened.Wait()
}

// Who joins where nobody has started the system is told so, and who cannot be reached.
func TestJoinNothing(t *testing.T) {
	all := configs(t, 2)
	_, err := sections.Open(soon(t), all[1])
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `nobody has sent object "o"`) ||
		!strings.Contains(err.Error(), "0 of 1 others can be reached; s1 (") {
		t.Errorf("alone: %v", err)
	}
	m, err := sections.Start(all[0])
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	eventually(t, "it is told", func() error {
		_, err := sections.Open(soon(t), all[1])
		if !strings.Contains(err.Error(), "the first start of a system is with Bootstrap") {
			return err
		}
		return nil
	})
}

// A member is healthy while it reaches a majority.
func TestHealthy(t *testing.T) {
	c := start(t, 3, second)
	c.members[2].Close()
	if err := c.members[2].Healthy(); !errors.Is(err, sections.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := c.members[0].Healthy(); err != nil {
		t.Errorf("with one of two others: %v", err)
	}
	c.members[1].Close()
	eventually(t, "it notices", func() error {
		if err := c.members[0].Healthy(); err == nil || !strings.Contains(err.Error(), "0 of 2 others can be reached; s2 (") {
			return fmt.Errorf("alone: %w", err)
		}
		return nil
	})
}

// What is no use of an object is refused.
func TestMisuse(t *testing.T) {
	c := start(t, 1, second)
	m := c.members[0]
	none := func(*sections.Section) error { return nil }
	for what, err := range map[string]error{
		"enter":   func() error { _, err := m.Enter(t.Context(), "other"); return err }(),
		"with":    m.With(t.Context(), "other", func(_ context.Context, s *sections.Section) error { return none(s) }),
		"view":    m.View("other", func(sections.Object) {}),
		"barrier": m.Barrier(t.Context(), "other"),
	} {
		if err == nil || !strings.Contains(err.Error(), `"other": there is no such object: ["o"]`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := m.Suspect("s9"); err == nil || !strings.Contains(err.Error(), `"s9" is not among the members: s1`) {
		t.Errorf("%v", err)
	}
	s := enter(t, m)
	if _, err := s.Wait(t.Context()); err == nil {
		t.Error("Wait without an operation")
	}
	for _, ops := range [][][]byte{
		{make([]byte, sections.MaxOperation+1)},
		{counters.Add("a"), make([]byte, sections.MaxOperation)},
	} {
		if _, err := s.DoAll(t.Context(), ops...); !errors.Is(err, sections.ErrOperation) {
			t.Errorf("too large: %v", err)
		}
	}
	do(t, s, "k")
	s.Exit()
}

// Operations together have a result each. All are refused where one is none, and none is executed.
func TestDoAll(t *testing.T) {
	c := start(t, 3, second)
	s := enter(t, c.members[1])
	results, err := s.DoAll(t.Context(), counters.Add("a"), counters.Add("b"), counters.Add("a"))
	if err != nil || len(results) != 3 || counters.Value(results[0]) != 1 || counters.Value(results[1]) != 1 || counters.Value(results[2]) != 2 {
		t.Errorf("%v, %v", results, err)
	}
	if again, err := s.Wait(t.Context()); err != nil || len(again) != 3 {
		t.Errorf("%v, %v", again, err)
	}
	_, err = s.DoAll(t.Context(), counters.Add("a"), []byte("bad"), counters.Add("a"))
	if !errors.Is(err, sections.ErrOperation) || !strings.Contains(err.Error(), `the 2. of 3: "bad" does not begin with +`) {
		t.Errorf("with one that is none: %v", err)
	}
	if results, err := s.DoAll(t.Context()); err != nil || len(results) != 0 {
		t.Errorf("nothing: %v, %v", results, err)
	}
	if got := do(t, s, "a"); got != 3 {
		t.Errorf("after that: %d", got)
	}
	s.Exit()
	c.equal(4)
}

// Results that are too large together are withheld, and all operations are executed.
func TestDoAllTooLarge(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *sections.Config) { c.Objects[name] = verbose{c.Objects[name]} })
	s := enter(t, c.members[0])
	half := counters.Add(fmt.Sprint(sections.MaxOperation / 2))
	if _, err := s.DoAll(t.Context(), half, half); !errors.Is(err, sections.ErrResultTooLarge) {
		t.Errorf("%v", err)
	}
	s.Exit()
	c.equal(2)
}

// Operations of a member that is gone at any moment are executed together, or none of them, at all copies.
func TestDoAllOrNone(t *testing.T) {
	c := start(t, 3, second)
	const together = 10
	ops := make([][]byte, together)
	for k := range ops {
		ops[k] = counters.Add("k")
	}
	for range 8 {
		s := enter(t, c.members[0])
		over := make(chan struct{})
		go func() {
			defer close(over)
			for {
				if _, err := s.DoAll(t.Context(), ops...); err != nil {
					return
				}
			}
		}()
		time.Sleep(rand.N(5 * time.Millisecond))
		c.members[0].Close()
		<-over
		s.Exit()
		other := c.instead(1, 0)
		if got := do(t, other, "k"); (got-1)%together != 0 {
			t.Fatalf("%d operations of batches of %d", got-1, together)
		}
		for range together - 1 {
			do(t, other, "k")
		}
		other.Exit()
		c.again(0)
	}
}

// A View shows all operations of DoAll, or none.
func TestDoAllView(t *testing.T) {
	c := start(t, 1, second)
	s := enter(t, c.members[0])
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 200 {
			if _, err := s.DoAll(t.Context(), counters.Add("a"), counters.Add("b"), counters.Add("c")); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case <-over:
			running = false
		default:
		}
		if err := c.members[0].View(name, func(o sections.Object) {
			if k := o.(*counters.Store).Applied(); k%3 != 0 {
				t.Fatalf("%d operations, three at a time", k)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.Exit()
}

// What had ended before a Barrier is seen after it, at every member, while members are suspected by mistake, too.
func TestBarrier(t *testing.T) {
	c := start(t, 3, second)
	applied := func(i int) (k uint64) {
		if err := c.members[i].View(name, func(o sections.Object) { k = o.(*counters.Store).Applied() }); err != nil {
			t.Error(err)
		}
		return k
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := uint64(0)
	for k := range 60 {
		err := c.members[k%3].With(ctx, name, func(ctx context.Context, s *sections.Section) error {
			_, err := s.Do(ctx, counters.Add("k"))
			return err
		})
		switch {
		case err == nil:
			ended++
		case !errors.Is(err, sections.ErrEjected):
			t.Fatal(err)
		default: // executed, perhaps, and lost before With returned
			ended = max(ended, applied(k%3))
		}
		if k%4 == 0 {
			if err := c.members[(k+2)%3].Suspect(c.peers[k%3].Name); err != nil {
				t.Fatal(err)
			}
		}
		reader := (k + 1) % 3
		if err := c.members[reader].Barrier(ctx, name); err != nil {
			t.Fatal(err)
		}
		if got := applied(reader); got < ended {
			t.Fatalf("s%d shows %d operations of %d", reader+1, got, ended)
		}
	}
	s := enter(t, c.members[0])
	defer s.Exit()
	if err := c.members[1].Barrier(soon(t), name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while somebody is inside: %v", err)
	}
}

// A member that is cut off, and enters because it does not know that others have gone on, learns in a Barrier what they have done.
func TestBarrierBehind(t *testing.T) {
	var links []*faultnet.Proxy // to s1
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		if i > 0 {
			links = append(links, through(t, i, c)[0])
		}
	})
	enter(t, c.members[0]).Exit()
	for _, p := range links {
		p.Cut(faultnet.Both)
	}
	s := c.instead(1, 0)
	do(t, s, "k")
	s.Exit()
	behind := make(chan error, 1)
	go func() { behind <- c.members[0].Barrier(t.Context(), name) }()
	select {
	case err := <-behind:
		t.Fatalf("cut off: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	for _, p := range links {
		p.Heal()
	}
	if err := <-behind; err != nil {
		t.Fatal(err)
	}
	if k := c.stores[0].Applied(); k != 1 {
		t.Errorf("it shows %d operations", k)
	}
}

// The token of a section is larger than those of all before, whether they had operations or not, of other processes and lives
// and of the same one. Whoever has lost its section gets none.
func TestID(t *testing.T) {
	c := start(t, 3, second)
	var last uint64
	id := func(s *sections.Section) uint64 {
		t.Helper()
		k, err := s.ID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	next := func(s *sections.Section) {
		t.Helper()
		got := id(s)
		if got <= last {
			t.Errorf("%d follows %d", got, last)
		}
		if last = got; id(s) != last {
			t.Errorf("it changes")
		}
	}
	for k := range 12 {
		s := enter(t, c.members[k/2%3])
		if k%3 == 0 {
			do(t, s, "k")
		}
		next(s)
		do(t, s, "k")
		next2 := id(s)
		if next2 != last {
			t.Errorf("it is %d, and was %d", next2, last)
		}
		s.Exit()
		if got, err := s.ID(t.Context()); got != last || err != nil {
			t.Errorf("after Exit: %d, %v", got, err)
		}
	}
	stale := enter(t, c.members[0])
	s := c.instead(1, 0)
	next(s)
	s.Exit()
	<-stale.Ejected()
	if k, err := stale.ID(t.Context()); !errors.Is(err, sections.ErrEjected) {
		t.Errorf("a lost section has the token %d: %v", k, err)
	}
	stale.Exit()
	c.members[2].Close()
	c.again(2)
	eventually(t, "a new life has a section", func() error { // of which others may think for a while that it is the one before
		s := enter(t, c.members[2])
		defer s.Exit()
		_, err := s.ID(t.Context())
		if err == nil {
			next(s)
		}
		return err
	})
}

// With enters and exits, whatever f does, and its context ends with the section.
func TestWith(t *testing.T) {
	c := start(t, 3, second)
	mine := errors.New("mine")
	for _, want := range []error{nil, mine} {
		err := c.members[0].With(t.Context(), name, func(_ context.Context, s *sections.Section) error {
			do(t, s, "k")
			return want
		})
		if err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = c.members[0].With(t.Context(), name, func(context.Context, *sections.Section) error { panic("oh") })
	}()
	for _, own := range []bool{false, true} {
		err := c.members[0].With(t.Context(), name, func(ctx context.Context, s *sections.Section) error {
			c.instead(1, 0).Exit()
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, sections.ErrEjected) {
				t.Errorf("the context ends with %v", err)
			}
			if own {
				return mine
			}
			return nil
		})
		if !errors.Is(err, sections.ErrEjected) || errors.Is(err, mine) != own {
			t.Errorf("lost: %v", err)
		}
	}
	enter(t, c.members[0]).Exit()
	c.equal(2)
}

// A member counts its sections, those that were lost, and the operations of all.
func TestStats(t *testing.T) {
	c := start(t, 3, second)
	for range 2 {
		s := enter(t, c.members[0])
		do(t, s, "k")
		s.Exit()
	}
	stale := enter(t, c.members[0])
	c.instead(1, 0).Exit()
	<-stale.Ejected()
	got := c.members[0].Stats()
	if o := got.Objects[0]; len(got.Objects) != 1 || o.Name != name || o.Executed != 2 || o.Entered != 3 || o.Ejected != 1 ||
		o.Waits.Count != 3 || o.Done.Count != 2 || !o.Busy || len(got.Node.Peers) != 2 {
		t.Errorf("%+v", got)
	}
	stale.Exit()
	eventually(t, "nobody is inside", func() error {
		if c.members[0].Stats().Objects[0].Busy {
			return errors.New("it is busy")
		}
		return nil
	})
}

// The unix socket that a killed process has left is in nobody's way, and one that another process has is not taken from it.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(proctest.SocketDir(t), "s1")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	c := configs(t, 1)[0]
	c.Members, c.Bootstrap = []sections.Peer{{Name: "s1", Addr: "unix:" + path}}, true
	m, err := sections.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := sections.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second process of the name: %v", err)
	}
}

// A member that is restarted at another address takes part again, also with one that learns of that from another one.
func TestMoves(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := configs(t, 3)
	up := make([]*sections.Member, 3)
	var opened sync.WaitGroup
	for i := range all {
		all[i].Bootstrap, all[i].Lease = true, time.Second/2
		opened.Go(func() {
			m, err := sections.Open(ctx, all[i])
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { m.Close() })
			up[i] = m
		})
	}
	opened.Wait()
	if t.Failed() {
		t.FailNow()
	}
	up[0].Close()
	addr, err := freeaddr.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	table := slices.Clone(all[0].Members)
	table[0].Addr = addr[0]
	if err := up[1].SetTable(1, table[:2]); err == nil || !strings.Contains(err.Error(), "sections: node: the members cannot change") {
		t.Error(err)
	}
	slices.Reverse(table)
	if err := up[1].SetTable(1, table); err != nil {
		t.Fatal(err)
	}
	c := all[0]
	c.Members, c.Epoch, c.Bootstrap, c.Objects = table, 1, false, map[string]sections.Object{name: &counters.Store{}}
	if up[0], err = sections.Open(ctx, c); err != nil {
		t.Fatal(err)
	}
	defer up[0].Close()
	up[1].Close()
	for _, m := range []*sections.Member{up[0], up[2]} { // each is the other one's majority
		s, err := m.Enter(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		s.Exit()
	}
}
