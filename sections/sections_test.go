package sections_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

const name = "o"

var second = sections.WME2

// A cluster is members in this process, each with a copy of one Store.
type cluster struct {
	t       testing.TB
	engine  node.Host
	change  func(i int, c *sections.Config) // nil: nothing
	peers   []sections.Peer
	members []*sections.Member
	stores  []*counters.Store
}

func start(t testing.TB, n int, engine node.Host) *cluster {
	t.Helper()
	return startWith(t, n, engine, nil)
}

func startWith(t testing.TB, n int, engine node.Host, change func(i int, c *sections.Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, engine: engine, change: change, members: make([]*sections.Member, n), stores: make([]*counters.Store, n)}
	listeners := make([]net.Listener, n)
	for i := range n {
		l, err := transport.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		c.peers = append(c.peers, sections.Peer{Name: fmt.Sprint("s", i+1), Addr: l.Addr().String()})
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		config := c.config(i, true)
		config.Listener = listeners[i]
		all.Go(func() { errs[i] = c.open(i, config) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return c
}

// config is that of a life of member i.
func (c *cluster) config(i int, bootstrap bool) sections.Config {
	c.stores[i] = &counters.Store{}
	config := sections.Config{
		Name: c.peers[i].Name, Members: c.peers, Bootstrap: bootstrap, Lease: 2 * time.Second, Engine: c.engine,
		Patience: lease.Patience{First: patience / 3, Most: patience}, // a stall is no crash: see instead
		Objects:  map[string]sections.Object{name: c.stores[i]},
	}
	if c.change != nil {
		c.change(i, &config)
	}
	return config
}

// open opens member i.
func (c *cluster) open(i int, config sections.Config) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	m, err := sections.Open(ctx, config)
	if err == nil {
		c.t.Cleanup(func() { m.Close() })
		c.members[i] = m
	}
	return err
}

// again opens the next life of a member that was closed, and returns when it takes part.
func (c *cluster) again(i int) {
	c.t.Helper()
	config := c.config(i, false)
	config.Listener = c.listen(i)
	if err := c.open(i, config); err != nil {
		c.t.Fatal(err)
	}
}

// listen listens where a member that was closed did.
func (c *cluster) listen(i int) (l net.Listener) {
	c.t.Helper()
	eventually(c.t, "the address is free again", func() (err error) {
		l, err = transport.Listen(c.peers[i].Addr)
		return err
	})
	return l
}

// eventually waits until there is no error.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s: %v", patience, what, err)
		}
	}
}

// equal waits until all copies have executed so many operations, and are equal.
func (c *cluster) equal(applied uint64) {
	c.t.Helper()
	eventually(c.t, "equal copies", func() error {
		for i, s := range c.stores {
			if s.Applied() != applied || string(s.Snapshot()) != string(c.stores[0].Snapshot()) {
				return fmt.Errorf("copy %d has executed %d operations of %d", i, s.Applied(), applied)
			}
		}
		return nil
	})
}

func enter(t testing.TB, m *sections.Member) *sections.Section {
	t.Helper()
	return enterObject(t, m, name)
}

func enterObject(t testing.TB, m *sections.Member, object string) *sections.Section {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := m.Enter(ctx, object)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instead enters at a member that suspects another one until then.
func (c *cluster) instead(i, other int) (s *sections.Section) {
	c.t.Helper()
	eventually(c.t, "the others go on", func() (err error) {
		c.members[i].Suspect(c.peers[other].Name)
		ctx, cancel := context.WithTimeout(c.t.Context(), 100*time.Millisecond)
		defer cancel()
		s, err = c.members[i].Enter(ctx, name)
		return err
	})
	return s
}

func do(t testing.TB, s *sections.Section, key string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b, err := s.Do(ctx, counters.Add(key))
	if err != nil {
		t.Fatal(err)
	}
	return counters.Value(b)
}

// Users of all members count together, several of each.
func TestCount(t *testing.T) {
	for _, host := range []node.Host{sections.WME1, second} {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprint(host.Info().Name, ",n=", n), func(t *testing.T) {
				c := start(t, n, host)
				const users, sections, operations = 2, 3, 3
				var wg sync.WaitGroup
				for _, r := range c.members {
					for range users {
						wg.Go(func() {
							for range sections {
								s := enter(t, r)
								first := do(t, s, "k")
								for k := range uint64(operations - 1) {
									if got := do(t, s, "k"); s.Err() == nil && got != first+k+1 {
										t.Errorf("somebody else was inside: %d follows %d", got, first+k)
									}
								}
								s.Exit()
							}
						})
					}
				}
				wg.Wait()
				c.equal(uint64(n * users * sections * operations))
			})
		}
	}
}

// A holder that is falsely suspected is told, what it has done stays, and it may enter again.
func TestEjected(t *testing.T) {
	c := start(t, 3, second)
	s := enter(t, c.members[1])
	if got := do(t, s, "k"); got != 1 {
		t.Errorf("the first result is %d", got)
	}
	for k := range 100 { // a decision may leave the token where it is
		c.members[2*(k%2)].Suspect("s2")
		select {
		case <-s.Ejected():
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	<-s.Ejected()
	if !errors.Is(s.Err(), sections.ErrEjected) {
		t.Errorf("the section ended with %v", s.Err())
	}
	if _, err := s.Do(t.Context(), counters.Add("k")); !errors.Is(err, sections.ErrEjected) {
		t.Errorf("Do after that: %v", err)
	}
	s.Exit()
	s = enter(t, c.members[1])
	if got := do(t, s, "k"); got != 2 {
		t.Errorf("the next result is %d", got)
	}
	s.Exit()
	c.equal(2)
}

// An operation whose context ends stays open, and Wait returns its one verdict: that it is executed where its
// issuer was only cut off, and that it never will be where the others went on without it.
func TestVerdictLater(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		t.Run(fmt.Sprint("others go on: ", goOn), func(t *testing.T) {
			var links []*faultnet.Proxy // to the member 0
			c := startWith(t, 3, second, func(i int, c *sections.Config) {
				if i > 0 {
					links = append(links, through(t, i, c)[0])
				}
			})
			s := enter(t, c.members[0])
			do(t, s, "k")
			c.equal(1)
			for _, p := range links {
				p.Cut(faultnet.Both)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := s.Do(ctx, counters.Add("k")); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("cut off: %v", err)
			}
			if _, err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("cut off: %v", err)
			}
			want := uint64(2)
			if goOn {
				other := c.instead(1, 0)
				do(t, other, "k")
				do(t, other, "k")
				other.Exit()
				want = 3
			}
			for _, p := range links {
				p.Heal()
			}
			s.Exit() // as soon as there is a verdict
			for range 2 {
				switch result, err := s.Wait(t.Context()); {
				case goOn && !errors.Is(err, sections.ErrEjected):
					t.Errorf("the others went on: %v", err)
				case !goOn && (err != nil || counters.Value(result[0]) != 2):
					t.Errorf("the operation: %v, %v", result, err)
				}
			}
			c.equal(want)
			enter(t, c.members[0]).Exit()
		})
	}
}

// An operation in a minority stays open. Closing ends it, without a verdict. Of one that waits for it everything is known.
func TestOpen(t *testing.T) {
	c := start(t, 3, second)
	s := enter(t, c.members[0])
	do(t, s, "k")
	c.members[1].Close()
	c.members[2].Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // by then it is issued, without the next one
	defer cancel()
	open, err := s.Start(ctx, counters.Add("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a majority: %v", err)
	}
	waits, err := s.Start(t.Context(), counters.Add("k"))
	if err != nil {
		t.Fatal(err)
	}
	s.Exit() // when the operations have verdicts
	c.members[0].Close()
	for range 2 {
		if _, err := open.Wait(t.Context()); !errors.Is(err, sections.ErrClosed) || errors.Is(err, sections.ErrNotIssued) {
			t.Errorf("after Close: %v", err)
		}
		if _, err := waits.Wait(t.Context()); !errors.Is(err, sections.ErrClosed) || !errors.Is(err, sections.ErrNotIssued) {
			t.Errorf("after Close, one that was not issued: %v", err)
		}
	}
	if _, err := c.members[0].Enter(t.Context(), name); !errors.Is(err, sections.ErrClosed) {
		t.Errorf("Enter after Close: %v", err)
	}
}

// Who gives up waiting leaves nothing behind, whether it waits for this process's turn or for
// another process.
func TestGiveUp(t *testing.T) {
	c := start(t, 3, second)
	holder := enter(t, c.members[0])
	for _, r := range []*sections.Member{c.members[0], c.members[1]} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := r.Enter(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
	}
	if err := holder.Err(); err != nil {
		t.Errorf("the holder: %v", err)
	}
	holder.Exit()
	holder.Exit()
	if _, err := holder.Do(t.Context(), counters.Add("k")); !errors.Is(err, sections.ErrExited) {
		t.Errorf("after Exit: %v", err)
	}
	for _, r := range c.members {
		s := enter(t, r)
		do(t, s, "k")
		s.Exit()
	}
	c.equal(3)
}

// Those that wait when the node closes are told.
func TestClose(t *testing.T) {
	c := start(t, 3, second)
	holder := enter(t, c.members[0])
	var wg sync.WaitGroup
	for _, r := range []*sections.Member{c.members[0], c.members[0], c.members[1]} {
		wg.Go(func() {
			if _, err := r.Enter(t.Context(), name); !errors.Is(err, sections.ErrClosed) {
				t.Errorf("%v", err)
			}
		})
	}
	c.members[1].Close()
	c.members[0].Close()
	<-holder.Ejected()
	if !errors.Is(holder.Err(), sections.ErrClosed) {
		t.Errorf("the holder: %v", holder.Err())
	}
	holder.Exit()
	wg.Wait()
}

// A member that comes back as a new life gets the object, larger than a message, and takes part.
func TestNewLife(t *testing.T) {
	c := start(t, 3, second)
	padding := strings.Repeat("x", 100<<10)
	const keys = 12
	s := enter(t, c.members[0])
	for k := range keys {
		do(t, s, fmt.Sprint(padding, k))
	}
	s.Exit()
	c.equal(keys)
	c.members[2].Close()
	c.again(2)
	c.equal(keys)
	c.members[1].Close() // now the new life is one of the majority
	s = enter(t, c.members[2])
	if got := do(t, s, padding+"0"); got != 2 {
		t.Errorf("the result is %d", got)
	}
	s.Exit()
	c.again(1)
	c.equal(keys + 1)
}

// The same for one whose processes begin when its peers are connected already.
func TestLateProcess(t *testing.T) {
	connected := make(chan struct{})
	c := startWith(t, 3, second, func(_ int, c *sections.Config) {
		if !c.Bootstrap {
			late := consensus.With(wme.Second)
			begin := late.New
			late.New = func(id protocol.ID, c protocol.Config) protocol.Process[consensus.Frame[wme.Message]] {
				<-connected
				return begin(id, c)
			}
			c.Engine = node.HostOf(late)
		}
	})
	c.members[2].Close()
	eventually(t, "the others miss it", func() error {
		if k := c.members[0].Node().Alive(); k != 1 {
			return fmt.Errorf("%d are there", k)
		}
		return nil
	})
	go func() {
		for c.members[0].Node().Alive() < 2 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond) // the processes are about to be told
		close(connected)
	}()
	c.again(2)
	enter(t, c.members[2]).Exit()
}

// A life that says to be the first one, and is not, is refused by each of the others that knows better, whoever of the
// two dials. It does nothing meanwhile, and Open says what to do.
func TestSecondFirstLife(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint("s", i+1), func(t *testing.T) {
			c := start(t, 3, second)
			s := enter(t, c.members[i])
			do(t, s, "k")
			s.Exit()
			c.equal(1)
			c.members[i].Close()
			config := c.config(i, true)
			config.Listener = c.listen(i)
			err := c.open(i, config)
			if !errors.Is(err, sections.ErrMetBefore) || !strings.Contains(err.Error(), "without Bootstrap") {
				t.Errorf("opened: %v", err)
			}
			c.again(i)
			c.equal(1)
		})
	}
}

// A member that cannot execute an operation closes, and the others go on.
func TestObjectPanics(t *testing.T) {
	c := start(t, 3, second)
	c.members[2].Close()
	c.change = func(_ int, c *sections.Config) { c.Objects[name] = fragile{&counters.Store{}} }
	c.again(2)
	s := enter(t, c.members[2]) // it takes part
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Do(ctx, counters.Add("k")); !errors.Is(err, sections.ErrClosed) {
		t.Errorf("%v", err)
	}
	s.Exit()
	s = c.instead(0, 2)
	do(t, s, "k")
	s.Exit()
}

// A fragile copy breaks at the first operation.
type fragile struct{ *counters.Store }

func (fragile) Apply([]byte) []byte { panic("broken") }

// A member that is away for long keeps nobody from going on, and costs the others no more memory
// than their sessions may have. What it has missed it gets when it is back: as operations where the
// others have kept them, and as a whole copy where they have not. It has not restarted.
func TestAway(t *testing.T) {
	for _, keep := range []int64{1 << 16, 16} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			var links []*faultnet.Proxy
			c := startWith(t, 3, second, func(i int, c *sections.Config) {
				c.Change(func(c *node.Config) {
					c.MaxUnacked = 1 // beyond what every session may have: 64 KiB
					c.System.Options = map[string]int64{"keep": keep}
				})
				if i == 2 {
					links = through(t, i, c)
				}
			})
			s := enter(t, c.members[0])
			do(t, s, "k")
			c.equal(1)
			for _, p := range links {
				p.Cut(faultnet.Both)
			}
			const operations = 150 // of 1 KiB: an answer with what is missing is far below that bound
			for range operations {
				do(t, s, strings.Repeat("x", 1<<10))
			}
			for i, m := range c.members[:2] {
				if got := m.Stats().Node.Unacked; got > 2*(64<<10)+(16<<10) {
					t.Errorf("member %d keeps %d bytes for the one that is away", i, got)
				}
			}
			for _, p := range links {
				p.Heal()
			}
			c.equal(1 + operations)
			s.Exit()
			s = enter(t, c.members[2])
			if got := do(t, s, "k"); got != 2 {
				t.Errorf("the result is %d", got)
			}
			s.Exit()
		})
	}
}

// The same with operations that have parts each, and the usual bounds: 5 MiB with one object, as much again for
// what follows a message with parts, and such a message.
func TestAwayLarge(t *testing.T) {
	var links []*faultnet.Proxy
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		if i == 2 {
			links = through(t, i, c)
		}
	})
	s := enter(t, c.members[0])
	do(t, s, "k")
	c.equal(1)
	for _, p := range links {
		p.Cut(faultnet.Both)
	}
	const operations = 80
	for range operations {
		do(t, s, strings.Repeat("x", sections.MaxOperation-1))
		if got := c.members[0].Stats().Node.Unacked; got > 12<<20 {
			t.Fatalf("%d bytes are kept for the one that is away", got)
		}
	}
	s.Exit()
	for _, p := range links {
		p.Heal()
	}
	c.equal(1 + operations)
}

// A verbose copy returns as many bytes as the operation says, where it is a number.
type verbose struct{ sections.Object }

func (v verbose) Apply(op []byte) []byte {
	result := v.Object.Apply(op)
	if size, err := strconv.Atoi(string(op)); err == nil { // of Add, whose + is that of a number
		return make([]byte, size)
	}
	return result
}

// An operation whose result is too large was executed, at all copies, and its user is told so. The section and
// the members go on.
func TestResultTooLarge(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *sections.Config) {
		c.Objects[name] = verbose{c.Objects[name]}
	})
	for _, r := range slices.Backward(c.members) {
		s := enter(t, r)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if b, err := s.Do(ctx, counters.Add(fmt.Sprint(sections.MaxOperation))); len(b) != sections.MaxOperation || err != nil {
			t.Errorf("as large as may be: %d bytes, %v", len(b), err)
		}
		for _, verdict := range []func() error{
			func() error { _, err := s.Do(ctx, counters.Add(fmt.Sprint(sections.MaxOperation+1))); return err },
			func() error { _, err := s.Wait(ctx); return err },
		} {
			if err := verdict(); !errors.Is(err, sections.ErrResultTooLarge) ||
				!strings.Contains(err.Error(), fmt.Sprint(sections.MaxOperation+1)) {
				t.Errorf("too large: %v", err)
			}
		}
		do(t, s, "k")
		s.Exit()
	}
	c.equal(9)
}

// through has a member dial its peers through links of its own.
func through(t *testing.T, id int, c *sections.Config) (links []*faultnet.Proxy) {
	t.Helper()
	peers := slices.Clone(c.Members)
	for i := range peers {
		if i < id {
			p, err := faultnet.New(peers[i].Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			links, peers[i].Addr = append(links, p), p.Addr()
		}
	}
	c.Members = peers
	return links
}
