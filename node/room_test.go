package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/transport"
)

// remote is a connection from an address, "10.0.0.1:1" for one.
type remote struct {
	net.Conn
	addr string
}

func (r remote) RemoteAddr() net.Addr { return named(r.addr) }
func (r remote) Close() error {
	if r.Conn == nil {
		return nil
	}
	return r.Conn.Close()
}

type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// What one host has kept, and nobody can turn out, leaves as much room for others, and comes back when it leaves.
func TestRoomIsNotKeptByOneHost(t *testing.T) {
	r := room{most: 100}
	var kept []*guest
	for k := range 20 {
		g := r.enter(remote{addr: "10.0.0.1:1"})
		if r.take(g, 10) && r.keep(g) {
			kept = append(kept, g)
			continue
		}
		if r.leave(g) {
			t.Errorf("guest %d was turned out, although there is room", k)
		}
	}
	if len(kept) != 5 || r.size() != 50 {
		t.Errorf("one host keeps %d, %d bytes of 100", len(kept), r.size())
	}
	for range 10 { // what is unfinished of it makes room
		r.take(r.enter(remote{addr: "10.0.0.1:1"}), 10)
	}
	honest := r.enter(remote{addr: "10.0.0.2:1"})
	if !r.take(honest, 20) || !r.keep(honest) {
		t.Error("one host keeps another out")
	}
	// The host that takes most has nothing that can be turned out: one that has makes room.
	r = room{most: 100}
	most, other, next := r.enter(remote{addr: "10.0.0.1:1"}), r.enter(remote{addr: "10.0.0.2:1"}), r.enter(remote{addr: "10.0.0.3:1"})
	if !r.take(most, 50) || !r.keep(most) || !r.take(other, 45) || !r.take(next, 10) || !other.turned || r.keep(other) {
		t.Error("there is no room, although another host has something unfinished")
	}
	for _, g := range []*guest{most, other, next} {
		r.leave(g)
	}
	if r.taken != 0 || r.kept != 0 || len(r.hosts) != 0 {
		t.Errorf("%d bytes are taken and %d kept when all have left", r.taken, r.kept)
	}
}

// A host with a whole IPv6 network, such as 2001:db8::/64, is one host in a room: it makes room for itself.
func TestRoomOfOneNetwork(t *testing.T) {
	r := room{most: 100}
	honest := r.enter(remote{addr: "[2001:db8:9::1]:1"})
	r.take(honest, 20)
	for k := range 20 {
		r.take(r.enter(remote{addr: fmt.Sprintf("[2001:db8::%x:1]:1", k)}), 10)
	}
	if honest.turned || len(r.hosts) != 2 {
		t.Errorf("%d hosts, the honest one is out: %v", len(r.hosts), honest.turned)
	}
}

// It is one host in the warnings, too.
func TestComplaintsByNetwork(t *testing.T) {
	var log bytes.Buffer
	n, err := newNode(Config{
		Secret: 1, Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	for k := range 100 {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0}) // a client with TLS begins so
			_ = there.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = there.Read(make([]byte, transport.MaxHandshake))
		}()
		if _, err := (&front{n: n}).greet(remote{here, fmt.Sprintf("[2001:db8::%x]:1", k+1)}); err == nil {
			t.Fatal("it is welcome")
		}
		here.Close()
		there.Close()
	}
	if k := bytes.Count(log.Bytes(), []byte("refused a connection")); k < maxWarnings || k > maxWarnings+5 {
		t.Errorf("%d warnings about one network, %d at once are the limit", k, maxWarnings)
	}
}

// Whole frames of one host that wait to be handled leave as much room for those of others: its next one is refused.
func TestFramesToBeHandledLeaveRoom(t *testing.T) {
	const most, length = 1 << 20, 100 << 10
	n, err := newNode(Config{
		Secret: 1, Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
		Log: slog.New(slog.DiscardHandler), MaxFrames: most,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	b := append(transport.AppendHeader(nil, 0), make([]byte, length)...)
	transport.EndFrame(b)
	send := func(from string) (*guest, error) {
		here, there := net.Pipe()
		defer here.Close()
		go func() {
			defer there.Close()
			_, _ = there.Write(b)
		}()
		c := newConn(n, remote{here, from}, bufio.NewReader(here), false, time.Second)
		c.s = newSession(n, 7, 1)
		_, g, err := c.readFrame(time.Minute)
		return g, err
	}
	var refused int
	for range 2 * most / length {
		if _, err := send("10.0.0.1:1"); errors.Is(err, errNoRoom) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if used := n.frames.size(); refused == 0 || used > most/2 || used < most/4 {
		t.Errorf("%d frames of one host are refused, and %d bytes kept of %d", refused, used, most)
	}
	if k := n.counters.frames.noRoom.Load(); k != uint64(refused) {
		t.Errorf("%d refused frames are counted, %d were", k, refused)
	}
	g, err := send("10.0.0.2:1")
	if err != nil {
		t.Fatalf("a frame of another host: %v", err)
	}
	n.frames.leave(g)
}
