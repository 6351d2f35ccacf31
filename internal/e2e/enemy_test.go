package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// An enemy is a process that does servers harm.
type enemy struct {
	servers []node.Peer
	apis    []string
	count   int // how much

	mu       sync.Mutex
	surprise []string // what servers did that they should not
}

// loads are the kinds of harm. Each goes on until ctx ends, and calls ready once it is
// as bad as it gets.
var loads = map[string]func(e *enemy, ctx context.Context, ready func()){
	"silent":    (*enemy).silent,
	"mute":      (*enemy).mute,
	"fuzz":      (*enemy).fuzz,
	"strangers": (*enemy).strangers,
	"requests":  (*enemy).requests,
	"waiters":   (*enemy).waiters,
	"rivals":    (*enemy).rivals,
	"begun":     (*enemy).begun,
	"flood":     (*enemy).flood,
	"names":     (*enemy).names,
	"greedy":    (*enemy).greedy,
}

// harm obeys the lines of stdin: on, off.
func harm(a clientArgs) error {
	table, err := slots.Parse(a.Servers)
	if err != nil {
		return err
	}
	e := &enemy{servers: table, count: a.Count}
	if a.File != "" {
		e.apis = strings.Split(a.File, ",")
	}
	if a.Name != "rivals" { // of whom the victim shall notice something
		if err := stepBack(); err != nil {
			fmt.Fprintln(os.Stderr, "this process takes processors from the servers:", err)
		}
	}
	fmt.Println("ready")
	stop := func() {}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "on":
			ctx, cancel := context.WithCancel(context.Background())
			ready, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				loads[a.Name](e, ctx, sync.OnceFunc(func() { close(ready) }))
			}()
			<-ready
			stop = func() { cancel(); <-done }
		case "off":
			stop()
		}
		fmt.Println("done")
	}
	return json.NewEncoder(os.Stdout).Encode(e.surprise)
}

// stepBack has the system run this process after servers and victim: it stands for
// other machines, whose processors are their own.
func stepBack() error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, 10); err != nil {
				return err
			}
		}
	}
	return err
}

func (e *enemy) wonder(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.surprise) < 10 {
		e.surprise = append(e.surprise, fmt.Sprintf(format, args...))
	}
}

// often calls f for each server, so many times a second, until ctx ends.
func (e *enemy) often(ctx context.Context, rate int, f func(to protocol.ID)) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for id := range e.servers {
			f(protocol.ID(id))
		}
	}
}

func (e *enemy) dial(to protocol.ID) (net.Conn, error) {
	return net.DialTimeout("tcp", e.servers[to].Addr, 10*time.Second)
}

// silent has many connections to each server that say nothing, and makes new ones for
// those that are closed.
func (e *enemy) silent(ctx context.Context, ready func()) {
	var all sync.WaitGroup
	var first sync.WaitGroup
	gate := make(chan struct{}, 32)
	for id := range e.servers {
		for range e.count {
			first.Add(1)
			all.Go(func() {
				for met := false; ctx.Err() == nil; {
					gate <- struct{}{}
					nc, err := e.dial(protocol.ID(id))
					<-gate
					if !met {
						met = true
						first.Done()
					}
					if err != nil {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					stop := context.AfterFunc(ctx, func() { nc.Close() })
					_, _ = io.Copy(io.Discard, nc)
					stop()
					nc.Close()
				}
			})
		}
	}
	first.Wait()
	ready()
	all.Wait()
}

// A guest is a raw session with one server.
type guest struct {
	id protocol.ID
	nc net.Conn
	in *bufio.Reader

	mu       sync.Mutex // of what is written
	seq      uint64
	received atomic.Uint64
}

// hello is one that a server welcomes.
func (e *enemy) hello(secret uint64, to protocol.ID) transport.Hello {
	h := transport.Hello{
		From: node.ClientID(secret), To: to, ToName: e.servers[to].Name, Incarnation: secret, Session: 1,
		Kinds: []transport.Kind{{Number: 1, Algorithm: "sigma"}}, Label: "enemy",
	}
	for i, p := range e.servers {
		if i > 0 {
			h.Members += ","
		}
		h.Members += p.Name
	}
	return h
}

// visit begins a session with a server. Like any client it comes back when it is not
// heard at once.
func (e *enemy) visit(secret uint64, to protocol.ID) (g *guest, err error) {
	for range 10 {
		if g, err = e.knock(secret, to); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return g, err
}

func (e *enemy) knock(secret uint64, to protocol.ID) (*guest, error) {
	nc, err := e.dial(to)
	if err != nil {
		return nil, err
	}
	g := &guest{id: node.ClientID(secret), nc: nc, in: bufio.NewReaderSize(nc, 512)}
	if err := g.say(e.hello(secret, to).Append(nil)); err != nil {
		nc.Close()
		return nil, err
	}
	items, err := g.hear()
	if err == nil && items[0].Type != transport.WelcomeItem {
		r, _ := transport.ReadRefuse(items[0].Body)
		err = fmt.Errorf("not welcome: %w", r)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return g, nil
}

func frameOf(items []byte) []byte {
	b := append(transport.AppendHeader(nil, 0), items...)
	transport.EndFrame(b)
	return b
}

func (g *guest) say(items []byte) error {
	g.nc.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err := g.nc.Write(frameOf(items))
	return err
}

// ask sends a message about a lock.
func (g *guest) ask(name string, m sigma.Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	return g.say(transport.AppendNamed(nil, transport.MessageItem, g.seq, 1, name, sigma.Algorithm.Append(nil, m)))
}

// beat renews the lease and acknowledges what came.
func (g *guest) beat() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := transport.Item{Type: transport.PingItem, Seq: 1}.Append(nil)
	return g.say(transport.Item{Type: transport.AckItem, Seq: g.received.Load()}.Append(b))
}

func (g *guest) bye() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.say(transport.Item{Type: transport.ByeItem}.Append(nil))
	g.nc.Close()
}

// hear returns the items of the next frame.
func (g *guest) hear() (items []transport.Item, err error) {
	b, err := transport.ReadFrame(g.in, transport.MaxFrame)
	if err != nil {
		return nil, err
	}
	_, rest, err := transport.ReadHeader(b)
	for err == nil && len(rest) > 0 {
		var i transport.Item
		if i, rest, err = transport.ReadItem(rest); err != nil {
			return nil, err
		}
		if i.Type == transport.MessageItem || i.Type == transport.RefuseNameItem {
			g.received.Store(i.Seq)
		}
		items = append(items, i)
	}
	return items, err
}

func now() uint64 { return uint64(time.Now().UnixNano()) }

// waiters are many clients that want one name. Whom a server supports leaves it a
// moment later, and comes again.
func (e *enemy) waiters(ctx context.Context, ready func()) {
	const lease, held = 10 * time.Second, 10 * time.Millisecond
	secrets := make([]uint64, e.count)
	for k := range secrets {
		secrets[k] = node.NewSecret()
	}
	var readers sync.WaitGroup
	guests := make([]atomic.Pointer[guest], len(e.servers)*len(secrets))
	var beating sync.WaitGroup
	beating.Go(func() {
		for k := 0; ctx.Err() == nil; k = (k + 1) % len(guests) {
			if g := guests[k].Load(); g != nil && g.beat() != nil {
				e.wonder("a waiter has lost its connection")
				guests[k].Store(nil)
			}
			if k%4 == 0 { // as evenly as those of processes of their own would be
				time.Sleep(4 * lease / 4 / time.Duration(len(guests)))
			}
		}
	})
	err := load.Each(len(guests), atOnce, func(k int) error {
		g, err := e.visit(secrets[k/len(e.servers)], protocol.ID(k%len(e.servers)))
		if err != nil {
			return err
		}
		guests[k].Store(g)
		t := now()
		readers.Go(func() { e.wait(ctx, g, t, held) })
		return g.ask("crowd", sigma.Message{Kind: sigma.Request, Time: t})
	})
	if err != nil {
		e.wonder("waiters: %v", err)
	}
	ready()
	beating.Wait()
	for k := range guests {
		if g := guests[k].Load(); g != nil {
			g.bye()
		}
	}
	readers.Wait()
}

// wait reads what a server says to one waiter.
func (e *enemy) wait(ctx context.Context, g *guest, t uint64, held time.Duration) {
	for {
		items, err := g.hear()
		if err != nil {
			return
		}
		for _, i := range items {
			m, _, err := sigma.Algorithm.Read(i.Body)
			if i.Type != transport.MessageItem || err != nil || m.Kind != sigma.Response || m.Owner != g.id || m.Time != t {
				continue
			}
			time.Sleep(held)
			if ctx.Err() != nil {
				continue
			}
			_ = g.ask("crowd", sigma.Message{Kind: sigma.Release, Time: t})
			t = now()
			_ = g.ask("crowd", sigma.Message{Kind: sigma.Request, Time: t})
		}
	}
}

// sessions begins one at each server and calls f with it, so many times a second. One
// that ends is begun anew. Without read nothing that the server says is read.
func (e *enemy) sessions(ctx context.Context, rate int, read bool, ready func(), f func(g *guest) error) {
	guests := make([]*guest, len(e.servers))
	begun := 0
	e.often(ctx, rate, func(to protocol.ID) {
		if guests[to] == nil {
			g, err := e.visit(node.NewSecret(), to)
			if err != nil {
				return
			}
			guests[to] = g
			if begun++; begun == len(guests) {
				ready()
			}
			if read {
				go func() {
					for {
						if _, err := g.hear(); err != nil {
							return
						}
					}
				}()
			}
		}
		g := guests[to]
		err := f(g)
		if err == nil && read && g.seq%64 == 0 {
			err = g.beat()
		}
		if err != nil {
			g.nc.Close()
			guests[to] = nil
		}
	})
	for _, g := range guests {
		if g != nil {
			g.bye()
		}
	}
}

// mute asks for ever more locks with long names, and never reads an answer.
func (e *enemy) mute(ctx context.Context, ready func()) {
	k := 0
	e.sessions(ctx, 500, false, ready, func(g *guest) error {
		k++
		return g.ask(fmt.Sprintf("%d/%0900d", g.id, k), sigma.Message{Kind: sigma.Request, Time: now()})
	})
}

// requests asks for names that there cannot be, at times that are far from now.
func (e *enemy) requests(ctx context.Context, ready func()) {
	names := []string{"", strings.Repeat("x", 1025), "\xff\xfe", "a\nb", "fine", "fine too"}
	hour := uint64(time.Hour)
	times := []uint64{0, now(), now() - hour, now() + hour, 1<<64 - 1}
	k := 0
	e.sessions(ctx, 500, true, ready, func(g *guest) error {
		k++
		return g.ask(names[k%len(names)], sigma.Message{Kind: sigma.Request, Time: times[k%len(times)]})
	})
}

// fuzz sends frames and API requests of which some bytes are wrong.
func (e *enemy) fuzz(ctx context.Context, ready func()) {
	client := &http.Client{Timeout: patience}
	methods := []string{"OpenSession", "RenewSession", "CloseSession", "Lock", "Release", "Status", "Holder"}
	ready()
	e.often(ctx, 50, func(to protocol.ID) {
		secret := node.NewSecret()
		b := frameOf(e.hello(secret, to).Append(nil))
		m := sigma.Algorithm.Append(nil, sigma.Message{Kind: sigma.Request, Time: now()})
		whole := rand.IntN(2) == 0
		if !whole {
			garble(b)
		}
		more := frameOf(transport.AppendNamed(nil, transport.MessageItem, 1, 1, fmt.Sprint("fuzz/", secret), m))
		garble(more)
		if nc, err := e.dial(to); err == nil {
			nc.SetDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = nc.Write(append(b, more...))
			_, _ = io.Copy(io.Discard, nc)
			nc.Close()
		}
		if len(e.apis) == 0 {
			return
		}
		body := []byte(`{"session_id": "0123456789abcdef", "names": ["a", "b"], "wait_ms": 10, "lease_ms": 200}`)
		garble(body)
		method := methods[rand.IntN(len(methods))]
		url := "http://" + e.apis[to] + "/poundlock.v1.LockService/" + method
		reply, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			e.wonder("API: %v", err)
			return
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode == http.StatusInternalServerError || !json.Valid(text) {
			e.wonder("API: %s %q: status %d, %q", method, body, reply.StatusCode, text)
		}
	})
}

// garble changes a few bytes.
func garble(b []byte) {
	for range 1 + rand.IntN(4) {
		b[rand.IntN(len(b))] = byte(rand.Uint32())
	}
}

// strangers are of another cluster, of another version, or speak something else.
func (e *enemy) strangers(ctx context.Context, ready func()) {
	ready()
	e.often(ctx, 50, func(to protocol.ID) {
		other, version := e.hello(node.NewSecret(), to), frameOf(e.hello(node.NewSecret(), to).Append(nil))
		other.Members = "x1,x2,x3,x4"
		version[transport.LengthSize] = 99
		all := [][]byte{
			frameOf(other.Append(nil)), version,
			[]byte("GET / HTTP/1.1\r\n\r\n"),
			{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, // a TLS client's hello begins like this
		}
		nc, err := e.dial(to)
		if err != nil {
			return
		}
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = nc.Write(all[rand.IntN(len(all))])
		_, err = io.Copy(io.Discard, nc)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			e.wonder("a stranger is not turned away")
		}
		nc.Close()
	})
}

// rivals want the names of the victim, and hold each for a while: nothing hostile, but
// what the measure must notice.
func (e *enemy) rivals(ctx context.Context, ready func()) {
	c := poundlock.Config{Label: "rival"}
	for _, p := range e.servers {
		c.Servers = append(c.Servers, poundlock.Server(p))
	}
	cl, err := poundlock.Dial(ctx, c)
	if err != nil {
		e.wonder("rivals: %v", err)
		ready()
		return
	}
	defer cl.Close()
	var all, first sync.WaitGroup
	for k := range 16 {
		first.Add(1)
		entered := sync.OnceFunc(first.Done)
		all.Go(func() {
			defer entered()
			for ctx.Err() == nil {
				g, err := cl.Mutex(quiet(k)).Lock(ctx)
				if err != nil {
					continue
				}
				entered()
				time.Sleep(20 * time.Millisecond)
				_ = g.Unlock()
			}
		})
	}
	first.Wait()
	ready()
	all.Wait()
}
