package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
)

// A dynasty is a cluster whose servers hand their tables over.
type dynasty struct {
	t       *testing.T
	dir     string
	table   []node.Peer
	reigns  []*reign
	log     proctest.Log
	changes func(*Config)
}

// A reign is one process of a server, so to speak.
type reign struct {
	server *Server
	stop   context.CancelFunc
	ended  chan struct{}
	err    error
}

func newDynasty(t *testing.T, changes func(*Config)) *dynasty {
	t.Helper()
	d := &dynasty{t: t, dir: proctest.SocketDir(t), changes: changes}
	d.table = LocalServers(d.dir, 4)
	for i := range d.table {
		d.reigns = append(d.reigns, d.start(d.config(i)))
	}
	t.Cleanup(func() {
		for i := range d.reigns {
			if err := d.end(i); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Logf("the servers' log:\n%s", &d.log)
		}
	})
	for i, r := range d.reigns {
		<-r.server.serving
		eventually(t, "it awaits successors", func() bool {
			info, err := os.Stat(d.socket(i))
			return err == nil && info.Mode().Perm() == 0o600
		})
	}
	return d
}

func (d *dynasty) config(i int) Config {
	c := Config{
		Name: d.table[i].Name, Servers: d.table, ClockBound: time.Millisecond,
		Handover: "unix:" + d.socket(i),
		Log:      slog.New(slog.NewTextHandler(&d.log, nil)),
	}
	if d.changes != nil {
		d.changes(&c)
	}
	return c
}

func (d *dynasty) socket(i int) string { return filepath.Join(d.dir, "next"+d.table[i].Name) }

// start runs one more process of a server.
func (d *dynasty) start(c Config) *reign {
	d.t.Helper()
	s, err := New(c)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reign{server: s, stop: stop, ended: make(chan struct{})}
	go func() {
		r.err = s.Run(ctx)
		close(r.ended)
	}()
	return r
}

func (d *dynasty) end(i int) error {
	d.reigns[i].stop()
	<-d.reigns[i].ended
	return d.reigns[i].err
}

// handOver has a successor of server i start, and waits until the predecessor ends.
func (d *dynasty) handOver(i int) {
	d.t.Helper()
	next := d.start(d.config(i))
	old := d.reigns[i]
	d.reigns[i] = next
	for _, ch := range []<-chan struct{}{old.ended, next.server.serving} {
		select {
		case <-ch:
		case <-next.ended:
			d.t.Fatalf("the successor ended: %v", next.err)
		case <-time.After(atLast):
			d.t.Fatal("no hand-over in ", atLast)
		}
	}
	if old.err != nil {
		d.t.Fatal(old.err)
	}
}

func (d *dynasty) dial(t *testing.T) *poundlock.Client {
	t.Helper()
	c := poundlock.Config{ClockBound: time.Millisecond}
	for _, p := range d.table {
		c.Servers = append(c.Servers, poundlock.Server(p))
	}
	cl, err := poundlock.Dial(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	eventually(t, "it reaches all servers", func() bool {
		for _, p := range cl.Stats().Servers {
			if !p.Connected {
				return false
			}
		}
		return true
	})
	return cl
}

// use locks and unlocks, and returns the token.
func use(t *testing.T, c *poundlock.Client, name string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atLast)
	defer cancel()
	g, err := c.Mutex(name).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Unlock(); err != nil {
		t.Fatal(err)
	}
	return g.Token()
}

// incarnations and session numbers tell whether anybody lost anything.
func (d *dynasty) incarnations() string {
	var all []string
	for _, r := range d.reigns {
		all = append(all, hex(r.server.node.Incarnation()))
	}
	return strings.Join(all, " ")
}

func (d *dynasty) sessions() string {
	var all []string
	for _, r := range d.reigns {
		for _, s := range r.server.node.Sessions() {
			all = append(all, fmt.Sprintf("%x:%d", s.Peer, s.Number))
		}
	}
	return strings.Join(all, " ")
}

// Each server goes from process to process while a lock is held and waited for.
func TestServerHandover(t *testing.T) {
	d := newDynasty(t, nil)
	holder, waiter := d.dial(t), d.dial(t)
	use(t, holder, "first")
	g, err := holder.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		g   *poundlock.Grant
		err error
	}
	entered := make(chan result, 1)
	go func() {
		g, err := waiter.Mutex("a").Lock(t.Context())
		entered <- result{g, err}
	}()
	for _, r := range d.reigns {
		eventually(t, "the waiter is in the queue", func() bool {
			l := r.server.node.Lock("a")
			return len(l) == 1 && len(l[0].Standing.Waiters) == 1
		})
	}
	incarnations, sessions := d.incarnations(), d.sessions()
	for range 3 {
		for i := range d.reigns {
			d.handOver(i)
			if err := context.Cause(g.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if now := d.incarnations(); now != incarnations {
		t.Errorf("incarnations were %s, and are %s", incarnations, now)
	}
	if now := d.sessions(); now != sessions {
		t.Errorf("sessions were %s, and are %s", sessions, now)
	}
	select {
	case r := <-entered:
		t.Fatalf("two are inside, %v", r.err)
	default:
	}
	if err := g.Unlock(); err != nil {
		t.Fatal(err)
	}
	r := <-entered
	if r.err != nil || r.g.Token() <= g.Token() {
		t.Fatalf("%v, token %d after %d", r.err, r.g.Token(), g.Token())
	}
	if err := r.g.Unlock(); err != nil {
		t.Error(err)
	}
}

// Whatever a successor does before it may serve, its predecessor goes on.
func TestSuccessorDies(t *testing.T) {
	lane.CI.Need(t, "five seconds of successors that die in many moments")
	// A quarter of the lease is how long a successor that says nothing is waited for.
	d := newDynasty(t, func(c *Config) { c.Lease = 6 * time.Second })
	cl := d.dial(t)
	g, err := cl.Mutex("held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sessions := d.sessions()
	ask := func(conn *net.UnixConn) error {
		c := d.reigns[0].server.nodeConfig()
		return writeJSON(conn, c.Title())
	}
	takeOffer := func(conn *net.UnixConn) error {
		var o offer
		return errors.Join(ask(conn), readJSON(conn, &o))
	}
	take := func(conn *net.UnixConn) error {
		err := takeOffer(conn)
		next, _, restoreErr := node.Restore(d.reigns[0].server.nodeConfig(), conn)
		if restoreErr == nil {
			next.Node().Close()
		}
		return errors.Join(err, restoreErr)
	}
	for _, x := range []struct {
		what string
		do   func(conn *net.UnixConn) error
		log  string
	}{
		{"connects", func(*net.UnixConn) error { return nil }, "no request"},
		{"says nothing", func(conn *net.UnixConn) error { return wait(conn) }, "no request"},
		{"claims a request of 4 GB", func(conn *net.UnixConn) error {
			_, err := conn.Write([]byte{0xff, 0xff, 0xff, 0xff})
			return errors.Join(err, wait(conn))
		}, "the limit is"},
		{"asks nonsense", func(conn *net.UnixConn) error {
			_, err := conn.Write(append([]byte{0, 0, 0, 3}, "abc"...))
			return errors.Join(err, wait(conn))
		}, "invalid character"},
		{"asks", ask, ""},
		{"takes the offer", takeOffer, ""},
		{"takes half of the table", func(conn *net.UnixConn) error {
			if err := takeOffer(conn); err != nil {
				return err
			}
			_, err := io.ReadFull(conn, make([]byte, 100))
			return err
		}, ""},
		{"takes the table", take, ""},
		{"takes the table and says nothing", func(conn *net.UnixConn) error {
			return errors.Join(take(conn), wait(conn))
		}, "a quarter of the shortest lease"},
		{"refuses", func(conn *net.UnixConn) error {
			return errors.Join(take(conn), writeJSON(conn, "no thanks"), wait(conn))
		}, "the successor refuses: no thanks"},
		{"cannot hear that it may serve", func(conn *net.UnixConn) error {
			return errors.Join(take(conn), conn.CloseRead(), writeJSON(conn, ""), wait(conn))
		}, "the successor is gone"},
	} {
		t.Run(x.what, func(t *testing.T) {
			before := strings.Count(d.log.String(), "a hand-over failed")
			conn := d.connect(t, 0)
			if err := x.do(conn); err != nil {
				t.Error(err)
			}
			conn.Close()
			eventually(t, "it failed", func() bool { return strings.Count(d.log.String(), "a hand-over failed") == before+1 })
			if log := d.log.String(); !strings.Contains(log[strings.LastIndex(log, "a hand-over failed"):], x.log) {
				t.Errorf("the log does not say %q", x.log)
			}
			use(t, cl, "free")
			if err := context.Cause(g.Context()); err != nil {
				t.Error(err)
			}
			eventually(t, "the session goes on", func() bool { return d.sessions() == sessions })
		})
	}
	d.handOver(0)
	use(t, cl, "free")
	if now := d.sessions(); now != sessions {
		t.Errorf("sessions were %s, and are %s", sessions, now)
	}
}

// wait waits until the other end closes.
func wait(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, net.ErrClosed) || err != nil && strings.Contains(err.Error(), "reset") {
		return nil
	}
	return err
}

// A predecessor with another configuration goes on, and its successor says why it ends.
func TestOtherConfiguration(t *testing.T) {
	d := newDynasty(t, nil)
	cl := d.dial(t)
	for want, change := range map[string]func(c *Config){
		"epoch differs":                 func(c *Config) { c.Epoch = 9 },
		"options (clock bound, quorum)": func(c *Config) { c.ClockBound = 7 * time.Millisecond },
		"list of servers differs":       func(c *Config) { c.Servers = append(LocalServers(d.dir+"x", 4)[:3:3], c.Servers[3]) },
		"name of the server":            func(c *Config) { c.Name = "s2" },
	} {
		c := d.config(0)
		change(&c)
		r := d.start(c)
		<-r.ended
		if !errors.Is(r.err, ErrHandover) || !strings.Contains(r.err.Error(), want) {
			t.Errorf("%v, want %q", r.err, want)
		}
		r.stop()
		use(t, cl, "a")
	}
	go d.reigns[0].server.Drain(t.Context())
	eventually(t, "it drains", func() bool { return d.reigns[0].server.node.Draining() })
	r := d.start(d.config(0))
	<-r.ended
	if !errors.Is(r.err, ErrHandover) || !strings.Contains(r.err.Error(), "draining") {
		t.Errorf("from a server that drains: %v", r.err)
	}
	r.stop()
}

// A predecessor that dies leaves an empty table, and one that lives but breaks off keeps
// its successor from serving.
func TestPredecessorDies(t *testing.T) {
	for _, dies := range []bool{true, false} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) {
			d := newDynasty(t, nil)
			if err := d.end(0); err != nil {
				t.Fatal(err)
			}
			guard, err := private.Lock(d.socket(0)+".lock", unix.LOCK_EX)
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket(0), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			go func() { // the predecessor
				for {
					conn, err := l.AcceptUnix()
					if err != nil {
						return
					}
					var r node.Title
					if err := errors.Join(readJSON(conn, &r), writeJSON(conn, offer{})); err != nil {
						t.Error(err)
					}
					conn.Write([]byte{0, 0, 1, 0, 1, '{'})
					if dies {
						l.Close()
						guard.Close()
					}
					conn.Close()
				}
			}()
			next := d.start(d.config(0))
			if !dies {
				<-next.ended
				l.Close()
				if !errors.Is(next.err, ErrHandover) || !strings.Contains(next.err.Error(), "tried 3 times") {
					t.Errorf("the successor of a process that lives: %v", next.err)
				}
				next.stop()
				return
			}
			d.reigns[0] = next
			eventually(t, "it serves", func() bool { return next.server.running() != nil })
			if log := d.log.String(); !strings.Contains(log, "the predecessor died during the hand-over: starts empty") {
				t.Error("the log does not say that a table was lost")
			}
			use(t, d.dial(t), "a")
		})
	}
}

// A server that sits out is mute, hands the rest of it over, and ends at once when told.
func TestSitOut(t *testing.T) {
	t.Parallel()
	const sitOut = 700 * time.Millisecond
	began := time.Now()
	d := newDynasty(t, func(c *Config) { c.SitOut = sitOut })
	if addr := d.reigns[0].server.Addr(); addr != nil && time.Since(began) < sitOut {
		t.Errorf("listens at %v while it sits out", addr)
	}
	incarnations := d.incarnations()
	d.handOver(0)
	d.handOver(1)
	r := d.start(Config{Name: "s1", Servers: LocalServers(d.dir+"x", 4), SitOut: time.Hour})
	eventually(t, "it sits out", func() bool { return r.server.running() != nil })
	if held := r.server.Drain(t.Context()); held != 0 {
		t.Errorf("held %d", held)
	}
	r.stop()
	<-r.ended
	if r.err != nil {
		t.Error(r.err)
	}
	use(t, d.dial(t), "a")
	if waited := time.Since(began); waited < sitOut {
		t.Errorf("served after %v of %v", waited, sitOut)
	}
	for i, r := range d.reigns {
		if r.server.Addr() == nil {
			t.Errorf("s%d does not listen", i+1)
		}
	}
	if now := d.incarnations(); now != incarnations {
		t.Errorf("incarnations were %s, and are %s", incarnations, now)
	}
	if _, err := New(Config{Name: "s1", Servers: d.table, SitOut: -1}); err == nil {
		t.Error("a negative time to sit out is accepted")
	}
}

// Whoever can open the socket gets every lock.
func TestHandoverPaths(t *testing.T) {
	dir := proctest.SocketDir(t)
	open := filepath.Join(dir, "open")
	link := filepath.Join(dir, "link")
	file := filepath.Join(dir, "file")
	for _, err := range []error{
		os.Mkdir(open, 0o755), os.Chmod(open, 0o755), os.Symlink(dir, link), os.WriteFile(file, nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for addr, want := range map[string]string{
		"127.0.0.1:1":                         "want unix:/path",
		"unix:relative":                       "absolute",
		"unix:" + open + "/s":                 "has mode 0755",
		"unix:" + link + "/s":                 "is a symbolic link",
		"unix:" + file + "/s":                 "is not a directory",
		"unix:" + dir + "/missing/s":          "no such file",
		"unix:/" + strings.Repeat("long", 30): "103 bytes",
	} {
		if err := CheckHandover(addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
		if s, err := New(Config{Name: "s1", Servers: LocalServers(dir, 4), Handover: addr}); err == nil {
			s.Close()
			t.Errorf("%s is accepted", addr)
		}
	}
	if err := CheckHandover("unix:" + dir + "/s"); err != nil {
		t.Error(err)
	}
	// What stands there and is no socket is not ours to remove.
	d := &dynasty{t: t, dir: dir, table: LocalServers(dir, 4)}
	if err := os.WriteFile(d.socket(0), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := d.start(d.config(0))
	<-r.ended
	r.stop()
	if r.err == nil || !strings.Contains(r.err.Error(), "no socket") {
		t.Error(r.err)
	}
	if text, err := os.ReadFile(d.socket(0)); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}

// The sockets of hand-overs are closed to others, and a stale one is replaced.
func TestHandoverSocket(t *testing.T) {
	d := newDynasty(t, nil)
	info, err := os.Stat(d.socket(0))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	d.handOver(0)
	if err := d.end(0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.socket(0)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket(0), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	d.reigns[0] = d.start(d.config(0))
	<-d.reigns[0].server.serving
	d.handOver(0)
}

// A holder whose server drains loses nothing, and a drained server is nobody's loss.
func TestServerDrain(t *testing.T) {
	d := newDynasty(t, nil)
	cl := d.dial(t)
	g, err := cl.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if held := d.reigns[0].server.Drain(ctx); held > 1 {
		t.Errorf("%d locks held", held)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	if held := d.reigns[1].server.Drain(t.Context()); held != 0 {
		t.Errorf("%d locks held", held)
	}
	for _, want := range []string{"draining: gives nothing to anybody any more", "drained: nobody loses anything"} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	var fresh Server
	fresh.serving = make(chan struct{})
	if held := fresh.Drain(t.Context()); held != 0 {
		t.Errorf("a server that does not run holds %d", held)
	}
}
