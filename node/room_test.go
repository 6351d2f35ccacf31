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
	"github.com/poundlock/poundlock/internal/limit"
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

// A host with a whole IPv6 network, such as 2001:db8::/64, is one host in the warnings, too.
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
	send := func(from string) (*limit.Guest, error) {
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
	if used := n.frames.Size(); refused == 0 || used > most/2 || used < most/4 {
		t.Errorf("%d frames of one host are refused, and %d bytes kept of %d", refused, used, most)
	}
	if k := n.counters.frames.noRoom.Load(); k != uint64(refused) {
		t.Errorf("%d refused frames are counted, %d were", k, refused)
	}
	g, err := send("10.0.0.2:1")
	if err != nil {
		t.Fatalf("a frame of another host: %v", err)
	}
	g.Leave()
}
