//go:build unix

package node

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// What several goroutines write at once to a peer that reads slowly arrives whole and in order: what the kernel does not take
// is left to the writer.
func TestWriteNow(t *testing.T) {
	n, err := newNode(Config{Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	peer.(*net.TCPConn).SetReadBuffer(64 << 10)
	nc, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	nc.(*net.TCPConn).SetWriteBuffer(32 << 10)
	s := newSession(n, 7, 1)
	s.agree(7, "", time.Minute, n.c.Boot())
	c := newConn(n, nc, bufio.NewReader(nc), false, time.Minute)
	c.s = s
	if c.eager == nil {
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
