package replica_test

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
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

const name = "o"

// A cluster is members in this process, each with a copy of one Store.
type cluster struct {
	t      testing.TB
	host   node.Host
	change func(i int, c *node.Config) // nil: nothing
	peers  []node.Peer
	nodes  []*node.Node
	stores []*replica.Store
	copies []*replica.Replica
}

var second = node.HostOf(consensus.With(wme.Second))

func start(t testing.TB, n int, host node.Host) *cluster {
	t.Helper()
	return startWith(t, n, host, nil)
}

func startWith(t testing.TB, n int, host node.Host, change func(i int, c *node.Config)) *cluster {
	t.Helper()
	c := &cluster{
		t: t, host: host, change: change, nodes: make([]*node.Node, n),
		stores: make([]*replica.Store, n), copies: make([]*replica.Replica, n),
	}
	listeners := make([]net.Listener, n)
	for i := range n {
		l, err := transport.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		c.peers = append(c.peers, node.Peer{Name: fmt.Sprint("s", i+1), Addr: l.Addr().String()})
	}
	for i := range n {
		c.start(i, listeners[i], false)
	}
	return c
}

// start starts a life of member i.
func (c *cluster) start(i int, l net.Listener, joins bool) {
	c.t.Helper()
	s := &replica.Store{}
	config := node.Config{
		ID: protocol.ID(i), Peers: c.peers, Listener: l, Lease: 2 * time.Second, Joins: joins,
		Patience: lease.Patience{First: patience / 3, Most: patience}, // a stall is no crash: see instead
		Hosts:    map[node.Kind]node.Host{node.Replica: c.host}, Objects: map[string]node.Object{name: s},
	}
	if c.change != nil {
		c.change(i, &config)
	}
	n, err := node.Start(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { n.Close() })
	c.nodes[i], c.stores[i], c.copies[i] = n, s, replica.New(n, name)
}

// again starts the next life of a member that was closed.
func (c *cluster) again(i int) {
	c.t.Helper()
	c.start(i, c.listen(i), true)
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

func enter(t testing.TB, r *replica.Replica) *replica.Section {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := r.Enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instead enters at a member that suspects another one until then.
func (c *cluster) instead(i, other int) (s *replica.Section) {
	c.t.Helper()
	eventually(c.t, "the others go on", func() (err error) {
		c.nodes[i].Suspect(protocol.ID(other))
		ctx, cancel := context.WithTimeout(c.t.Context(), 100*time.Millisecond)
		defer cancel()
		s, err = c.copies[i].Enter(ctx)
		return err
	})
	return s
}

func do(t testing.TB, s *replica.Section, key string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b, err := s.Do(ctx, replica.Add(key))
	if err != nil {
		t.Fatal(err)
	}
	return replica.Value(b)
}

// Users of all members count together, several of each.
func TestCount(t *testing.T) {
	for _, host := range []node.Host{node.HostOf(consensus.With(wme.First)), second} {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprint(host.Info().Name, ",n=", n), func(t *testing.T) {
				c := start(t, n, host)
				const users, sections, operations = 2, 3, 3
				var wg sync.WaitGroup
				for _, r := range c.copies {
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
	s := enter(t, c.copies[1])
	if got := do(t, s, "k"); got != 1 {
		t.Errorf("the first result is %d", got)
	}
	for k := range 100 { // a decision may leave the token where it is
		c.nodes[2*(k%2)].Suspect(1)
		select {
		case <-s.Ejected():
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	<-s.Ejected()
	if !errors.Is(s.Err(), replica.ErrEjected) {
		t.Errorf("the section ended with %v", s.Err())
	}
	if _, err := s.Do(t.Context(), replica.Add("k")); !errors.Is(err, replica.ErrEjected) {
		t.Errorf("Do after that: %v", err)
	}
	s.Exit()
	s = enter(t, c.copies[1])
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
			c := startWith(t, 3, second, func(i int, c *node.Config) {
				if i > 0 {
					links = append(links, through(t, c)[0])
				}
			})
			s := enter(t, c.copies[0])
			do(t, s, "k")
			c.equal(1)
			for _, p := range links {
				p.Cut(faultnet.Both)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := s.Do(ctx, replica.Add("k")); !errors.Is(err, context.DeadlineExceeded) {
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
				case goOn && !errors.Is(err, replica.ErrEjected):
					t.Errorf("the others went on: %v", err)
				case !goOn && (err != nil || replica.Value(result) != 2):
					t.Errorf("the operation: %v, %v", result, err)
				}
			}
			c.equal(want)
			enter(t, c.copies[0]).Exit()
		})
	}
}

// An operation in a minority stays open. Closing ends it, without a verdict.
func TestOpen(t *testing.T) {
	c := start(t, 3, second)
	s := enter(t, c.copies[0])
	do(t, s, "k")
	c.nodes[1].Close()
	c.nodes[2].Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Do(ctx, replica.Add("k")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a majority: %v", err)
	}
	if _, err := s.Do(t.Context(), replica.Add("k")); !errors.Is(err, replica.ErrOpen) {
		t.Errorf("while an operation is open: %v", err)
	}
	s.Exit() // when the operation has a verdict
	c.nodes[0].Close()
	for range 2 {
		if _, err := s.Wait(t.Context()); !errors.Is(err, replica.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := c.copies[0].Enter(t.Context()); !errors.Is(err, replica.ErrClosed) {
		t.Errorf("Enter after Close: %v", err)
	}
}

// Who gives up waiting leaves nothing behind, whether it waits for this process's turn or for
// another process.
func TestGiveUp(t *testing.T) {
	c := start(t, 3, second)
	holder := enter(t, c.copies[0])
	for _, r := range []*replica.Replica{c.copies[0], c.copies[1]} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := r.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
	}
	if err := holder.Err(); err != nil {
		t.Errorf("the holder: %v", err)
	}
	holder.Exit()
	holder.Exit()
	if _, err := holder.Do(t.Context(), replica.Add("k")); !errors.Is(err, replica.ErrExited) {
		t.Errorf("after Exit: %v", err)
	}
	for _, r := range c.copies {
		s := enter(t, r)
		do(t, s, "k")
		s.Exit()
	}
	c.equal(3)
}

// Those that wait when the node closes are told.
func TestClose(t *testing.T) {
	c := start(t, 3, second)
	holder := enter(t, c.copies[0])
	var wg sync.WaitGroup
	for _, r := range []*replica.Replica{c.copies[0], c.copies[0], c.copies[1]} {
		wg.Go(func() {
			if _, err := r.Enter(t.Context()); !errors.Is(err, replica.ErrClosed) {
				t.Errorf("%v", err)
			}
		})
	}
	c.nodes[1].Close()
	c.nodes[0].Close()
	<-holder.Ejected()
	if !errors.Is(holder.Err(), replica.ErrClosed) {
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
	s := enter(t, c.copies[0])
	for k := range keys {
		do(t, s, fmt.Sprint(padding, k))
	}
	s.Exit()
	c.equal(keys)
	c.nodes[2].Close()
	c.again(2)
	c.equal(keys)
	c.nodes[1].Close() // now the new life is one of the majority
	s = enter(t, c.copies[2])
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
	c := startWith(t, 3, second, func(_ int, c *node.Config) {
		if c.Joins {
			late := consensus.With(wme.Second)
			begin := late.New
			late.New = func(id protocol.ID, c protocol.Config) protocol.Process[consensus.Frame[wme.Message]] {
				<-connected
				return begin(id, c)
			}
			c.Hosts[node.Replica] = node.HostOf(late)
		}
	})
	c.nodes[2].Close()
	c.again(2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.nodes[2].WaitAlive(ctx, 2); err != nil {
		t.Error(err)
	}
	time.Sleep(10 * time.Millisecond) // the processes are about to be told
	close(connected)
	enter(t, c.copies[2]).Exit()
}

// A life that says to be the first one, and is not, is refused by who knows better.
func TestSecondFirstLife(t *testing.T) {
	c := start(t, 3, second)
	s := enter(t, c.copies[2])
	do(t, s, "k")
	s.Exit()
	c.equal(1)
	c.nodes[2].Close()
	c.start(2, c.listen(2), false)
	eventually(t, "it is refused", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := c.nodes[2].WaitAlive(ctx, 2)
		if err == nil {
			t.Fatal("it takes part")
		}
		if !strings.Contains(err.Error(), "life of the process") {
			return err
		}
		return nil
	})
}

// A member that cannot execute an operation closes, and the others go on.
func TestObjectPanics(t *testing.T) {
	c := start(t, 3, second)
	c.nodes[2].Close()
	c.change = func(_ int, nc *node.Config) { nc.Objects = map[string]node.Object{name: fragile{&replica.Store{}}} }
	c.again(2)
	s := enter(t, c.copies[2]) // it takes part
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Do(ctx, replica.Add("k")); !errors.Is(err, replica.ErrClosed) {
		t.Errorf("%v", err)
	}
	s.Exit()
	s = c.instead(0, 2)
	do(t, s, "k")
	s.Exit()
}

// A fragile copy breaks at the first operation.
type fragile struct{ *replica.Store }

func (fragile) Apply([]byte) []byte { panic("broken") }

// A member that is away for long keeps nobody from going on, and costs the others no more memory
// than their sessions may have. What it has missed it gets when it is back: as operations where the
// others have kept them, and as a whole copy where they have not. It has not restarted.
func TestAway(t *testing.T) {
	for _, keep := range []int64{1 << 16, 16} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			var links []*faultnet.Proxy
			c := startWith(t, 3, second, func(i int, c *node.Config) {
				c.MaxUnacked = 1 // beyond what every session may have: 64 KiB
				c.System.Options = map[string]int64{"keep": keep}
				if i == 2 {
					links = through(t, c)
				}
			})
			s := enter(t, c.copies[0])
			do(t, s, "k")
			c.equal(1)
			for _, p := range links {
				p.Cut(faultnet.Both)
			}
			const operations = 150 // of 1 KiB: an answer with what is missing is far below that bound
			for range operations {
				do(t, s, strings.Repeat("x", 1<<10))
			}
			for i, n := range c.nodes[:2] {
				if got := n.Stats().Unacked; got > 2*(64<<10)+(16<<10) {
					t.Errorf("member %d keeps %d bytes for the one that is away", i, got)
				}
			}
			for _, p := range links {
				p.Heal()
			}
			c.equal(1 + operations)
			s.Exit()
			s = enter(t, c.copies[2])
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
	c := startWith(t, 3, second, func(i int, c *node.Config) {
		if i == 2 {
			links = through(t, c)
		}
	})
	s := enter(t, c.copies[0])
	do(t, s, "k")
	c.equal(1)
	for _, p := range links {
		p.Cut(faultnet.Both)
	}
	const operations = 80
	for range operations {
		do(t, s, strings.Repeat("x", node.MaxOperation-1))
		if got := c.nodes[0].Stats().Unacked; got > 12<<20 {
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
type verbose struct{ node.Object }

func (v verbose) Apply(op []byte) []byte {
	result := v.Object.Apply(op)
	if size, err := strconv.Atoi(string(op)); err == nil { // of Add, whose + is that of a number
		return make([]byte, size)
	}
	return result
}

func beVerbose(c *node.Config) { c.Objects[name] = verbose{c.Objects[name]} }

// An operation whose result is too large was executed, at all copies, and its user is told so. The section and
// the members go on.
func TestResultTooLarge(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *node.Config) { beVerbose(c) })
	for _, r := range slices.Backward(c.copies) {
		s := enter(t, r)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if b, err := s.Do(ctx, replica.Add(fmt.Sprint(node.MaxOperation))); len(b) != node.MaxOperation || err != nil {
			t.Errorf("as large as may be: %d bytes, %v", len(b), err)
		}
		for _, verdict := range []func() ([]byte, error){
			func() ([]byte, error) { return s.Do(ctx, replica.Add(fmt.Sprint(node.MaxOperation+1))) },
			func() ([]byte, error) { return s.Wait(ctx) },
		} {
			if b, err := verdict(); b != nil || !errors.Is(err, replica.ErrResultTooLarge) ||
				!strings.Contains(err.Error(), fmt.Sprint(node.MaxOperation+1)) {
				t.Errorf("too large: %d bytes, %v", len(b), err)
			}
		}
		do(t, s, "k")
		s.Exit()
	}
	c.equal(9)
}

// through has a member dial its peers through links of its own.
func through(t *testing.T, c *node.Config) (links []*faultnet.Proxy) {
	t.Helper()
	peers := slices.Clone(c.Peers)
	for i := range peers {
		if protocol.ID(i) < c.ID {
			p, err := faultnet.New(peers[i].Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			links, peers[i].Addr = append(links, p), p.Addr()
		}
	}
	c.Peers = peers
	return links
}

// What is no use of an object is refused.
func TestMisuse(t *testing.T) {
	c := start(t, 1, second)
	if _, err := replica.New(c.nodes[0], "other").Enter(t.Context()); err == nil {
		t.Error("an object that is not there is entered")
	}
	s := enter(t, c.copies[0])
	if _, err := s.Wait(t.Context()); err == nil {
		t.Error("Wait without an operation")
	}
	if _, err := s.Do(t.Context(), make([]byte, node.MaxOperation+1)); err == nil {
		t.Error("too large an operation is executed")
	}
	do(t, s, "k")
	s.Exit()
	for _, size := range []int{-1, 1<<30 + 1} {
		_, err := node.Start(node.Config{Peers: c.peers, Hosts: map[node.Kind]node.Host{node.Replica: second}, MaxState: size})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("MaxState is ", size)) {
			t.Errorf("%d: %v", size, err)
		}
	}
	if _, err := node.Start(node.Config{
		Peers: c.peers, Hosts: map[node.Kind]node.Host{node.Replica: node.HostOf(wme.First)},
	}); err == nil || !strings.Contains(err.Error(), "consensus") {
		t.Errorf("an algorithm that needs consensus: %v", err)
	}
}
