package node_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// fragile is the keeper with parts that panic while armed.
type fragile struct{ create, append, state atomic.Bool }

func (f *fragile) host() node.Host {
	a := keeper(nil)
	whole := a
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
		boom(&f.create)
		return &fragileProcess{whole.New(id, c), f}
	}
	a.Fields = func(m uint8, c *protocol.Codec) uint8 {
		if !c.Reading() {
			boom(&f.append)
		}
		return whole.Fields(m, c)
	}
	return node.HostOf(a)
}

type fragileProcess struct {
	protocol.Process[uint8]
	f *fragile
}

func (p *fragileProcess) State(c *protocol.Codec) {
	boom(&p.f.state)
	p.Process.State(c)
}

func boom(armed *atomic.Bool) {
	if armed.Load() {
		panic("boom")
	}
}

// Whatever part of an algorithm panics, one lock fails, and the others work.
func TestAlgorithmPanics(t *testing.T) {
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), nil)
	for name, part := range map[string]func(*fragile) *atomic.Bool{
		"New":         func(f *fragile) *atomic.Bool { return &f.create },
		"Append":      func(f *fragile) *atomic.Bool { return &f.append },
		"AppendState": func(f *fragile) *atomic.Bool { return &f.state },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fragile{}
			c := clients(t, 1, peers, f.host(), nil)[0]
			u := newProbe()
			pass := func(name string) {
				must(t, c.Try(node.Mutex, name, u, false))
				<-u.crit
				c.Exit(name)
				<-u.rem
			}
			pass("a")
			part(f).Store(true)
			must(t, c.Try(node.Mutex, "a", u, false))
			select {
			case <-u.crit: // the state is looked at when the user has left
				c.Exit("a")
				<-u.rem
			case why := <-u.rem:
				if !strings.Contains(why, "keeper panicked: boom") {
					t.Errorf("why: %q", why)
				}
			}
			// Whoever is let in before the state is looked at leaves, or it would never be.
			passer := &hooks{crit: func() { c.Exit("a") }, rem: func() {}, ejected: func() {}}
			eventually(t, "the lock has failed", func() bool {
				return errors.Is(c.Try(node.Mutex, "a", passer, false), node.ErrFailed)
			})
			part(f).Store(false)
			must(t, c.WaitAlive(t.Context(), 1))
			pass("b")
		})
	}
}

// A shy process tells nothing of two users.
type shy struct{ protocol.Process[uint8] }

func (p shy) Inspect() protocol.Standing {
	s := p.Process.(protocol.Inspector).Inspect()
	if len(s.Holders) == 2 {
		panic("two are one too many")
	}
	return s
}

// A standing that cannot be known is an error in the list, and no more.
func TestInspectPanics(t *testing.T) {
	a := keeper(nil)
	create := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] { return shy{create(id, c)} }
	host := node.HostOf(a)
	servers, peers := clusterAt(t, 1, false, host, nil)
	u := newProbe()
	both := clients(t, 2, peers, host, nil)
	must(t, both[0].Try(node.Mutex, "one", u, false))
	must(t, both[0].Try(node.Mutex, "two", u, false))
	must(t, both[1].Try(node.Mutex, "two", u, false))
	for range 3 {
		<-u.crit
	}
	locks := servers[0].Locks()
	if len(locks) != 2 || locks[0].Err != nil || len(locks[0].Standing.Holders) != 1 ||
		locks[1].Err == nil || !strings.Contains(locks[1].Err.Error(), "two are one too many") {
		t.Errorf("%+v", locks)
	}
	both[0].Exit("two")
	<-u.rem
	eventually(t, "the standing is known again", func() bool {
		locks := servers[0].Locks()
		return len(locks) == 2 && locks[1].Err == nil && len(locks[1].Standing.Holders) == 1
	})
}

// A user that panics does not take the node with it. Its lock stays closed when
// it had something to leave.
func TestUserPanics(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	ejected := make(chan struct{})
	u := &hooks{crit: func() { panic("crit") }, ejected: func() { close(ejected); panic("ejected") }, rem: func() { panic("rem") }}
	must(t, c.Try(node.Mutex, "a", u, false))
	<-ejected
	c.Exit("a")
	eventually(t, "the lock has failed", func() bool {
		return errors.Is(c.Try(node.Mutex, "a", u, false), node.ErrFailed)
	})
	must(t, c.WaitAlive(t.Context(), 1))

	left := make(chan struct{}, 1)
	u = &hooks{crit: func() { c.Exit("b") }, rem: func() { left <- struct{}{}; panic("rem") }}
	for range 2 { // it had left already
		must(t, c.Try(node.Mutex, "b", u, false))
		<-left
	}
	must(t, c.Try(node.Mutex, "c", &hooks{crit: func() {}, rem: func() { panic("rem") }, ejected: func() { panic("ejected") }}, false))
	must(t, c.Close())
}

// What a client held in a lock that fails is free for others, and so is what it held
// in other locks, once their users know.
func TestFailedLockIsFreeForOthers(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	long := func(c *node.Config) { c.Lease = patience }
	_, peers := clusterAt(t, 4, false, host, long)
	both := clients(t, 2, peers, host, long)
	var ejected atomic.Bool
	inside, after := make(chan struct{}), newProbe()
	must(t, both[0].Try(node.Mutex, "kept", &hooks{
		crit:    func() { close(inside) },
		ejected: func() { ejected.Store(true); both[0].Exit("kept") },
		rem:     func() {},
	}, false))
	<-inside
	failing := make(chan struct{})
	must(t, both[0].Try(node.Mutex, "a", &hooks{crit: func() { close(failing); panic("crit") }, ejected: func() {}}, false))
	<-failing
	for _, name := range []string{"a", "kept"} {
		must(t, both[1].Try(node.Mutex, name, after, false))
		select {
		case <-after.crit:
		case <-time.After(patience / 2): // less than a lease
			t.Fatalf("nobody gets %q", name)
		}
	}
	if !ejected.Load() {
		t.Error("two are inside")
	}
}

func TestAnswerPanics(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, func(c *node.Config) {
		c.Call = func(_ protocol.ID, request []byte) []byte { return request[:1] }
	})
	c := clients(t, 1, peers, host, nil)[0]
	for range 100 { // more than may be open at once
		if _, err := c.Call(t.Context(), 0, nil); err == nil || !strings.Contains(err.Error(), "the request failed") {
			t.Fatal(err)
		}
	}
	if b, err := c.Call(t.Context(), 0, []byte("xy")); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

// A counter counts warnings and worse.
type counter struct {
	slog.Handler
	warnings atomic.Int32
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		c.warnings.Add(1)
	}
	return nil
}

// However many strangers knock, the log stays short.
func TestComplaintsAreRationed(t *testing.T) {
	var log counter
	began := time.Now()
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) { c.Log = slog.New(&log) })
	for range 200 {
		conn, err := net.Dial("tcp", peers[0].Addr)
		must(t, err)
		conn.SetDeadline(time.Now().Add(patience))
		b := transport.Hello{From: 1 << 62, ToName: "another"}.Append(transport.AppendHeader(nil, 0))
		transport.EndFrame(b)
		_, err = conn.Write(b)
		must(t, err)
		if _, err = transport.ReadFrame(conn, transport.MaxHandshake); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	most := int32(20 + time.Since(began)/time.Second + 1)
	if n := log.warnings.Load(); n < 20 || n > most {
		t.Errorf("%d warnings for 200 strangers, want 20 to %d", n, most)
	}
}
