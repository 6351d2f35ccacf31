package faultnet

import (
	"net"
	"testing"
	"time"

	"github.com/poundlock/poundlock/transport"
)

func TestNet(t *testing.T) {
	var servers []Server
	for _, name := range []string{"s1", "s2", "s3", "s4"} {
		servers = append(servers, Server{name, target(t, "127.0.0.1:0", echo)})
	}
	n, err := NewNet([]string{"c1", "c2", "c3"}, servers)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	conns := map[[2]string]net.Conn{}
	for _, c := range []string{"c1", "c2", "c3"} {
		table := n.Servers(c)
		for i, s := range table {
			if s.Name != servers[i].Name || s.Addr != n.Link(c, s.Name).Addr() {
				t.Fatalf("%s finds %v, want %s", c, s, servers[i].Name)
			}
			nc, err := transport.Dial(t.Context(), "", s.Addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(patience))
			conns[[2]string{c, s.Name}] = nc
			trip(t, nc)
		}
	}
	n.Cut(Both, []string{"c1", "c2"}, []string{"s3", "s4"})
	for pair, nc := range conns {
		if pair[0] != "c3" && pair[1] >= "s3" {
			nc.Write([]byte{1})
			quiet(t, nc, 20*time.Millisecond)
		} else {
			trip(t, nc)
		}
	}
	n.Heal(nil, []string{"s3"})
	if s, _ := n.Link("c1", "s3").now(); s.cut != 0 {
		t.Error("s3 is healed, and still cut off")
	}
	if s, _ := n.Link("c1", "s4").now(); s.cut != Both {
		t.Error("s4 is not healed, and not cut off")
	}
	n.SetDelay(7*time.Millisecond, 0)
	if d := trip(t, conns[[2]string{"c3", "s1"}]); d < 14*time.Millisecond {
		t.Errorf("a round trip took %v", d)
	}
	defer func() {
		if recover() == nil {
			t.Error("a link of nobody")
		}
	}()
	n.Link("c9", "s1")
}
