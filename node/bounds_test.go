package node_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
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
	eventually(t, "the log says why", func() bool { return strings.Contains(log.String(), "no room for more unfinished frames") })
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
	loud[0].say(message(1, 1, "a", enter))
	<-began // the shard is busy
	for k, s := range loud {
		first := uint64(1)
		if k == 0 {
			first++
		}
		s.say(func(b []byte) []byte {
			for seq := first; seq < first+count; seq++ {
				b = message(seq, 1, "a", leave)(b)
			}
			return b
		})
	}
	eventually(t, "they all wait for their turn", func() bool { return servers[0].InLine() == crowd })
	honest.say(message(1, 1, "a", leave), transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	honest.until(transport.PongItem)
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
