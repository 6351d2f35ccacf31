//go:build unix

package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// tcpPair is a connection: the end that was dialed, and the one that has dialed.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conns := make([]net.Conn, 2)
	if conns[1], err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if conns[0], err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conns[0].Close(); conns[1].Close() })
	return conns[0].(*net.TCPConn), conns[1].(*net.TCPConn)
}

// What several goroutines write at once to a peer that reads slowly arrives whole and in order: what the kernel does not take
// is left to the writer.
func TestWriteNow(t *testing.T) {
	n, err := newNode(Config{Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	nc, peer := tcpPair(t)
	peer.SetReadBuffer(64 << 10)
	nc.SetWriteBuffer(32 << 10)
	s := newSession(n, 7, 1)
	s.agree(7, "", time.Minute, n.c.Boot())
	c := newConn(n, nc, bufio.NewReader(nc), false, time.Minute)
	c.s = s
	if c.eager = newEager(nc); c.eager == nil {
		t.Fatal("nobody can write to a TCP connection without waiting")
	}
	if err := s.attach(c, 0); err != nil {
		t.Fatal(err)
	}
	const count = 1000
	var all sync.WaitGroup
	all.Go(c.write)
	for k := range count {
		body := make([]byte, 1+k%997)
		if err := s.send(transport.MessageItem, Mutex, fmt.Sprint(k), body, false); err != nil {
			t.Fatal(err)
		}
		switch k % 3 {
		case 0:
			c.writeNow()
		case 1:
			all.Go(c.writeNow)
		}
	}
	c.signal()
	var got []string
	peer.SetReadDeadline(time.Now().Add(time.Minute))
	for len(got) < count {
		frame, err := transport.ReadFrame(peer, transport.MaxFrame)
		if err != nil {
			t.Fatalf("after %d messages: %v", len(got), err)
		}
		_, rest, err := transport.ReadHeader(frame)
		for err == nil && len(rest) > 0 {
			var i transport.Item
			if i, rest, err = transport.ReadItem(rest); i.Type == transport.MessageItem {
				got = append(got, string(i.Name))
				if want := 1 + (len(got)-1)%997; len(i.Body) != want || i.Seq != uint64(len(got)) {
					t.Fatalf("message %d of %d bytes, want %d of %d", i.Seq, len(i.Body), len(got), want)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for k, name := range got {
		if name != fmt.Sprint(k) {
			t.Fatalf("%s comes as number %d", name, k)
		}
	}
	c.close(ErrClosed)
	all.Wait()
	if slices.Contains(got, "") || n.counters.with(protocol.ID(7)).sent.Load() == 0 {
		t.Error("nothing was counted")
	}
}

// whenBegun is a log that does something when a session begins.
type whenBegun struct {
	slog.Handler
	do func()
}

func (w whenBegun) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "session began" {
		w.do()
	}
	return nil
}

func (w whenBegun) Enabled(context.Context, slog.Level) bool { return true }

// stranger is a connection with a client that has greeted a node which serves. begun happens as its session begins.
func stranger(t *testing.T, id protocol.ID, begun func(n *Node)) (*Node, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var n *Node
	n, err = newNode(Config{
		Peers: []Peer{{Name: "s1", Addr: listener.Addr().String()}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
		Log: slog.New(whenBegun{slog.DiscardHandler, func() { begun(n) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.run()
	t.Cleanup(func() { n.Close() })
	if err := n.Serve(listener); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	h := transport.Hello{
		From: id, ToName: "s1", Incarnation: 5, Session: 1, Members: "s1",
		Kinds: []transport.Kind{{Number: 1, Algorithm: n.agreed(Mutex)}},
	}
	if err := writeFrame(nc, 0, h.Append); err != nil {
		t.Fatal(err)
	}
	return n, nc
}

// What a loop sends while a peer is being welcomed does not come before the welcome.
func TestWelcomeComesFirst(t *testing.T) {
	id := ClientID(5)
	_, nc := stranger(t, id, func(n *Node) {
		s := n.sessions.lookup(id)
		n.each(func(l *loop) { l.out.send(s, transport.MessageItem, Mutex, "a", []byte{1}, false) })
		n.each(func(l *loop) {}) // the passes that have sent it are over
	})
	in := bufio.NewReader(nc)
	for _, want := range []transport.Type{transport.WelcomeItem, transport.MessageItem} {
		frame, err := transport.ReadFrame(in, transport.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, err := transport.ReadHeader(frame)
		if err != nil {
			t.Fatal(err)
		}
		if i, _, err := transport.ReadItem(rest); err != nil || i.Type != want {
			t.Errorf("an item of type %d, %v; want %d", i.Type, err, want)
		}
	}
}

// A member gives its table away while a client sends without pause: its connection is closed although more comes all the time.
func TestFreezeUnderFlood(t *testing.T) {
	n, nc := stranger(t, ClientID(5), func(*Node) {})
	if _, err := transport.ReadFrame(nc, transport.MaxFrame); err != nil {
		t.Fatal(err)
	}
	flood := bytes.Repeat(frameOf(transport.Item{Type: transport.AckItem}), 1<<16)
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for err := error(nil); err == nil; {
			_, err = nc.Write(flood)
		}
	})
	time.Sleep(50 * time.Millisecond)
	frozen := make(chan error, 1)
	go func() {
		_, err := n.Freeze()
		frozen <- err
	}()
	select {
	case err := <-frozen:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for a client that sends without pause")
		nc.Close()
		<-frozen
	}
	flooding.Wait()
}

// lateDeadline is a connection on which something happens right before its writer sets a deadline.
type lateDeadline struct {
	net.Conn
	before func()
}

func (s *lateDeadline) SetWriteDeadline(t time.Time) error {
	if s.before != nil {
		s.before()
		s.before = nil
	}
	return s.Conn.SetWriteDeadline(t)
}

// A connection that is interrupted as its writer sets a deadline does not wait for a peer that does not read.
func TestInterruptedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := newNode(Config{Secret: 1, Peers: []Peer{{Name: "s1", Addr: "h:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)}})
		if err != nil {
			t.Fatal(err)
		}
		defer n.cancel()
		near, far := net.Pipe()
		defer far.Close()
		defer near.Close()
		nc := &lateDeadline{Conn: near}
		c := newConn(n, nc, bufio.NewReader(near), true, time.Minute)
		c.isSession = true
		c.s = newSession(n, 0, 1)
		nc.before = func() { c.close(errMoved) }
		c.finish(goodBye(), errMoved)
		began, buffer := time.Now(), []byte(nil)
		_, _, err = c.writeFrame(&buffer, false)
		if took := time.Since(began); took > 0 {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// What a connection reads is what package net reads, to the errors.
func TestCalm(t *testing.T) {
	type ends struct {
		reader io.Reader
		near   net.Conn
		far    *net.TCPConn
	}
	for name, x := range map[string]struct {
		do   func(e ends)
		into int
		want string
		is   error
		text string
	}{
		"data":     {func(e ends) { e.far.Write([]byte("abc")) }, 8, "abc", nil, ""},
		"part":     {func(e ends) { e.far.Write([]byte("abc")) }, 2, "ab", nil, ""},
		"nothing":  {func(e ends) { e.far.Write([]byte("abc")) }, 0, "", nil, ""},
		"later":    {func(e ends) { time.AfterFunc(10*time.Millisecond, func() { e.far.Write([]byte("abc")) }) }, 8, "abc", nil, ""},
		"end":      {func(e ends) { e.far.Close() }, 8, "", io.EOF, ""},
		"reset":    {func(e ends) { e.far.SetLinger(0); e.far.Close(); time.Sleep(10 * time.Millisecond) }, 8, "", syscall.ECONNRESET, "connection reset by peer"},
		"closed":   {func(e ends) { e.near.Close() }, 8, "", net.ErrClosed, "use of closed network connection"},
		"deadline": {func(e ends) { e.near.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) }, 8, "", os.ErrDeadlineExceeded, "no answer in time"},
	} {
		for how, reader := range map[string]func(net.Conn) io.Reader{
			"net":  func(nc net.Conn) io.Reader { return nc },
			"calm": func(nc net.Conn) io.Reader { return newCalm(nc) },
		} {
			t.Run(name+","+how, func(t *testing.T) {
				near, far := tcpPair(t)
				r := reader(near)
				x.do(ends{r, near, far})
				b := make([]byte, x.into)
				k, err := r.Read(b)
				if string(b[:k]) != x.want || !errors.Is(err, x.is) || x.text != "" && reason(err) != x.text {
					t.Errorf("%q, %v; want %q, %v", b[:k], err, x.want, x.is)
				}
			})
		}
	}
}

// calmConn is one end of a connection and session in a node that stands still, and the other end.
func calmConn(t *testing.T, dials bool) (*conn, *net.TCPConn) {
	n := still(t)
	near, far := tcpPair(t)
	in, calm := n.reader(near)
	if calm == nil {
		t.Fatal("package net reads")
	}
	c := newConn(n, near, in, dials, time.Minute)
	c.calm = calm
	c.s = newSession(n, 10, 1)
	c.s.conn = c
	return c, far
}

// frameOf is a frame of one item.
func frameOf(i transport.Item) []byte {
	b := i.Append(transport.AppendHeader(nil, 0))
	transport.EndFrame(b)
	return b
}

// A frame takes one call that reads. One that comes in parts, or is larger than the buffer, takes some more, and nothing is missed after it.
func TestCallsOfFrames(t *testing.T) {
	c, far := calmConn(t, true)
	calls, empty, try := 0, 0, c.calm.try
	c.calm.try = func(fd uintptr) bool {
		ok := try(fd)
		if calls++; c.calm.err == syscall.EAGAIN {
			empty++
		}
		return ok
	}
	handled := make(chan uint64, 1)
	c.n.acker.set = true // nobody acknowledges
	go func() {
		defer close(handled)
		if err := c.read(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}()
	received := func(want uint64) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			c.s.mu.Lock()
			got := c.s.window.Received()
			c.s.mu.Unlock()
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d messages were received, want %d", got, want)
			}
		}
	}
	const frames = 20
	for k := range uint64(frames) {
		b := frameOf(transport.Item{Type: transport.MessageItem, Seq: k + 1, Name: []byte("a")})
		switch k {
		case 5:
			far.Write(b[:2])
			time.Sleep(5 * time.Millisecond)
			b = b[2:]
		case 10:
			far.Write(b[:len(b)-1])
			time.Sleep(5 * time.Millisecond)
			b = b[len(b)-1:]
		case 15:
			b = frameOf(transport.Item{Type: transport.MessageItem, Seq: k + 1, Name: []byte("a"), Body: make([]byte, 3*readBuffer)})
		}
		if _, err := far.Write(b); err != nil {
			t.Fatal(err)
		}
		received(k + 1)
		time.Sleep(time.Millisecond) // it waits for the next one
	}
	far.Close()
	<-handled
	if calls > frames+15 || empty > 8 {
		t.Errorf("%d calls for %d frames, %d of them found nothing", calls, frames, empty)
	}
}

// The end of a connection that comes with the last frame is noticed: at once where this end does not answer the frame, and else as the answer cannot
// be delivered. A session that ends with its connection does so also where the other end still takes what is sent.
func TestEndWithAFrame(t *testing.T) {
	ack := transport.Item{Type: transport.AckItem}
	message := transport.Item{Type: transport.MessageItem, Seq: 1, Name: []byte("a")}
	ping := transport.Item{Type: transport.PingItem, Seq: 1}
	for name, x := range map[string]struct {
		last  transport.Item
		dials bool
		half  bool
	}{
		"acknowledgement":       {ack, false, false},
		"message":               {message, false, false},
		"heartbeat":             {ping, false, false},
		"answer":                {transport.Item{Type: transport.PongItem, Seq: 1}, true, false},
		"acknowledgement, half": {ack, false, true},
		"message, half":         {message, false, true},
		"heartbeat, half":       {ping, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, far := calmConn(t, x.dials)
			if _, err := far.Write(frameOf(x.last)); err != nil {
				t.Fatal(err)
			}
			if c.isSession = x.half; x.half {
				far.CloseWrite()
			} else {
				far.Close()
			}
			time.Sleep(5 * time.Millisecond)
			c.ping, c.pinged = 1, x.dials
			ended := make(chan error, 1)
			go func() { ended <- c.run() }()
			select {
			case err := <-ended:
				if !closedByPeer(err) {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it is not noticed")
				c.close(ErrClosed)
				<-ended
			}
		})
	}
}

// A frame that came in parts, and in time, may take longer to be handled than its parts might take to come.
func TestOldDeadline(t *testing.T) {
	c, far := calmConn(t, false)
	c.expect(time.Now().Add(-time.Second))
	ended := make(chan error, 1)
	go func() { ended <- c.run() }()
	select {
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(20 * time.Millisecond):
	}
	far.Close()
	if err := <-ended; !closedByPeer(err) {
		t.Error(err)
	}
}

// A connection ends that was interrupted before the deadline of its handshake was lifted.
func TestCloseBeforeItReads(t *testing.T) {
	c, _ := calmConn(t, false)
	c.close(errReplaced)
	c.nc.SetDeadline(time.Time{})
	ended := make(chan error, 1)
	go func() { ended <- c.run() }()
	select {
	case err := <-ended:
		if err != errReplaced {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}

// A connection that is closed by the goroutine that handles a frame of it, or by another one meanwhile, ends, and nobody waits for ever.
func TestCloseWhileItReads(t *testing.T) {
	for name, wrong := range map[string]transport.Item{
		"reader": {Type: transport.ByeItem},
		"other":  {Type: transport.PingItem, Seq: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, far := calmConn(t, true)
			ended := make(chan error, 1)
			go func() { ended <- c.run() }()
			if name == "other" {
				c.s.receive.Lock() // its reader waits in the middle of a frame
				time.AfterFunc(10*time.Millisecond, c.s.receive.Unlock)
			}
			if _, err := far.Write(frameOf(wrong)); err != nil {
				t.Fatal(err)
			}
			if name == "other" {
				time.Sleep(5 * time.Millisecond)
				c.close(errMoved)
			}
			select {
			case err := <-ended:
				if err == nil || name == "other" && err != errMoved {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}
