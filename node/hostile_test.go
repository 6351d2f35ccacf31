package node_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// A stranger speaks the wire by hand.
type stranger struct {
	t    *testing.T
	conn net.Conn
}

func visit(t *testing.T, addr string) *stranger {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &stranger{t, conn}
}

func frame(items ...func([]byte) []byte) []byte {
	b := transport.AppendHeader(nil, 0)
	for _, i := range items {
		b = i(b)
	}
	transport.EndFrame(b)
	return b
}

func (s *stranger) say(items ...func([]byte) []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(frame(items...)); err != nil {
		s.t.Fatal(err)
	}
}

// hear returns the next items, or what ended the connection.
func (s *stranger) hear() ([]transport.Item, error) {
	b, err := transport.ReadFrame(s.conn, transport.MaxFrame)
	if err != nil {
		return nil, err
	}
	_, rest, err := transport.ReadHeader(b)
	var items []transport.Item
	for err == nil && len(rest) > 0 {
		var i transport.Item
		i, rest, err = transport.ReadItem(rest)
		items = append(items, i)
	}
	return items, err
}

// until hears until an item of the type comes.
func (s *stranger) until(want transport.Type) transport.Item {
	s.t.Helper()
	for {
		items, err := s.hear()
		for _, i := range items {
			if i.Type == want {
				return i
			}
		}
		if err != nil {
			s.t.Fatalf("no item of type %d: %v", want, err)
		}
	}
}

// refused waits for a refusal.
func (s *stranger) refused(want transport.Code) {
	s.t.Helper()
	r, err := transport.ReadRefuse(s.until(transport.RefuseItem).Body)
	if err != nil || r.Code != want {
		s.t.Errorf("refused with %+v, %v; want code %d", r, err, want)
	}
	s.ends()
}

// ends waits for the end of the connection.
func (s *stranger) ends() {
	s.t.Helper()
	for {
		if _, err := s.hear(); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				s.t.Error("the connection goes on")
			}
			return
		}
	}
}

var greeting = transport.Hello{
	From: node.ClientID(5), ToName: "s1", Incarnation: 5, Session: 1, Members: "s1", Kinds: runs("keeper"),
}

// another is a hello of client k instead.
func another(h transport.Hello, k int) transport.Hello {
	h.Incarnation = 100 + uint64(k)
	h.From = node.ClientID(h.Incarnation)
	return h
}

// runs is what a process says that runs an algorithm for exclusive locks.
func runs(algorithm string) []transport.Kind {
	return []transport.Kind{{Number: 1, Algorithm: algorithm}}
}

func message(seq uint64, kind uint8, name string, body ...byte) func([]byte) []byte {
	return transport.Item{Type: transport.MessageItem, Seq: seq, Kind: kind, Name: []byte(name), Body: body}.Append
}

func labelled(seq uint64, label string, body ...byte) func([]byte) []byte {
	return transport.Item{
		Type: transport.LabelledItem, Seq: seq, Kind: 1, Name: []byte("a"), Body: transport.AppendLabelled(nil, label, body),
	}.Append
}

// What a stranger does wrong ends its own session, and nothing else.
func TestStrangers(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, func(c *node.Config) { c.MaxLocks = 64 })
	honest := clients(t, 1, peers, host, nil)[0]
	u := newProbe()
	must(t, honest.Try(node.Mutex, "honest", u, false))
	<-u.crit
	for k, test := range []struct {
		name  string
		items []func([]byte) []byte
		want  string // what the refusal says
	}{
		{"malformed message", []func([]byte) []byte{message(1, 1, "a", 77)}, "malformed message"},
		{"a name beyond all bounds", []func([]byte) []byte{message(1, 1, strings.Repeat("x", 4097), enter)}, "malformed frame"},
		{"a refusal of a name", []func([]byte) []byte{
			transport.Item{Type: transport.RefuseNameItem, Seq: 1, Kind: 1, Name: []byte("a")}.Append,
		}, "refusal of a name"},
		{"a part of a message", []func([]byte) []byte{
			transport.Item{Type: transport.PartItem, Seq: 1, Kind: 1, Name: []byte("a")}.Append,
		}, "part of a message"},
		{"a label beyond all bounds", []func([]byte) []byte{labelled(1, strings.Repeat("x", 257), enter)}, "label of a user"},
		{"a label for terminals", []func([]byte) []byte{labelled(1, "\x1b[2J", enter)}, "control character"},
		{"a label that ends early", []func([]byte) []byte{
			transport.Item{Type: transport.LabelledItem, Seq: 1, Kind: 1, Name: []byte("a"), Body: []byte{9, 'x'}}.Append,
		}, "label of a user"},
		{"a gap", []func([]byte) []byte{message(2, 1, "a", enter)}, "item 2 follows item 0"},
		{"a late hello", []func([]byte) []byte{greeting.Append}, "item of type 1 after the handshake"},
		{"garbage", []func([]byte) []byte{func(b []byte) []byte { return append(b, 99, 99, 99) }}, "malformed frame"},
		{"an answer to nothing", []func([]byte) []byte{transport.Item{Type: transport.PongItem, Seq: 4}.Append}, "an answer to no heartbeat"},
		{"a false acknowledgement", []func([]byte) []byte{transport.Item{Type: transport.AckItem, Seq: 9}.Append}, "only 0 were sent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := visit(t, peers[0].Addr)
			h := another(greeting, k)
			h.Lease = time.Second
			s.say(h.Append)
			s.until(transport.WelcomeItem)
			s.say(test.items...)
			r, err := transport.ReadRefuse(s.until(transport.RefuseItem).Body)
			if err != nil || !strings.Contains(r.Error(), test.want) {
				t.Errorf("%v, %v; want %q", r, err, test.want)
			}
			s.ends()
		})
	}
	eventually(t, "only the honest client is left", func() bool {
		locks := servers[0].Locks()
		return len(servers[0].Sessions()) == 1 && len(locks) == 1 && locks[0].Name == "honest"
	})
	honest.Exit("honest")
	<-u.rem
}

// The first frame decides: everything but a hello that fits ends the connection.
func TestFirstFrame(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, nil)
	resume, received, zero, backwards := greeting, greeting, greeting, greeting
	resume.Resume = true
	received.Received = 3
	zero.Session = 0
	backwards.From = 0
	for name, first := range map[string][]byte{
		"http":         []byte("GET / HTTP/1.1\r\n\r\n"),
		"grpc":         []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		"huge":         {255, 255, 255, 255},
		"empty":        {0, 0, 0, 0},
		"no hello":     frame(transport.Item{Type: transport.PingItem}.Append),
		"no item":      frame(),
		"version":      {0, 0, 0, 2, 9, 0},
		"resume":       frame(resume.Append),
		"received":     frame(received.Append),
		"session zero": frame(zero.Append),
		"itself":       frame(backwards.Append),
	} {
		t.Run(name, func(t *testing.T) {
			s := visit(t, peers[0].Addr)
			_, err := s.conn.Write(first)
			must(t, err)
			if name == "http" || name == "grpc" {
				r, err := http.ReadResponse(bufio.NewReader(s.conn), nil)
				must(t, err)
				text, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusBadRequest || !bytes.Contains(text, []byte("--api")) {
					t.Errorf("%d %q, %v", r.StatusCode, text, err)
				}
			}
			if name == "version" {
				b, err := transport.ReadFrame(s.conn, transport.MaxHandshake)
				must(t, err)
				if h, _, _ := transport.ReadHeader(b); h.Version != transport.Version {
					t.Errorf("the answer has version %d", h.Version)
				}
			}
			s.ends()
		})
	}
}

// A hello of an older session, late on the network, does not end a newer one.
func TestStaleHello(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, nil)
	newer, older := visit(t, peers[0].Addr), visit(t, peers[0].Addr)
	h := greeting
	h.Session = 2
	newer.say(h.Append)
	newer.until(transport.WelcomeItem)
	older.say(greeting.Append)
	older.refused(transport.Stale)
	newer.say(transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	newer.until(transport.PongItem)
	if n := len(servers[0].Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A message that only servers send ends the session of a client that sends it. The
// server's process never sees it, so that the lock goes on for everybody else.
func TestMessagesOfServersOnly(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	u := newProbe()
	sent := 0
	for kind, m := range sigma.Algorithm.Messages {
		if m.From != protocol.OnlyMembers {
			continue
		}
		sent++
		for k, p := range peers {
			s := visit(t, p.Addr)
			h := greeting
			h.To, h.ToName, h.Members, h.Kinds = protocol.ID(k), p.Name, "s1,s2,s3,s4", runs("sigma")
			s.say(h.Append)
			s.until(transport.WelcomeItem)
			s.say(message(1, 1, "a", sigma.Algorithm.Append(nil, sigma.Message{Kind: uint8(kind)})...))
			s.ends()
		}
		must(t, c.Try(node.Mutex, "a", u, false))
		select {
		case <-u.crit:
		case <-time.After(patience):
			t.Fatalf("after %s nobody gets the lock", m.Name)
		}
		c.Exit("a")
		<-u.rem
	}
	if sent == 0 {
		t.Error("every message may come from clients")
	}
}

// A message that no member of this system sends ends the session of the member that sends it. The
// process never sees it, or its panic would close the node.
func TestMessagesOfNobody(t *testing.T) {
	alg := consensus.With(wme.Second)
	host := node.HostOf(alg)
	l, addr := listen(t, false, 0)
	peers := []node.Peer{{Name: "s1", Addr: addr}, {Name: "s2", Addr: "127.0.0.1:1"}, {Name: "s3", Addr: "127.0.0.1:2"}}
	n := start(t, node.Config{
		Peers: peers, Listener: l, Hosts: map[node.Kind]node.Host{node.Replica: host},
		Objects: map[string]node.Object{"o": &counters.Store{}},
	})
	greet(t, addr, 2, host.Info().Name)
	three := make([]uint64, 3)
	const nobody = "no process of 3 members sends this"
	state := func(object string) wme.Message {
		return wme.Message{Kind: wme.State, Epoch: 9, Number: 9, Done: 9, More: &wme.Bulk{Granted: three, Lives: three, Last: three, Object: object}}
	}
	for k, test := range []struct {
		frame consensus.Frame[wme.Message]
		want  string
	}{
		{consensus.Frame[wme.Message]{Msg: wme.Message{Kind: wme.Grant, Number: 1, Who: 99}}, nobody},
		{consensus.Frame[wme.Message]{Msg: wme.Message{Kind: wme.NewEp, More: &wme.Bulk{Granted: three, Lives: make([]uint64, 4)}}}, nobody},
		{consensus.Frame[wme.Message]{Kind: consensus.Decided, Msg: wme.Message{Kind: wme.Request}}, nobody},
		{consensus.Frame[wme.Message]{Msg: state("")}, "STATE: the size of the state: "},
		{consensus.Frame[wme.Message]{Msg: state(strings.Repeat("\x00", 9) + "\x07")}, "STATE: the results of the last operations: "},
		{consensus.Frame[wme.Message]{Msg: state(strings.Repeat("\x00", 10))}, "STATE: counters: malformed snapshot: 0 bytes"},
	} {
		s := visit(t, addr)
		h := greeting
		h.From, h.Session, h.Members = 1, uint64(k)+1, "s1,s2,s3"
		h.Kinds = []transport.Kind{{Number: uint8(node.Replica), Algorithm: host.Info().Name}}
		s.say(h.Append)
		s.until(transport.WelcomeItem)
		s.say(message(1, uint8(node.Replica), "o", alg.Append(nil, test.frame)...))
		r, err := transport.ReadRefuse(s.until(transport.RefuseItem).Body)
		if err != nil || !strings.Contains(r.Error(), test.want) {
			t.Errorf("%s: %v, %v", alg.Text(test.frame), r, err)
		}
		s.ends()
	}
	must(t, n.Try(node.Replica, "o", objectUser{newProbe(), nil}, false)) // it is not closed
}

// greet says to be a member, to s1 of three, which knows then that it is known.
func greet(t *testing.T, addr string, from protocol.ID, algorithm string) *stranger {
	t.Helper()
	s := visit(t, addr)
	h := greeting
	h.From, h.Members = from, "s1,s2,s3"
	h.Kinds = []transport.Kind{{Number: uint8(node.Replica), Algorithm: algorithm}}
	s.say(h.Append)
	s.until(transport.WelcomeItem)
	s.say(transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	return s
}

// A meddler says to be member s2, to a member s1 whose third one only greets.
type meddler struct {
	*stranger
	alg    protocol.Algorithm[consensus.Frame[wme.Message]]
	seq    uint64
	n      *node.Node
	object *counters.Store // of s1
}

func meddle(t *testing.T) *meddler {
	t.Helper()
	m := &meddler{alg: consensus.With(wme.Second), object: &counters.Store{}}
	l, addr := listen(t, false, 0)
	m.n = start(t, node.Config{
		Peers: []node.Peer{{Name: "s1", Addr: addr}, {Name: "s2", Addr: "127.0.0.1:1"}, {Name: "s3", Addr: "127.0.0.1:2"}}, Listener: l,
		Hosts: map[node.Kind]node.Host{node.Replica: node.HostOf(m.alg)}, Objects: map[string]node.Object{"o": m.object},
	})
	greet(t, addr, 2, m.alg.Name)
	m.stranger = greet(t, addr, 1, m.alg.Name)
	return m
}

// A member that is known to all begins, also where the frame that says so has more messages than it has room for before.
func TestManyBeforeAllHaveMet(t *testing.T) {
	alg := consensus.With(wme.Second)
	l, addr := listen(t, false, 0)
	n := start(t, node.Config{
		Peers: []node.Peer{{Name: "s1", Addr: addr}, {Name: "s2", Addr: "127.0.0.1:1"}, {Name: "s3", Addr: "127.0.0.1:2"}}, Listener: l,
		Hosts: map[node.Kind]node.Host{node.Replica: node.HostOf(alg)}, Objects: map[string]node.Object{"o": &counters.Store{}},
	})
	u := objectUser{newProbe(), nil}
	must(t, n.Try(node.Replica, "o", u, false))
	s := visit(t, addr)
	h := greeting
	h.From, h.Members = 1, "s1,s2,s3"
	h.Kinds = []transport.Kind{{Number: uint8(node.Replica), Algorithm: alg.Name}}
	s.say(h.Append)
	s.until(transport.WelcomeItem)
	var many []func([]byte) []byte
	for k := range uint64(300) {
		body := alg.Append(nil, consensus.Frame[wme.Message]{Msg: wme.Message{Kind: wme.Sync, Epoch: 1}})
		many = append(many, message(k+1, uint8(node.Replica), "o", body...))
	}
	s.say(many...)
	greet(t, addr, 2, alg.Name)
	<-u.crit
}

func (m *meddler) say(msg wme.Message) {
	m.t.Helper()
	m.seq++
	m.stranger.say(message(m.seq, uint8(node.Replica), "o", m.alg.Append(nil, consensus.Frame[wme.Message]{Msg: msg})...))
}

// An operation that names nobody who has issued it does nothing, and those after it are executed.
func TestOperationOfNobody(t *testing.T) {
	m := meddle(t)
	add := string(counters.Add("k"))
	for k, op := range []string{"", "\x03" + add, "\xff" + add, "\x01" + add} {
		number := uint64(k) + 1
		m.say(wme.Message{Kind: wme.Invoke, Number: number, Who: 1, ID: number, Op: op})
		m.say(wme.Message{Kind: wme.DoInvoke, Number: number})
	}
	one := &counters.Store{}
	one.Apply(counters.Add("k"))
	eventually(t, "the last one is executed", func() bool { return bytes.Equal(m.object.Snapshot(), one.Snapshot()) })
}

// Who learns from a state that its operation was refused, or that its result was too large, tells its user, and whoever asks
// it for the state.
func TestResultsInState(t *testing.T) {
	for result, want := range map[string]error{
		"\x01\x00\x00": node.ErrOperation,
		"\x00" + string(binary.AppendUvarint(nil, node.MaxOperation+1)) + "\x00": node.ErrResultTooLarge,
	} {
		t.Run(want.Error(), func(t *testing.T) { testResultInState(t, result, want) })
	}
}

func testResultInState(t *testing.T, result string, want error) {
	m := meddle(t)
	u := objectUser{newProbe(), make(chan error, 1)}
	must(t, m.n.Try(node.Replica, "o", u, false))
	<-u.crit
	m.n.Issue("o", counters.Add("k"))
	state := "\x00" + result + strings.Repeat("\x00", 6) + string(m.object.Snapshot())
	m.say(wme.Message{Kind: wme.State, Epoch: 1, Number: 1, Done: 1, More: &wme.Bulk{
		Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}, Last: []uint64{1, 0, 0}, Object: state,
	}})
	if err := <-u.outcome; !errors.Is(err, want) {
		t.Errorf("the user is told %v", err)
	}
	m.say(wme.Message{Kind: wme.Fetch})
	for {
		items, err := m.hear()
		must(t, err)
		for _, i := range items {
			if i.Type != transport.MessageItem {
				continue
			}
			f, _, err := m.alg.Read(i.Body)
			must(t, err)
			if f.Kind == consensus.Inner && f.Msg.Kind == wme.State {
				if got := f.Msg.More.Object; got != state {
					t.Errorf("it has the state %q, and gives %q", state, got)
				}
				return
			}
		}
	}
}

type objectUser struct {
	*probe
	outcome chan error
}

func (u objectUser) Outcome(_ []byte, err error) { u.outcome <- err }

// When a session ends, its processes hear of it before anything else, and
// nothing of it that still waits for them is delivered.
func TestDeadSession(t *testing.T) {
	var d diary
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	host := node.HostOf(keeper(func(e keeperEvent) {
		d.add(e)
		if e.Kind == protocol.Receive && e.From == another(greeting, 2).From {
			once.Do(func() { close(began); <-goOn })
		}
	}))
	servers, peers := clusterAt(t, 1, false, host, nil)
	meet := func(h transport.Hello) *stranger {
		s := visit(t, peers[0].Addr)
		s.say(h.Append)
		s.until(transport.WelcomeItem)
		return s
	}
	h := another(greeting, 1)
	dying, other, busy := meet(greeting), meet(h), meet(another(greeting, 2))

	dying.say(message(1, 1, "a", enter))
	eventually(t, "it is heard", func() bool { return d.has(0, protocol.Receive, greeting.From) })
	busy.say(message(1, 1, "a", enter))
	<-began // the loop is busy with it
	other.say(message(1, 1, "a", enter), transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	other.until(transport.PongItem)
	dying.say(message(2, 1, "a", enter), transport.Item{Type: transport.ByeItem}.Append)
	dying.ends()
	eventually(t, "the session is gone", func() bool { return len(servers[0].Sessions()) == 2 })
	close(goOn)
	eventually(t, "the other one is inside", func() bool { return d.has(0, protocol.Receive, h.From) })
	if got, want := fmt.Sprint(d.take()), "[s1 receives enter s1 receives enter s1 suspect s1 receives enter]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestMaxSessions(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, func(c *node.Config) { c.MaxSessions, c.MaxSessionsOfOne = 2, 9 })
	for k := range 4 {
		s := visit(t, peers[0].Addr)
		h := another(greeting, k)
		s.say(h.Append)
		if k < 2 {
			s.until(transport.WelcomeItem)
			continue
		}
		s.refused(transport.Full)
	}
	if k := servers[0].Stats().ClientSessions; k != 2 {
		t.Errorf("%d clients have a session, 2 are the limit", k)
	}
}

// Who connects and says nothing is dropped.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Second, 1, 1)
		defer b.close()
		conn, err := b.cable.memory.Dial(t.Context(), "s1")
		must(t, err)
		defer conn.Close()
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// A client cannot use an algorithm of members, but may call.
func TestClientOfPeers(t *testing.T) {
	host := node.HostOf(ricartagrawala.Algorithm)
	_, peers := clusterAt(t, 3, false, host, func(c *node.Config) {
		c.Call = func(from protocol.ID, request []byte) []byte { return append(request, '!') }
	})
	c := clients(t, 1, peers, host, nil)[0]
	if err := c.Try(node.Mutex, "a", newProbe(), false); err == nil || !strings.Contains(err.Error(), "not a user") {
		t.Errorf("Try: %v", err)
	}
	for k := range peers {
		if b, err := c.Call(t.Context(), protocol.ID(k), []byte("hi")); err != nil || string(b) != "hi!" {
			t.Errorf("%q, %v", b, err)
		}
	}
	s := visit(t, peers[0].Addr)
	h := greeting
	h.Members, h.Kinds = "s1,s2,s3", runs("ricart-agrawala")
	s.say(h.Append, message(1, 1, "a", 0, 1))
	s.until(transport.WelcomeItem)
	s.say(message(1, 1, "a", 0, 1))
	s.until(transport.RefuseItem)
	s.ends()
}

// A client that calls a member which waits until all have met gets its answer, and ends nothing.
func TestCallBeforeAllHaveMet(t *testing.T) {
	host := node.HostOf(ricartagrawala.Algorithm)
	l, addr := listen(t, false, 0)
	peers := []node.Peer{{Name: "s1", Addr: addr}, {Name: "s2", Addr: "127.0.0.1:1"}}
	start(t, node.Config{
		Peers: peers, Listener: l, Hosts: map[node.Kind]node.Host{node.Mutex: host},
		Call: func(from protocol.ID, request []byte) []byte { return append(request, '!') },
	})
	c := start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers})
	must(t, c.WaitAlive(t.Context(), 1))
	if b, err := c.Call(t.Context(), 0, []byte("hi")); err != nil || string(b) != "hi!" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestCall(t *testing.T) {
	host := node.HostOf(keeper(nil))
	arrived, release := make(chan struct{}), make(chan struct{})
	servers, peers := clusterAt(t, 1, false, host, func(c *node.Config) {
		c.Call = func(from protocol.ID, request []byte) []byte {
			switch string(request) {
			case "wait":
				arrived <- struct{}{}
				<-release
			case "large":
				return make([]byte, transport.MaxBody)
			case "huge":
				return make([]byte, transport.MaxBody+1)
			}
			return request
		}
	})
	c := clients(t, 1, peers, host, nil)[0]

	big := bytes.Repeat([]byte("x"), transport.MaxRequest)
	var wg sync.WaitGroup
	for k := range 12 { // more than one frame holds
		wg.Go(func() {
			if b, err := c.Call(t.Context(), 0, big); err != nil || !bytes.Equal(b, big) {
				t.Errorf("call %d: %d bytes, %v", k, len(b), err)
			}
			if b, err := c.Call(t.Context(), 0, []byte("large")); err != nil || len(b) != transport.MaxBody {
				t.Errorf("call %d: %d bytes, %v", k, len(b), err)
			}
		})
	}
	wg.Wait()
	wants := func(request []byte, want string) {
		t.Helper()
		if _, err := c.Call(t.Context(), 0, request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	wants([]byte("huge"), "exceeds")
	wants(append(big, 1), "exceeds")
	ctx, cancel := context.WithCancel(t.Context())
	for range 16 {
		wg.Go(func() {
			if _, err := c.Call(ctx, 0, []byte("wait")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for range 16 {
		<-arrived
	}
	cancel()
	wg.Wait()
	wants([]byte("more"), "too many")
	close(release)
	eventually(t, "calls are answered again", func() bool {
		_, err := c.Call(t.Context(), 0, nil)
		return err == nil
	})
	servers[0].Close()
	eventually(t, "the connection is gone", func() bool {
		_, err := c.Call(t.Context(), 0, nil)
		return err != nil && strings.HasPrefix(err.Error(), "no connection: ")
	})
}

// TestCallWaits: a call waits for a connection that is on its way, and until it is known
// to fail.
func TestCallWaits(t *testing.T) {
	for _, failure := range []error{nil, errors.New("unplugged")} {
		synctest.Test(t, func(t *testing.T) {
			host := node.HostOf(keeper(nil))
			f := newVirtualFleet(t, 4, host, func(c *node.Config) {
				c.Call = func(_ protocol.ID, request []byte) []byte { return request }
			})
			dialed := make(chan struct{})
			config := node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: f.peers}
			f.wired(&config)
			wire := config.Dial
			config.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				<-dialed
				if failure != nil {
					return nil, failure
				}
				return wire(ctx, p)
			}
			c := start(t, config)
			called := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), 0, nil)
				called <- err
			}()
			synctest.Wait()
			select {
			case err := <-called:
				t.Errorf("it did not wait: %v", err)
			default:
			}
			close(dialed)
			if err := <-called; !errors.Is(err, failure) {
				t.Errorf("%v, want %v", err, failure)
			}
		})
	}
}

// Start says what is wrong with a configuration.
func TestConfig(t *testing.T) {
	host := node.HostOf(keeper(nil))
	peers := []node.Peer{{Name: "a", Addr: "127.0.0.1:1"}, {Name: "b", Addr: "unix:/tmp/b"}}
	for want, c := range map[string]node.Config{
		"no algorithm":      {},
		"no members":        {Hosts: mutexes(host)},
		"needs a secret":    {Hosts: mutexes(host), ID: 9, Peers: peers},
		"slot table":        {Hosts: mutexes(host), Peers: peers, System: protocol.Config{N: 3}},
		`"a" appears twice`: {Hosts: mutexes(host), Secret: 9, Peers: []node.Peer{peers[0], peers[0]}},
		"address \"nowhere": {Hosts: mutexes(host), Secret: 9, Peers: []node.Peer{{Name: "a", Addr: "nowhere"}}},
		"the lease 1ns":     {Hosts: mutexes(host), Secret: 9, Peers: peers, Lease: 1},
		"drift 2":           {Hosts: mutexes(host), Secret: 9, Peers: peers, ClockDrift: 2},
		"patience":          {Hosts: mutexes(host), Secret: 9, Peers: peers, Patience: lease.Patience{First: time.Hour}},
	} {
		n, err := node.Start(c)
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Whatever a client sends after its hello, a server of Sigma goes on, with tokens as a service has
// them, and another client gets the lock.
func FuzzFrames(f *testing.F) {
	host := node.HostOf(sigma.Algorithm)
	request := message(1, 1, "a", 0, 9)
	f.Add(request(nil))
	f.Add(transport.Item{Type: transport.CallItem, Seq: 1, Body: []byte("?")}.Append(request(nil)))
	f.Add(transport.Item{Type: transport.ByeItem}.Append(request(nil)))
	f.Add(message(2, 1, "a", 1, 9, 9, 9)(request(nil)))
	f.Add(message(1, 1, "a", sigma.Check, 9)(nil))
	for _, time := range []uint64{0, 1<<62 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 2} {
		from := func(kind uint8, rest ...byte) []byte {
			return append(binary.AppendUvarint([]byte{kind}, time), rest...)
		}
		asks := message(1, 1, "a", from(sigma.Request, 0, byte(sigma.Again))...)(nil)
		f.Add(asks)
		f.Add(message(2, 1, "a", from(sigma.Release)...)(asks))
		f.Add(message(2, 1, "a", from(sigma.Yield, 1)...)(request(nil)))
		f.Add(message(2, 1, "a", binary.AppendUvarint([]byte{sigma.SetToken, 9, 1}, time)...)(request(nil)))
	}
	var network memory
	l, err := network.Listen("s1")
	must(f, err)
	start(f, node.Config{
		System: slots.System(1, slots.DefaultClockBound),
		Hosts:  mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}}, Listener: l,
		Call: func(from protocol.ID, request []byte) []byte { return request },
	})
	honest := start(f, node.Config{
		System: slots.System(1, slots.DefaultClockBound),
		Secret: node.NewSecret(), Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}},
		Dial: func(ctx context.Context, p node.Peer) (net.Conn, error) { return network.Dial(ctx, p.Addr) },
	})
	must(f, honest.WaitAlive(f.Context(), 1))
	u := newProbe()
	last := uint64(0)
	h := greeting
	h.Kinds = runs("sigma")
	f.Fuzz(func(t *testing.T, items []byte) {
		conn, err := network.Dial(t.Context(), "s1")
		must(t, err)
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		h.Session++
		s := &stranger{nil, conn}
		_, err = conn.Write(frame(h.Append))
		must(t, err)
		welcome, err := s.hear()
		must(t, err)
		if welcome[0].Type != transport.WelcomeItem {
			t.Fatalf("item of type %d", welcome[0].Type)
		}
		go io.Copy(io.Discard, conn)
		// An error says that the server has seen enough.
		_, _ = conn.Write(frame(func(b []byte) []byte { return append(b, items...) }))
		_, _ = conn.Write(frame(transport.Item{Type: transport.ByeItem}.Append))
		must(t, honest.Try(node.Mutex, "a", u, false))
		select {
		case token := <-u.crit:
			if now := uint64(time.Now().UnixNano()); token <= last || token > now+uint64(10*slots.DefaultClockBound) {
				t.Errorf("token %d after %d, at %d", token, last, now)
			}
			last = token
		case <-time.After(patience): // more than a lease
			t.Fatal("nobody else gets the lock any more")
		}
		honest.Exit("a")
		<-u.rem
	})
}
