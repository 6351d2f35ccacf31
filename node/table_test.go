package node_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// An insider is a probe that counts the members that its critical section rests on.
type insider struct {
	*probe
	mu       sync.Mutex
	supports map[protocol.ID]uint64
	least    int
}

func newInsider() *insider { return &insider{probe: newProbe(), least: 100} }

func (i *insider) Crit(e node.Entry) {
	i.Supported(e.Sessions)
	i.probe.Crit(e)
}

func (i *insider) Supported(sessions map[protocol.ID]uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.supports, i.least = sessions, min(i.least, len(sessions))
}

func (i *insider) live() (now, least int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.supports), i.least
}

// stays fails when the critical section is lost.
func (i *insider) stays(t *testing.T) {
	t.Helper()
	select {
	case <-i.ejected:
		t.Fatal("the critical section is lost")
	case why := <-i.rem:
		t.Fatal("it has left: ", why)
	default:
	}
}

// moved is a table of a higher epoch with one member elsewhere.
func moved(peers []node.Peer, k int, addr string) []node.Peer {
	table := slices.Clone(peers)
	table[k].Addr = addr
	return table
}

func epochOf(n *node.Node) uint64 {
	epoch, _ := n.Table()
	return epoch
}

func numbers(n *node.Node) string {
	var all []string
	for _, s := range n.Sessions() {
		all = append(all, fmt.Sprint(s.Peer, ":", s.Number))
	}
	return strings.Join(all, " ")
}

// A table is rolled out server by server. Clients adopt it from the first that has it,
// whether they run or come later, and lose neither a session nor a support.
func TestTableRollsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		c := f.clients(1, host, nil)[0]
		u := newInsider()
		must(t, c.Try(node.Mutex, "a", u, false))
		<-u.crit
		eventually(t, "all sessions are up", func() bool { return c.Alive() == 4 })
		before := numbers(c)
		for k, s := range f.nodes {
			epoch := uint64(k + 1)
			must(t, s.SetTable(epoch, f.peers))
			eventually(t, "the client has adopted it", func() bool { return epochOf(c) == epoch })
		}
		late := f.clients(1, host, nil)[0]
		if got := epochOf(late); got != 4 {
			t.Errorf("a client that comes later has epoch %d", got)
		}
		eventually(t, "all connections are up", func() bool { return c.Alive() == 4 })
		w := newProbe()
		must(t, late.Try(node.Mutex, "a", w, false))
		time.Sleep(15 * time.Second) // more than a lease: what was lost would show
		u.stays(t)
		if got := numbers(c); got != before {
			t.Errorf("sessions %s, before the roll-out %s", got, before)
		}
		if _, least := u.live(); least != 3 {
			t.Errorf("down to %d supports", least)
		}
		select {
		case <-w.crit:
			t.Fatal("two are inside")
		default:
		}
		c.Exit("a")
		<-w.crit
	})
}

// A client that has the new table talks to servers that have the old one, and they say
// so once.
func TestServerWithOlderTable(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	var log proctest.Log
	_, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		c.Epoch = 1
		if c.ID == 0 {
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
	})
	newer := func(c *node.Config) { c.Epoch = 3 }
	for _, c := range clients(t, 3, peers, host, newer) {
		u := newProbe()
		must(t, c.Try(node.Mutex, "a", u, false))
		<-u.crit
		c.Exit("a")
		<-u.rem
		if epochOf(c) != 3 {
			t.Error("the client went back")
		}
	}
	if n := strings.Count(log.String(), "another process has a newer slot table than this one"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// A closing conn tells when it is closed.
type watched struct {
	net.Conn
	closed func()
	once   sync.Once
}

func (w *watched) Close() error {
	w.once.Do(w.closed)
	return w.Conn.Close()
}

// dials counts the open connections by address.
type dials struct {
	wire func(context.Context, node.Peer) (net.Conn, error)
	mu   sync.Mutex
	open map[string]int
}

func (d *dials) dial(ctx context.Context, p node.Peer) (net.Conn, error) {
	conn, err := d.wire(ctx, p)
	if err != nil {
		return nil, err
	}
	d.add(p.Addr, 1)
	return &watched{Conn: conn, closed: func() { d.add(p.Addr, -1) }}, nil
}

func (d *dials) add(addr string, k int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]int{}
	}
	d.open[addr] += k
}

func (d *dials) at(addr string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[addr]
}

// A slot moves to another host, empty, while a lock is held: clients leave the old
// host, the holder has lost one support and stays inside, and nobody else gets in.
func TestMovedSlot(t *testing.T) {
	for _, oldHostLives := range []bool{false, true} {
		t.Run(fmt.Sprintf("oldHostLives=%v", oldHostLives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testMovedSlot(t, oldHostLives) })
		})
	}
}

func testMovedSlot(t *testing.T, oldHostLives bool) {
	host := node.HostOf(sigma.Algorithm)
	f := newVirtualFleet(t, 4, host, nil)
	var d dials
	c := f.clients(1, host, func(c *node.Config) { d.wire, c.Dial = c.Dial, d.dial })[0]
	u := newInsider()
	must(t, c.Try(node.Mutex, "a", u, false))
	<-u.crit
	eventually(t, "all servers support it", func() bool { now, _ := u.live(); return now == 4 })
	u.mu.Lock()
	u.least = 4
	u.mu.Unlock()
	const k, addr = 1, "another host"
	if !oldHostLives {
		f.nodes[k].Close()
	}
	l, err := f.listen(addr)
	must(t, err)
	table := moved(f.peers, k, addr)
	successor := f.configs[k]
	successor.Peers, successor.Epoch, successor.Listener = table, 1, l
	again := start(t, successor)
	for i, s := range f.nodes {
		if i != k {
			must(t, s.SetTable(1, table))
		}
	}
	eventually(t, "the client is at the new host", func() bool {
		return d.at(addr) == 1 && d.at(f.peers[k].Addr) == 0 && len(again.Sessions()) == 1
	})
	eventually(t, "it has all sessions again", func() bool { return c.Alive() == 4 })
	u.stays(t)
	if _, least := u.live(); least != 3 {
		t.Errorf("down to %d supports, want 3: one loss", least)
	}
	eventually(t, "the new host supports it, too", func() bool { now, _ := u.live(); return now == 4 })
	w := newProbe()
	f.peers = table
	must(t, f.clients(1, host, func(c *node.Config) { c.Epoch = 1 })[0].Try(node.Mutex, "a", w, false))
	time.Sleep(15 * time.Second) // more than a lease
	u.stays(t)
	select {
	case <-w.crit:
		t.Fatal("two are inside")
	default:
	}
	c.Exit("a")
	<-w.crit
}

// The same process at another address, such as a name in place of a number, is not a
// loss: the session goes on there.
func TestAnotherAddressOfTheSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		const alias = "also "
		var d dials
		c := f.clients(1, host, func(c *node.Config) {
			wired := c.Dial
			d.wire = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				p.Addr = strings.TrimPrefix(p.Addr, alias)
				return wired(ctx, p)
			}
			c.Dial = d.dial
		})[0]
		before := numbers(c)
		table := slices.Clone(f.peers)
		for k := range table {
			table[k].Addr = alias + table[k].Addr
		}
		must(t, f.nodes[0].SetTable(1, table))
		eventually(t, "the client has adopted it", func() bool { return epochOf(c) == 1 })
		for k, p := range table {
			eventually(t, "it is connected again", func() bool { return d.at(p.Addr) == 1 && d.at(f.peers[k].Addr) == 0 })
			_, err := c.Call(t.Context(), protocol.ID(k), nil)
			if err == nil || strings.Contains(err.Error(), "no connection") {
				t.Errorf("a call of %s: %v", p.Name, err)
			}
		}
		if got := numbers(c); got != before {
			t.Errorf("sessions %s, before %s", got, before)
		}
	})
}

// say writes one frame of an epoch.
func (s *stranger) sayIn(epoch uint64, items ...func([]byte) []byte) {
	s.t.Helper()
	b := transport.AppendHeader(nil, epoch)
	for _, i := range items {
		b = i(b)
	}
	transport.EndFrame(b)
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// tooOld waits for the refusal of an epoch, with both values and the new table.
func (s *stranger) tooOld(mine, yours uint64, peers []node.Peer) {
	s.t.Helper()
	r, err := transport.ReadRefuse(s.until(transport.RefuseItem).Body)
	must(s.t, err)
	want := fmt.Sprintf("epoch of the slot table: %d there, %d here", mine, yours)
	if r.Code != transport.OldTable || !strings.Contains(r.Error(), want) {
		s.t.Errorf("refused with %v, want %q", r, want)
	}
	if r.Table.Epoch != mine || len(r.Table.Slots) != len(peers) || node.Peer(r.Table.Slots[0]) != peers[0] {
		s.t.Errorf("with the table %+v", r.Table)
	}
	s.ends()
}

// A message of an old epoch is refused with both epochs and the new table, whether it
// opens a connection or comes on one that is older than the table. It is not lost: on
// another connection the session goes on with it.
func TestOldEpoch(t *testing.T) {
	var d diary
	servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(d.add)), func(c *node.Config) { c.Epoch = 4 })
	early := visit(t, peers[0].Addr)
	early.sayIn(3, greeting.Append)
	early.tooOld(4, 3, peers)

	s := visit(t, peers[0].Addr)
	s.sayIn(4, greeting.Append)
	s.until(transport.WelcomeItem)
	must(t, servers[0].SetTable(5, peers))
	s.sayIn(4, message(1, 1, "a", enter))
	s.tooOld(5, 4, peers)
	if got := d.take(); len(got) != 0 {
		t.Errorf("the process got %v", got)
	}

	again := visit(t, peers[0].Addr)
	h := greeting
	h.Resume = true
	again.sayIn(6, h.Append) // a newer table than the server's is fine
	w, err := transport.ReadWelcome(again.until(transport.WelcomeItem).Body)
	if err != nil || w.Received != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	again.sayIn(6, message(1, 1, "a", enter))
	again.until(transport.MessageItem)
}

// What a table may not be replaced by.
func TestSetTable(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 4, false, host, func(c *node.Config) { c.Epoch = 4 })
	s := servers[0]
	rename := slices.Clone(peers)
	rename[3].Name = "s5"
	for _, test := range []struct {
		epoch uint64
		table []node.Peer
		want  string // "" for none
	}{
		{3, peers, "epoch 3 cannot replace that of epoch 4"},
		{4, peers, ""},
		{4, moved(peers, 1, "127.0.0.1:1"), "two slot tables have epoch 4"},
		{5, peers[:3], "cannot change from s1,s2,s3,s4 to s1,s2,s3: quorums"},
		{5, rename, "cannot change from s1,s2,s3,s4 to s1,s2,s3,s5: quorums"},
		{5, nil, "quorums"},
		{5, moved(peers, 1, peers[2].Addr), "s2 and s3 have the same address"},
		{5, moved(peers, 1, "nowhere"), `member s2: address "nowhere"`},
		{5, moved(peers, 1, ":1"), `member s2: address ":1"`},
		{5, moved(peers, 1, "h:"+strings.Repeat("1", 9000)), "member s2"},
		{1 << 63, peers, ""},
	} {
		err := s.SetTable(test.epoch, test.table)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("epoch %d, %v: %v, want %q", test.epoch, test.table, err, test.want)
		}
	}
	if epoch, table := s.Table(); epoch != 1<<63 || !slices.Equal(table, peers) {
		t.Errorf("epoch %d, %v", epoch, table)
	}
}

// No table that a server makes up is adopted unless it could be one of this cluster,
// and the client says why; the other servers go on.
func TestAbsurdTables(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, nil)
	slots := func(peers []node.Peer) (all []transport.Slot) {
		for _, p := range peers {
			all = append(all, transport.Slot(p))
		}
		return all
	}
	rename := slices.Clone(peers)
	rename[0].Name = "s9"
	swapped := slices.Clone(peers)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for what, test := range map[string]struct {
		table transport.Table
		want  string
	}{
		"empty":          {transport.Table{Epoch: 9}, "its table has 0 members, not 4"},
		"fewer":          {transport.Table{Epoch: 9, Slots: slots(peers[:3])}, "its table has 3 members, not 4"},
		"more":           {transport.Table{Epoch: 9, Slots: slots(append(slices.Clone(peers), peers...))}, "8 members, not 4"},
		"other names":    {transport.Table{Epoch: 9, Slots: slots(rename)}, "quorums"},
		"another order":  {transport.Table{Epoch: 9, Slots: slots(swapped)}, "quorums"},
		"same address":   {transport.Table{Epoch: 9, Slots: slots(moved(peers, 1, peers[2].Addr))}, "same address"},
		"no address":     {transport.Table{Epoch: 9, Slots: slots(moved(peers, 1, ""))}, `address ""`},
		"absurd address": {transport.Table{Epoch: 9, Slots: slots(moved(peers, 1, "\x00:99999"))}, "member s2"},
		"no news":        {transport.Table{Epoch: 0, Slots: slots(moved(peers, 1, "127.0.0.1:1"))}, "two slot tables"},
	} {
		t.Run(what, func(t *testing.T) {
			liar, addr := listen(t, false, 0)
			var visits sync.WaitGroup
			defer visits.Wait()
			defer liar.Close()
			visits.Go(func() {
				for {
					conn, err := liar.Accept()
					if err != nil {
						return
					}
					transport.ReadFrame(conn, transport.MaxHandshake)
					conn.Write(frame(transport.Refuse{
						Code: transport.OldTable, What: "epoch", Mine: "9", Yours: "0", Table: test.table,
					}.Append))
					conn.Close()
				}
			})
			c := start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: moved(peers, 0, addr)})
			must(t, c.WaitAlive(t.Context(), 3))
			eventually(t, "the client says why", func() bool {
				now, cancel := context.WithCancel(t.Context())
				cancel()
				err := c.WaitAlive(now, 4)
				return err != nil && strings.Contains(err.Error(), test.want)
			})
			if epoch, table := c.Table(); epoch != 0 || table[0].Addr != addr {
				t.Errorf("epoch %d, %v", epoch, table)
			}
			u := newProbe()
			must(t, c.Try(node.Mutex, "a", u, false))
			<-u.crit
			c.Exit("a")
			<-u.rem
			c.Close()
		})
	}
}

// Tables that change all the time cost nobody a lock.
func TestTablesUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, nil)
		f.wire.Delay = time.Millisecond // or all would be over before a table changes
		users := f.clients(3, host, nil)
		stop := make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() {
			for epoch := uint64(1); ; epoch++ {
				select {
				case <-stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				if err := f.nodes[epoch%4].SetTable(epoch, f.peers); err != nil {
					t.Error(err)
				}
			}
		})
		count(t, users, 3, 100)
		close(stop)
		changing.Wait()
		if epochOf(users[0]) < 4 {
			t.Error("no table was adopted")
		}
	})
}

// A client that is told on its connection goes to the new address at once, also when the
// old one answers nobody any more.
func TestToldOnConnection(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, func(c *node.Config) { c.Epoch = 1 })
	addr, met := impostor(t, "s1")
	c := start(t, node.Config{
		Secret: node.NewSecret(), Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: addr}},
	})
	must(t, c.WaitAlive(t.Context(), 1))
	s := <-met
	s.say(transport.Refuse{
		Code: transport.OldTable, Table: transport.Table{Epoch: 1, Slots: []transport.Slot{transport.Slot(peers[0])}},
	}.Append)
	s.ends()
	// What is asked for in the session with the impostor is lost with it.
	eventually(t, "the client has a session at the new address", func() bool {
		all := c.Sessions()
		return epochOf(c) == 1 && len(all) == 1 && all[0].Incarnation == servers[0].Incarnation()
	})
	u := newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	<-u.crit
}

// A client leaves an address where it waits, for an answer or for its next attempt, as
// soon as it knows better.
func TestLeavesAtOnce(t *testing.T) {
	for _, mute := range []bool{false, true} {
		t.Run(fmt.Sprint("mute=", mute), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wire cable
				c := wire.members(t, 1, node.HostOf(keeper(nil)), nil)
				good := c.Peers
				c.Peers = []node.Peer{{Name: "s1", Addr: "elsewhere"}}
				if mute {
					l, err := wire.Listen("elsewhere")
					must(t, err)
					defer l.Close()
					go func() {
						for {
							conn, err := l.Accept()
							if err != nil {
								return
							}
							defer conn.Close()
							go io.Copy(io.Discard, conn)
						}
					}()
				}
				n := start(t, c)
				time.Sleep(2100 * time.Millisecond) // in an attempt, or between two that are a second apart
				began := time.Now()
				must(t, n.SetTable(1, good))
				must(t, n.WaitAlive(t.Context(), 1))
				if took := time.Since(began); took > 50*time.Millisecond {
					t.Errorf("after %v", took)
				}
				n.Close()
			})
		})
	}
}

// Whoever makes an epoch up hides nothing: the next one that somebody has is warned of as well, once.
func TestAbsurdEpoch(t *testing.T) {
	var log journal
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for k, epoch := range []uint64{1<<64 - 1, 7, 7, 1<<64 - 1} {
		s := visit(t, peers[0].Addr)
		s.sayIn(epoch, another(greeting, k).Append)
		s.until(transport.WelcomeItem)
	}
	for _, epoch := range []string{"epoch=18446744073709551615 mine=0", "epoch=7 mine=0"} {
		if k := strings.Count(log.String(), epoch); k != 1 {
			t.Errorf("%d lines with %q:\n%s", k, epoch, log.String())
		}
	}
}

// A journal is a log for tests.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
