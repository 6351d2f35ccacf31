package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

func TestMain(m *testing.M) {
	lane.Waits()
	goleak.VerifyTestMain(m)
}

func table(addrs ...string) []node.Peer {
	var p []node.Peer
	for i, a := range addrs {
		p = append(p, node.Peer{Name: fmt.Sprintf("s%d", i+1), Addr: a})
	}
	return p
}

func TestRefusals(t *testing.T) {
	good := table("127.0.0.1:0", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
	off := table("0.0.0.0:0", "192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3")
	for _, x := range []struct {
		config Config
		text   string
		is     error
	}{
		{Config{Name: "s1"}, "empty", nil},
		{Config{Name: "s1", Servers: good[:3]}, "use 4, 7 or 10", slots.ErrTooFew},
		{Config{Name: "s9", Servers: good}, `"s9" is not among the members: s1, s2, s3, s4`, nil},
		{Config{Name: "s1", Servers: good, Lease: -1}, "lease -1ns: want 20ms to 10m0s", nil},
		{Config{Name: "s1", Servers: good, ClockBound: 2 * time.Second}, "clock bound 2s: want more than 0 and at most 1s", nil},
		{Config{Name: "s1", Servers: off}, `"0.0.0.0:0"`, ErrInsecure},
		{Config{Name: "s1", Servers: good, Listen: "0.0.0.0:0"}, `"0.0.0.0:0"`, ErrInsecure},
		{Config{Name: "s1", Servers: good, Listen: ":0"}, `":0"`, ErrInsecure},
		{Config{Name: "s1", Servers: good, Listen: "nonsense"}, "nonsense", nil},
		{Config{Name: "s1", Servers: good, Listen: "unix:"}, "unix socket path", nil},
	} {
		s, err := New(x.config)
		if err == nil {
			s.Close()
			t.Errorf("%+v is accepted", x.config)
			continue
		}
		if !strings.Contains(err.Error(), x.text) || x.is != nil && !errors.Is(err, x.is) {
			t.Errorf("%+v: error %v", x.config, err)
		}
	}
	for _, c := range []Config{
		{Name: "s1", Servers: off, Insecure: true},
		{Name: "s1", Servers: good},
		{Name: "s1", Servers: good[:3], NoAmnesia: true},
		{Name: "s1", Servers: off, Listen: "localhost:0"},
	} {
		s, err := New(c)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		s.Close()
	}
}

// TestClock: whether the clock of this machine is synchronised or not, it is a
// warning or an error as configured.
func TestClock(t *testing.T) {
	var log bytes.Buffer
	c := Config{
		Name: "s1", Servers: table("127.0.0.1:0", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	warned := strings.Contains(log.String(), "level=WARN")
	c.RequireClockSync = true
	s, err = New(c)
	if err == nil {
		s.Close()
	}
	if refused := errors.Is(err, ErrClock); refused != warned || refused != (checkClock() != nil) {
		t.Errorf("warned %v, refused with %v, clock: %v", warned, err, checkClock())
	}
}

// TestSocketOfTheLiving: two servers never own one socket, and a dead one's is
// replaced.
func TestSocketOfTheLiving(t *testing.T) {
	c := Config{Name: "s1", Servers: LocalServers(proctest.SocketDir(t), 4)}
	first, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := New(c); err == nil {
		s.Close()
		t.Error("two servers listen at one socket")
	} else if !strings.Contains(err.Error(), "another process listens there") {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	// A killed server leaves its socket behind.
	path, _ := transport.Unix(c.Servers[0].Addr)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	second, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

// A user that tells a channel what it was told.
type user chan string

func (u user) Crit(node.Entry)                  { u <- "crit" }
func (u user) Rem(why error)                    { u <- fmt.Sprint("rem ", why) }
func (u user) Ejected()                         { u <- "ejected" }
func (u user) Supported(map[protocol.ID]uint64) {}

func (u user) want(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-u:
		if got != want {
			t.Fatalf("the user was told %q, want %q", got, want)
		}
	case <-time.After(atLast):
		t.Fatalf("the user was not told %q", want)
	}
}

func client(t *testing.T, l *Local, label string) *node.Node {
	t.Helper()
	n, err := node.Start(node.Config{
		Secret: node.NewSecret(), System: slots.System(len(l.Servers()), slots.DefaultClockBound),
		Hosts: slots.Hosts(), Peers: l.Servers(), Label: label,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.WaitAlive(t.Context(), len(l.Servers())); err != nil {
		t.Fatal(err)
	}
	return n
}

func startLocal(t *testing.T) *Local {
	t.Helper()
	l, err := StartLocal(LocalConfig{Dir: proctest.SocketDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, x := range l.lives {
		eventually(t, "a server accepts sessions", x.server.accepts.Load)
	}
	return l
}

func TestLocal(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	if _, err := StartLocal(LocalConfig{Dir: filepath.Dir(strings.TrimPrefix(l.Servers()[0].Addr, "unix:"))}); err == nil {
		t.Error("a second cluster starts in the same directory")
	}
	if k := l.Clients(); k != 0 {
		t.Errorf("%d clients before the first", k)
	}
	n := client(t, l, "test")
	if k := l.Clients(); k != 1 {
		t.Errorf("%d clients, want 1", k)
	}
	u := make(user, 1)
	if err := n.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	u.want(t, "crit")
	n.Exit("a")
	u.want(t, "rem <nil>")
	if err := l.Start(0); err == nil {
		t.Error("a server that runs is started again")
	}
	n.Close()
	eventually(t, "the last client has left", func() bool { return l.Clients() == 0 })
}

func TestAsk(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	first, second := client(t, l, "first"), client(t, l, "second")
	u, v := make(user, 1), make(user, 1)
	if err := first.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	u.want(t, "crit")
	if err := second.Try(node.Mutex, "a", v, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), atLast)
	defer cancel()
	var answers []Answer
	for {
		var err error
		if answers, err = ask(ctx, AskConfig{Servers: l.Servers(), Timeout: atLast}); err != nil {
			t.Fatal(err)
		}
		if s := answers[0].Status; len(s.Locks) == 1 && len(s.Locks[0].Waiters) == 1 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", answers)
		}
	}
	ids := map[string]string{}
	for i, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if a.Server != l.Servers()[i] || a.Status.Server != a.Server.Name || a.Status.Incarnation == "" {
			t.Errorf("answer of %v: %+v", a.Server, a.Status)
		}
		if d := time.Since(a.Status.Started); d < 0 || d > time.Minute {
			t.Errorf("started %v ago", d)
		}
		for _, s := range a.Status.Sessions {
			if old, ok := ids[s.Label]; ok && old != s.ID {
				t.Errorf("%s is %s and %s", s.Label, old, s.ID)
			}
			ids[s.Label] = s.ID
		}
	}
	if len(ids) != 2 || ids["first"] == "" || ids["second"] == "" {
		t.Errorf("clients %v: want first and second, without who asks", ids)
	}
	lock := answers[0].Status.Locks[0]
	if lock.Name != "a" || lock.Kind != "mutex" || lock.Holder == nil || lock.Holder.ID != ids["first"] || lock.Waiters[0].ID != ids["second"] {
		t.Errorf("lock %+v, holder %+v, clients %v", lock, lock.Holder, ids)
	}
	if lock.Holder != nil && (lock.Holder.AgeMS < lock.Waiters[0].AgeMS || lock.Holder.AgeMS > atLast.Milliseconds()) {
		t.Errorf("ages %d and %d ms", lock.Holder.AgeMS, lock.Waiters[0].AgeMS)
	}
	first.Exit("a")
	u.want(t, "rem <nil>")
	v.want(t, "crit")

	if err := l.Stop(1); err != nil {
		t.Error(err)
	}
	answers, err := ask(ctx, AskConfig{Servers: l.Servers(), Timeout: atLast})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if (a.Err != nil) != (i == 1) {
			t.Errorf("server %d: error %v", i, a.Err)
		}
	}
}

// TestAskWaits: a server that is the last to answer is waited for, longer than one that
// refuses connections.
func TestAskWaits(t *testing.T) {
	t.Parallel()
	servers := slices.Clone(startLocal(t).Servers())
	servers[3].Addr = late(t, strings.TrimPrefix(servers[3].Addr, "unix:"), time.Second)
	answers, err := ask(t.Context(), AskConfig{Servers: servers, Timeout: atLast})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.Err != nil {
			t.Errorf("%s: %v", a.Server.Name, a.Err)
		}
	}
}

// late leads to a server, but lets each connection wait first.
func late(t *testing.T, server string, delay time.Duration) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(delay)
			to, err := net.Dial("unix", server)
			if err != nil {
				from.Close()
				continue
			}
			go pass(from, to)
			go pass(to, from)
		}
	}()
	return l.Addr().String()
}

// pass ends both connections when one ends.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	from.Close()
	to.Close()
}

// TestPages: a server that knows more than fits into one frame tells it in
// pages, whatever text the names are.
func TestPages(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	n := client(t, l, "many")
	const locks = 600
	u := make(user, locks)
	for i := range locks {
		name := fmt.Sprintf("é%s%04d", strings.Repeat("<", 500), i)
		if err := n.Try(node.Mutex, name, u, false); err != nil {
			t.Fatal(err)
		}
	}
	for range locks {
		u.want(t, "crit")
	}
	ctx, cancel := context.WithTimeout(t.Context(), atLast)
	defer cancel()
	answers, err := ask(ctx, AskConfig{Servers: l.Servers(), Timeout: atLast})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, x := range answers[0].Status.Locks {
		seen[x.Name] = true
	}
	if answers[0].Err != nil || len(answers[0].Status.Locks) != locks || len(seen) != locks {
		t.Errorf("error %v, %d locks, %d names, want %d", answers[0].Err, len(answers[0].Status.Locks), len(seen), locks)
	}
	if k := len(answers[0].Status.Sessions); k != 1 {
		t.Errorf("%d sessions, want 1", k)
	}
	request, err := json.Marshal(control.Query{Ask: control.Locks})
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.Call(ctx, 0, request)
	if err != nil {
		t.Fatal(err)
	}
	var p control.Page
	if err := json.Unmarshal(b, &p); err != nil || !p.More || len(b) > 8*pageBytes {
		t.Errorf("error %v, more %v, %d bytes: want a full page", err, p.More, len(b))
	}
	if b, err = n.Call(ctx, protocol.ID(0), []byte("nonsense")); err != nil || !bytes.Contains(b, []byte("unknown request")) {
		t.Errorf("answer to nonsense: %s, %v", b, err)
	}
}
