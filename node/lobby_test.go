package node_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// hosts is a listener whose connections come from whatever host is set.
type hosts struct {
	net.Listener
	host atomic.Uint32
}

func (h *hosts) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hosted{conn, &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(h.host.Load())), Port: 1}}, nil
}

type hosted struct {
	net.Conn
	addr net.Addr
}

func (h *hosted) RemoteAddr() net.Addr { return h.addr }

// However many connect from one address and say nothing, one from another address that
// takes its time is heard, although it has been there for longest.
func TestSilentCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 2048 + 200
		var network memory
		l, err := network.Listen("s1")
		must(t, err)
		from := &hosts{Listener: l}
		start(t, node.Config{
			Hosts: mutexes(node.HostOf(keeper(nil))), Peers: []node.Peer{{Name: "s1", Addr: "s1"}},
			Listener: from, Boot: virtual(),
		})
		visit := func(host uint32) *stranger {
			synctest.Wait() // whoever came before is there
			from.host.Store(host)
			conn, err := network.Dial(t.Context(), "s1")
			must(t, err)
			t.Cleanup(func() { conn.Close() })
			return &stranger{t, conn}
		}
		slow := visit(1)
		var silent []*stranger
		for range crowd {
			silent = append(silent, visit(2))
		}
		// The first of them make room for the last ones, long before their time is over.
		began := time.Now()
		if r, err := transport.ReadRefuse(silent[0].until(transport.RefuseItem).Body); err != nil ||
			r.Code != transport.Full || !strings.Contains(r.What, "too many connections are in their handshake: try again later") {
			t.Errorf("the first silent connection hears %v, %v", r, err)
		}
		silent[0].ends()
		if took := time.Since(began); took > 0 {
			t.Errorf("the first silent connection ended after %v", took)
		}
		slow.say(greeting.Append)
		slow.until(transport.WelcomeItem)
		next := visit(1)
		next.say(another(greeting, 1).Append)
		next.until(transport.WelcomeItem)
	})
}
