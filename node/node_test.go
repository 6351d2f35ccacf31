package node_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

func TestMain(m *testing.M) {
	lane.Waits()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

// A probe is a User that turns callbacks into channels.
type probe struct {
	crit    chan uint64
	rem     chan string
	ejected chan struct{}
}

func newProbe() *probe {
	return &probe{make(chan uint64, 16), make(chan string, 16), make(chan struct{}, 16)}
}

func (p *probe) Crit(e node.Entry) { p.crit <- e.Token }
func (p *probe) Rem(why error) {
	if why == nil {
		p.rem <- ""
		return
	}
	p.rem <- why.Error()
}

func (p *probe) Ejected()                         { p.ejected <- struct{}{} }
func (p *probe) Supported(map[protocol.ID]uint64) {}

// mutexes has a host serve exclusive locks.
func mutexes(h node.Host) map[node.Kind]node.Host { return map[node.Kind]node.Host{node.Mutex: h} }

// listen listens on loopback, or on a unix socket.
func listen(t testing.TB, unix bool, i int) (net.Listener, string) {
	t.Helper()
	addr := "127.0.0.1:0"
	if unix {
		addr = "unix:" + filepath.Join(t.TempDir(), fmt.Sprint(i))
	}
	l, err := transport.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	if !unix {
		addr = l.Addr().String()
	}
	return l, addr
}

// cluster starts n members of host and waits until all are connected.
func cluster(t testing.TB, n int, unix bool, host node.Host, change func(*node.Config)) []*node.Node {
	t.Helper()
	nodes, _ := clusterAt(t, n, unix, host, change)
	return nodes
}

// clusterAt returns the slot table too, for clients.
func clusterAt(
	t testing.TB, n int, unix bool, host node.Host, change func(*node.Config),
) ([]*node.Node, []node.Peer) {
	t.Helper()
	peers := make([]node.Peer, n)
	listeners := make([]net.Listener, n)
	for i := range peers {
		l, addr := listen(t, unix, i)
		peers[i], listeners[i] = node.Peer{Name: fmt.Sprint("s", i+1), Addr: addr}, l
	}
	nodes := make([]*node.Node, n)
	for i := range nodes {
		c := node.Config{ID: protocol.ID(i), Hosts: mutexes(host), Peers: peers, Listener: listeners[i]}
		if change != nil {
			change(&c)
		}
		nodes[i] = start(t, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if host.Info().Users == protocol.Members {
		for _, m := range nodes {
			if err := m.WaitAlive(ctx, n-1); err != nil {
				t.Fatal(err)
			}
		}
	}
	return nodes, peers
}

func start(t testing.TB, c node.Config) *node.Node {
	t.Helper()
	n, err := node.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// virtual is a node's clock of leases within a bubble: the machine's own goes on while
// virtual time stands still.
func virtual() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// count has every node enter every lock several times, and counts under the
// lock in a way that is right only under it.
func count(t *testing.T, nodes []*node.Node, locks, entries int) {
	t.Helper()
	counters := make([]int, locks) // the race detector watches them too
	inside := make([]atomic.Int32, locks)
	var wg sync.WaitGroup
	for i, n := range nodes {
		for k := range locks {
			wg.Go(func() {
				u, name := newProbe(), fmt.Sprint("lock-", k)
				for range entries {
					if err := n.Try(node.Mutex, name, u, false); err != nil {
						t.Errorf("node %d: %v", i, err)
						return
					}
					select {
					case <-u.crit:
					case why := <-u.rem:
						t.Errorf("node %d: %s: out: %s", i, name, why)
						return
					case <-time.After(patience):
						t.Errorf("node %d: no entry to %s", i, name)
						return
					}
					if inside[k].Add(1) != 1 {
						t.Errorf("two inside %s", name)
					}
					counters[k]++
					inside[k].Add(-1)
					n.Exit(name)
					<-u.rem
				}
			})
		}
	}
	wg.Wait()
	for k, got := range counters {
		if want := len(nodes) * entries; got != want {
			t.Errorf("lock %d: counted %d, want %d", k, got, want)
		}
	}
}

func TestRicartAgrawala(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		for _, unix := range []bool{false, true} {
			t.Run(fmt.Sprintf("n=%d,unix=%v", n, unix), func(t *testing.T) {
				count(t, cluster(t, n, unix, node.HostOf(ricartagrawala.Algorithm), nil), 3, 20)
			})
		}
	}
}

// clients starts k clients of the members and waits for their sessions.
func clients(t testing.TB, k int, peers []node.Peer, host node.Host, change func(*node.Config)) []*node.Node {
	t.Helper()
	nodes := make([]*node.Node, k)
	for i := range nodes {
		c := node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers}
		if change != nil {
			change(&c)
		}
		nodes[i] = start(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := nodes[i].WaitAlive(ctx, len(peers)); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// eventually waits until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

func TestSigma(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	users := clients(t, 3, peers, host, nil)
	count(t, users, 3, 20)
	for i, n := range append(servers, users...) {
		eventually(t, fmt.Sprintf("node %d has no instances", i), func() bool {
			return len(n.Locks()) == 0
		})
	}
}

// Every algorithm runs, whatever its detector and its users.
func TestOthers(t *testing.T) {
	for _, host := range []node.Host{
		node.HostOf(sigma.Literal), node.HostOf(suzukikasami.Algorithm), node.HostOf(ricartagrawala.Printed),
	} {
		t.Run(host.Info().Name+host.Info().Variant, func(t *testing.T) {
			users, peers := clusterAt(t, 4, false, host, nil)
			if host.Info().Users == protocol.Clients {
				users = clients(t, 3, peers, host, nil)
			}
			count(t, users, 2, 10)
		})
	}
}

func TestBusy(t *testing.T) {
	n := cluster(t, 3, false, node.HostOf(ricartagrawala.Algorithm), nil)[0]
	u := newProbe()
	if err := n.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	if err := n.Try(node.Mutex, "a", newProbe(), false); !errors.Is(err, node.ErrBusy) {
		t.Errorf("a second user: %v, want ErrBusy", err)
	}
	<-u.crit
	n.Exit("a")
	<-u.rem
	if err := n.Try(node.Mutex, "a", u, false); err != nil {
		t.Errorf("after Rem: %v", err)
	}
	<-u.crit
}

func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		c.Listener = tls.NewListener(c.Listener, &tls.Config{Certificates: web.TLS.Certificates})
	})
	count(t, clients(t, 2, peers, host, func(c *node.Config) { c.TLS = &tls.Config{RootCAs: trusted} }), 2, 20)

	stranger := start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers, TLS: &tls.Config{}})
	eventually(t, "the certificate is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return strings.Contains(stranger.WaitAlive(ctx, 1).Error(), "certificate")
	})
	plain := start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers})
	eventually(t, "a client without TLS hears that it is wanted", func() bool {
		_, err := plain.Call(t.Context(), 0, nil)
		return errors.Is(err, transport.ErrWantsTLS)
	})
}
