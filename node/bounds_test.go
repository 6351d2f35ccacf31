package node_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// begin sends the beginning of a frame that never ends.
func (s *stranger) begin(claims, sends int) {
	s.t.Helper()
	b := binary.BigEndian.AppendUint32(nil, uint32(claims))
	b = append(b, transport.AppendHeader(nil, 0)[transport.LengthSize:]...)
	if _, err := s.conn.Write(append(b, make([]byte, sends)...)); err != nil {
		s.t.Log(err) // the connection may be closed already
	}
}

// However many begin frames and do not end them, their memory is within the budget. Who comes last is heard.
func TestUnfinishedFrames(t *testing.T) {
	const most, crowd, claims = 1 << 20, 40, 200 << 10
	var log journal
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		c.MaxFrames = most
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	before := heap()
	var all []*stranger
	for k := range crowd {
		s := visit(t, peers[0].Addr)
		h := another(greeting, k)
		h.Members, h.Kinds = "s1,s2,s3,s4", runs("sigma")
		s.say(h.Append)
		s.until(transport.WelcomeItem)
		s.begin(claims, claims-10)
		all = append(all, s)
		if now := servers[0].Stats().Frames.Unfinished; now > most {
			t.Fatalf("%d bytes, the limit is %d", now, most)
		}
	}
	eventually(t, "those that came first make room", func() bool {
		return servers[0].Stats().Frames.NoRoom >= crowd-most/claims-1
	})
	all[0].ends()
	if now := heap(); now > before+2*most {
		t.Errorf("%d bytes more are reachable, the limit is %d", now-before, most)
	}
	// Sessions go on, and others are served, also with frames that need room.
	c := clients(t, 1, peers, host, nil)[0]
	name := strings.Repeat("x", 1000)
	var users []*probe
	for k := range 100 {
		u := newProbe()
		must(t, c.Try(node.Mutex, fmt.Sprint(name, k), u, false))
		users = append(users, u)
	}
	for _, u := range users {
		<-u.crit
	}
	if k := len(servers[0].Sessions()); k != crowd+1 {
		t.Errorf("%d sessions", k)
	}
	eventually(t, "the log says why", func() bool { return strings.Contains(log.String(), "no room for more frames") })
}

// The rest of a frame has five seconds, however long the lease is. Then the connection is closed, and the session goes on.
func TestSlowFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, time.Minute, 1, 1)
		defer b.close()
		h := greeting
		h.Lease = time.Minute
		s := b.cable.visit(t, h)
		s.until(transport.WelcomeItem)
		time.Sleep(10 * time.Second) // between frames there is time
		began := time.Now()
		s.begin(1000, 10)
		s.ends()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("after %v", took)
		}
		if k := b.server.Stats().Frames.Slow; k != 1 {
			t.Errorf("%d slow frames are counted", k)
		}
		h.Resume = true
		b.cable.visit(t, h).until(transport.WelcomeItem)
	})
}

// A frame that is larger than any of a client ends its session, before it takes memory.
func TestTooLargeFrame(t *testing.T) {
	servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), nil)
	s := visit(t, peers[0].Addr)
	s.say(greeting.Append)
	s.until(transport.WelcomeItem)
	s.begin(transport.MaxClientFrame+1, 100<<10)
	r, err := transport.ReadRefuse(s.until(transport.RefuseItem).Body)
	if want := "it claims 393217 bytes, the limit is 393216"; err != nil || !strings.Contains(r.Error(), want) {
		t.Errorf("%v, %v; want %q", r, err, want)
	}
	s.ends()
	if st := servers[0].Stats(); st.Frames.TooLarge != 1 || st.Frames.Unfinished != 0 || len(servers[0].Sessions()) != 0 {
		t.Errorf("%+v", st.Frames)
	}
}

// However much others say at once, what an honest client says is handled after one turn of each of them.
func TestFairTurns(t *testing.T) {
	const crowd, count, turn = 4, 3000, 64
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var order []protocol.ID
	host := node.HostOf(keeper(func(e keeperEvent) {
		if e.Kind == protocol.Receive {
			mu.Lock()
			order = append(order, e.From)
			mu.Unlock()
		}
		once.Do(func() { close(began); <-goOn })
	}))
	servers, peers := clusterAt(t, 1, false, host, nil)
	greet := func(k int) *stranger {
		s := visit(t, peers[0].Addr)
		s.say(another(greeting, k).Append)
		s.until(transport.WelcomeItem)
		return s
	}
	honest := greet(crowd)
	var loud []*stranger
	for k := range crowd {
		loud = append(loud, greet(k))
	}
	greet(crowd + 1).say(message(1, 1, "a", enter))
	<-began // the loop is busy
	for _, s := range loud {
		s.say(func(b []byte) []byte {
			for seq := uint64(1); seq <= count; seq++ {
				b = message(seq, 1, "a", leave)(b)
			}
			return b
		})
	}
	eventually(t, "they all wait for their turn", func() bool { return servers[0].InLine() == crowd })
	honest.say(message(1, 1, "a", leave))
	eventually(t, "the honest one waits for its turn", func() bool { return servers[0].InLine() == crowd+1 })
	close(goOn)
	var at int
	eventually(t, "the honest one is heard", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for k, id := range order {
			if id == another(greeting, crowd).From {
				at = k
				return true
			}
		}
		return false
	})
	if most := 1 + 2*crowd*turn; at > most {
		t.Errorf("%d messages of others come first, want at most %d", at, most)
	}
	eventually(t, "all are heard", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) == 2+crowd*count
	})
}

// visitFrom is visit from another address of this machine.
func visitFrom(t *testing.T, host, addr string) *stranger {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &stranger{t, conn}
}

// begins says hello from an address, and returns why it is refused.
func begins(t *testing.T, host, addr string, k int) (why string) {
	t.Helper()
	s := visitFrom(t, host, addr)
	s.say(another(greeting, k).Append)
	for {
		items, err := s.hear()
		must(t, err)
		for _, i := range items {
			switch i.Type {
			case transport.WelcomeItem:
				return ""
			case transport.RefuseItem:
				r, err := transport.ReadRefuse(i.Body)
				if err != nil || r.Code != transport.Full {
					t.Errorf("%+v, %v", r, err)
				}
				return r.What
			}
		}
	}
}

// One address cannot have all sessions: it gets no more than are left for others, or what is configured. Where a session ends
// another one may begin.
func TestSessionsOfOneHost(t *testing.T) {
	const most = 16
	for _, ofOne := range []int{0, 3} {
		servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) {
			c.MaxSessions, c.MaxSessionsOfOne = most, ofOne
		})
		began := map[string]int{}
		for k := range 3 * most {
			host := fmt.Sprint("127.0.0.", 1+k/most)
			why := begins(t, host, peers[0].Addr, k)
			if why == "" {
				began[host]++
				continue
			}
			if want := fmt.Sprintf("%d sessions from %s are the limit", began[host], host); !strings.HasPrefix(why, want) {
				t.Errorf("refused with %q, want %q", why, want)
			}
		}
		want := map[string]int{"127.0.0.1": 8, "127.0.0.2": 4, "127.0.0.3": 2}
		if ofOne > 0 {
			want = map[string]int{"127.0.0.1": 3, "127.0.0.2": 3, "127.0.0.3": 3}
		}
		if !maps.Equal(began, want) {
			t.Errorf("sessions began: %v, want %v", began, want)
		}
		for k, s := range servers[0].Sessions() {
			if k < 3 {
				servers[0].EndSession(s.Peer)
			}
		}
		if why := begins(t, "127.0.0.3", peers[0].Addr, 1000); why != "" {
			t.Errorf("when some have ended: %s", why)
		}
	}
}

// Clients of one address cannot wait so often that nobody else can; with what they leave there is room again.
func TestWaitersOfOneHost(t *testing.T) {
	const most, clients, wanted = 120, 4, 40
	servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) { c.MaxWaiters = most })
	var crowd []*stranger
	greet := func(k int, host string) *stranger {
		s := visitFrom(t, host, peers[0].Addr)
		s.say(another(greeting, k).Append)
		s.until(transport.WelcomeItem)
		return s
	}
	wants := func(s *stranger, seq uint64, name string, body byte) {
		s.say(message(seq, 1, name, body), transport.Item{Type: transport.CallItem, Seq: seq, Body: []byte("?")}.Append)
		s.until(transport.ReplyItem)
	}
	for k := range clients {
		s := greet(k, "127.0.0.1")
		crowd = append(crowd, s)
		for j := range uint64(wanted) {
			wants(s, j+1, fmt.Sprint("lock-", j), enter)
		}
	}
	eventually(t, "half of the places are taken", func() bool { return servers[0].Stats().Pairs == most/2 })
	honest := greet(clients, "127.0.0.2")
	honest.say(message(1, 1, "mine", enter))
	honest.until(transport.MessageItem)
	last := crowd[clients-1]
	last.say(message(wanted+1, 1, "more", enter))
	want := "the server is full for 127.0.0.1: its limit on clients that hold or wait for a lock is 120, these have 60"
	if why := string(last.until(transport.RefuseNameItem).Body); !strings.HasPrefix(why, want) {
		t.Errorf("refused with %q, want %q", why, want)
	}
	for _, s := range crowd {
		s.say(transport.Item{Type: transport.ByeItem}.Append)
		s.ends()
	}
	eventually(t, "the places are free", func() bool { return servers[0].Stats().Pairs == 1 })
}

// Whom a certificate is for: what SPIFFE says, or its subject, or nobody else has it.
func TestPrincipal(t *testing.T) {
	id, err := url.Parse("spiffe://acme/deploy")
	must(t, err)
	for want, c := range map[string]*x509.Certificate{
		"spiffe://acme/deploy": {URIs: []*url.URL{id}, Subject: pkix.Name{CommonName: "deploy"}},
		"CN=deploy":            {Subject: pkix.Name{CommonName: "deploy"}},
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": {},
	} {
		if got := node.Principal(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
