package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// begun has sessions with the first server that begin the largest frame there may be, and send all of it except its
// end. Where one is closed it begins anew.
func (e *enemy) begun(ctx context.Context, ready func()) {
	b := transport.AppendHeader(nil, 0)
	b = append(b, make([]byte, transport.LengthSize+transport.MaxClientFrame-len(b))...)
	transport.EndFrame(b)
	b = b[:len(b)-100]
	var all sync.WaitGroup
	var first sync.WaitGroup
	gate := make(chan struct{}, 32)
	for range e.count {
		first.Add(1)
		secret := node.NewSecret()
		all.Go(func() {
			for met := false; ctx.Err() == nil; {
				gate <- struct{}{}
				g, err := e.knock(secret, 0)
				if err == nil {
					g.nc.SetWriteDeadline(time.Now().Add(10 * time.Second))
					_, _ = g.nc.Write(b) // an error says that it made room for others
				}
				<-gate
				if !met {
					met = true
					first.Done()
				}
				if err == nil {
					stop := context.AfterFunc(ctx, func() { g.nc.Close() })
					_, _ = io.Copy(io.Discard, g.nc)
					stop()
					g.nc.Close()
				}
				secret = node.NewSecret() // no end of sessions, either
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	first.Wait()
	ready()
	all.Wait()
}

// flood has clients that request and release as fast as servers take it.
func (e *enemy) flood(ctx context.Context, ready func()) {
	var all, first sync.WaitGroup
	for k := range e.count * len(e.servers) {
		first.Add(1)
		to := protocol.ID(k % len(e.servers))
		all.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun()
			g, err := e.visit(node.NewSecret(), to)
			if err != nil {
				e.wonder("flood: %v", err)
				return
			}
			defer func() { g.nc.Close() }()
			listen := func(g *guest) {
				for _, err := g.hear(); err == nil; {
					_, err = g.hear()
				}
			}
			go listen(g)
			name := fmt.Sprint("flood/", g.id)
			for seq := uint64(0); ctx.Err() == nil; {
				b := transport.Item{Type: transport.PingItem, Seq: 1}.Append(nil)
				for range 500 {
					seq += 2
					t := now()
					b = transport.AppendNamed(b, transport.MessageItem, seq-1, 1, name, sigma.Algorithm.Append(nil, sigma.Message{Kind: sigma.Request, Time: t}))
					b = transport.AppendNamed(b, transport.MessageItem, seq, 1, name, sigma.Algorithm.Append(nil, sigma.Message{Kind: sigma.Release, Time: t}))
				}
				b = transport.Item{Type: transport.AckItem, Seq: g.received.Load()}.Append(b)
				if err := g.say(b); err != nil {
					e.wonder("flood: after %d messages: %v", seq, err)
					return
				}
				begun()
			}
		})
	}
	first.Wait()
	ready()
	all.Wait()
}

// waitersEach is how many locks one client of names wants: a few less than it may.
const waitersEach = 65_000

// names has clients that want all the same names, very many, at the first server.
func (e *enemy) names(ctx context.Context, ready func()) {
	var all, first sync.WaitGroup
	var refused atomic.Int64
	text := make(chan string, 1)
	for left := e.count; left > 0; left -= waitersEach {
		count := min(left, waitersEach)
		first.Add(1)
		all.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun()
			g, err := e.visit(node.NewSecret(), 0)
			if err != nil {
				e.wonder("names: %v", err)
				return
			}
			var heard atomic.Int64
			var acked uint64
			ended := make(chan error, 1)
			go func() {
				for {
					items, err := g.hear()
					if err == nil && g.received.Load() >= acked+1000 {
						acked = g.received.Load()
						err = g.beat()
					}
					if err != nil {
						ended <- err
						return
					}
					for _, i := range items {
						if i.Type == transport.RefuseItem {
							r, _ := transport.ReadRefuse(i.Body)
							e.wonder("names: %v", r)
						}
					}
					for _, i := range items {
						switch i.Type {
						case transport.RefuseNameItem:
							refused.Add(1)
							select {
							case text <- string(i.Body):
							default:
							}
							heard.Add(1)
						case transport.MessageItem:
							heard.Add(1)
						}
					}
				}
			}()
			for k := 0; k < count && ctx.Err() == nil; {
				var b []byte
				for range min(500, count-k) {
					k++
					m := sigma.Message{Kind: sigma.Request, Time: now()}
					b = transport.AppendNamed(b, transport.MessageItem, uint64(k), 1, fmt.Sprint("names/", k), sigma.Algorithm.Append(nil, m))
				}
				if err := errors.Join(g.say(b), g.beat()); err != nil {
					e.wonder("names: %v", err)
					return
				}
				for heard.Load() < int64(k)-2000 && ctx.Err() == nil {
					select {
					case err := <-ended:
						e.wonder("names: a session ended after %d names: %v", k, err)
						return
					case <-time.After(10 * time.Millisecond):
						_ = g.beat()
					}
				}
			}
			begun()
			for ctx.Err() == nil && g.beat() == nil {
				select {
				case err := <-ended:
					e.wonder("names: a session ended that wants %d: %v", count, err)
					return
				case <-time.After(time.Second):
				}
			}
			g.bye()
		})
	}
	first.Wait()
	select {
	case why := <-text:
		e.wonder("%d were refused: %s", refused.Load(), why)
	default:
	}
	ready()
	all.Wait()
}

// greedy wants all sessions of the first server, and keeps what it gets.
func (e *enemy) greedy(ctx context.Context, ready func()) {
	var guests []*guest
	for len(guests) < e.count {
		g, err := e.knock(node.NewSecret(), 0)
		if err != nil {
			e.wonder("after %d: %v", len(guests), err)
			break
		}
		guests = append(guests, g)
		if len(guests)%2000 == 0 {
			for _, g := range guests {
				_ = g.beat()
			}
		}
	}
	ready()
	for ctx.Err() == nil {
		for _, g := range guests {
			_ = g.beat()
		}
		time.Sleep(time.Second)
	}
	for _, g := range guests {
		g.nc.Close()
	}
}

// TestBudgets: what hostile clients can take of a server is within its budgets, and others get their locks.
// It prints what was measured beside what the budget is. The same with small limits is in package node.
func TestBudgets(t *testing.T) {
	if !lane.Long.Runs() {
		t.Skip("SHORTENED to the tests of package node with small limits: TEST_LANE=long has 1500 sessions with unfinished frames, " +
			"2 145 000 waiters, 16 384 sessions from one address, and ten clients at full speed")
	}
	f := &front{length: 2 * time.Second, scale: &scale{}}
	for range 4 {
		f.admin = append(f.admin, proctest.FreeAddr(t))
	}
	f.c = startClusterWith(t, 4, func(i int) []string {
		return []string{"--admin", f.admin[i], "--log-level", "error"}
	})
	f.victim = startClient(t, clientArgs{Mode: "measure", Servers: f.c.servers, Label: "victim"})
	if line := f.victim.hear(); line != "ready" {
		t.Fatal(line)
	}
	f.window(t) // warms up
	const mib = 1 << 20
	for _, x := range []struct {
		what   string
		count  int
		budget int64  // bytes that a server may need more, its collector's room not counted
		says   string // what the enemy is told
	}{
		{"flood", 10, 64 * mib, ""},
		{"begun", 1500, 256*mib + 1500*64<<10, ""},
		{"names", 33 * waitersEach, 2 << 20 * 400, "the server is full for 127.0.0.1: its limit on clients that hold or wait for a lock is 4194304"},
		{"greedy", 16384, 8192 * 64 << 10, "sessions from 127.0.0.1 are the limit"},
	} {
		t.Run(x.what, func(t *testing.T) {
			quiet := []window{f.window(t), f.window(t)}
			before := f.serverMemory(0)
			enemies := f.startEnemies(t, x.what, x.count)
			began := time.Now()
			sessionsBefore, handled := f.metric(t, "sessions"), f.requests(t)
			f.tell(t, enemies, "on")
			took := time.Since(began)
			loud := []window{f.window(t), f.window(t)}
			handled = f.requests(t) - handled
			rate := float64(handled) / time.Since(began).Seconds()
			peak := rss(f.c.procs[0].Process.Pid)
			unfinished, pairs, sessions := f.metric(t, "unfinished_bytes"), f.metric(t, "lock_clients"), f.metric(t, "sessions")
			now := f.serverMemory(0)
			newcomer := ""
			if x.what == "greedy" {
				newcomer = f.newcomer(t)
			}
			f.tell(t, enemies, "off")
			told := ""
			for _, p := range enemies {
				told += p.end()
			}
			a, b := middle(quiet), middle(loud)
			slower := float64(best(loud)) / float64(best(quiet))
			t.Logf("%-7s %7d: %4d MiB in use more, the budget is %d; %d MiB resident, %d before; unfinished %s, pairs %s, sessions %s, %.0f requests a second; "+
				"p50 %v, %v without: %.1f times, p99 %v; begun in %v; told %s%s",
				x.what, x.count, (now.Heap-before.Heap)/mib, x.budget/mib, peak/mib, before.RSS/mib, unfinished, pairs, sessions, rate,
				b.P50, a.P50, slower, b.P99, took.Round(time.Millisecond), told, newcomer)
			if more := now.Heap - before.Heap; more > x.budget {
				t.Errorf("%s: %d bytes more are in use, the budget is %d", x.what, more, x.budget)
			}
			if slower > 3 {
				t.Errorf("%s: the p50 of the honest client is %.1f times what it was alone, want at most 3", x.what, slower)
			}
			for _, w := range loud {
				if len(w.Errors) > 0 {
					t.Errorf("%s: the honest client: %q", x.what, w.Errors)
				}
			}
			if !strings.Contains(told, x.says) || x.says == "" && told != "null" || strings.Contains(told, "a session ended") {
				t.Errorf("%s: the enemy was told %s, want %q", x.what, told, x.says)
			}
			eventually(t, "the sessions of the enemy have ended", func() string {
				if k := f.metric(t, "sessions"); k != sessionsBefore {
					return k + " sessions"
				}
				return ""
			})
		})
	}
}

// requests is how many requests the first server has received.
func (f *front) requests(t *testing.T) uint64 {
	k, err := strconv.ParseFloat(f.metric(t, `messages_total{direction="received",lock_kind="mutex",message="REQUEST"}`), 64)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(k)
}

// metric is what the first server says about one.
func (f *front) metric(t *testing.T, name string) string {
	t.Helper()
	reply, err := http.Get("http://" + f.admin[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^poundlock_` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no metric %s", name)
	}
	return string(m[1])
}

// newcomer begins a session at the first server from another address, which is welcome.
func (f *front) newcomer(t *testing.T) string {
	t.Helper()
	_, addr, _ := strings.Cut(f.c.table[0], "=")
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	e := &enemy{}
	for _, s := range f.c.table {
		name, addr, _ := strings.Cut(s, "=")
		e.servers = append(e.servers, node.Peer{Name: name, Addr: addr})
	}
	g := &guest{nc: nc, in: bufio.NewReader(nc)}
	if err := g.say(e.hello(node.NewSecret(), 0).Append(nil)); err != nil {
		t.Fatal(err)
	}
	items, err := g.hear()
	if err != nil || items[0].Type != transport.WelcomeItem {
		r, _ := transport.ReadRefuse(items[0].Body)
		t.Errorf("somebody from another address is not welcome: %v, %v", r, err)
		return ""
	}
	g.bye()
	return "; a newcomer from 127.0.0.2 is welcome"
}
