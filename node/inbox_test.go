package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// still is a member that does nothing by itself.
func still(t *testing.T) *Node {
	t.Helper()
	n, err := newNode(Config{Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.cancel)
	return n
}

// Sessions take turns: those that have much to say wait for those that have little. A turn is bounded in messages and, where
// it is of many frames, in bytes; and what one session says keeps its order.
func TestTurns(t *testing.T) {
	n := still(t)
	n.loops = n.loops[:1]
	l := n.loops[0]
	l.steps.take()   // it is busy
	const rest = 100 // in the third frame of the loud ones
	loud, louder, quiet := newSession(n, 10, 1), newSession(n, 11, 1), newSession(n, 12, 1)
	names := map[*session]string{loud: "loud", louder: "louder", quiet: "quiet"}
	var mu sync.Mutex
	said, saying := map[*session]int{}, map[*session]int{}
	// say has a reader deliver messages as frames of a size, and returns when it waits, or is done.
	say := func(x *session, size int, counts ...int) {
		mu.Lock()
		saying[x]++
		mu.Unlock()
		go func() {
			for _, count := range counts {
				p := &parcel{size: size}
				for range count {
					mu.Lock()
					p.messages = append(p.messages, message{sess: x, name: fmt.Append(nil, said[x])})
					said[x]++
					mu.Unlock()
				}
				p.deliver(n)
			}
			mu.Lock()
			saying[x]--
			mu.Unlock()
		}()
	}
	// settle returns when every reader is done, or waits until a turn is taken.
	settle := func() {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			still := true
			mu.Lock()
			for x, k := range saying {
				l.inbox.mu.Lock()
				waits := l.inbox.turns[x] != nil && l.inbox.turns[x].taken != nil
				l.inbox.mu.Unlock()
				still = still && (k == 0 || waits)
			}
			mu.Unlock()
			if still {
				return
			}
		}
		t.Fatal("a reader neither waits nor ends")
	}
	var order []string // runs of messages of one session
	heard := map[*session]int{}
	round := func() {
		l.inbox.mu.Lock()
		batch := l.inbox.takeTurns(nil)
		l.inbox.mu.Unlock()
		run := 0
		for i, m := range batch {
			if want := fmt.Sprint(heard[m.sess]); string(m.name) != want {
				t.Errorf("%s: message %s comes before %s", names[m.sess], m.name, want)
			}
			heard[m.sess]++
			if run++; i+1 == len(batch) || batch[i+1].sess != m.sess {
				order = append(order, fmt.Sprint(names[m.sess], " ", run))
				run = 0
			}
		}
	}
	say(loud, 100, turnMessages, turnMessages, rest-turnMessages)
	settle()
	say(louder, turnBytes+1, turnMessages, 1) // whose frames are counted: its reader waits for each
	settle()
	for range 3 {
		say(quiet, 100, 1)
		settle()
		say(quiet, 100, 1) // goes with the other one: there is room in the turn
		settle()
		round()
		settle()
	}
	if heard[loud] != turnMessages+rest || heard[louder] != turnMessages+1 || heard[quiet] != 6 {
		t.Errorf("heard of %v", heard)
	}
	want := []string{
		"loud 64", "louder 64", "quiet 2",
		"loud 64", "louder 1", "quiet 2",
		"loud 36", "quiet 2",
	}
	if len(want) != len(order) {
		t.Fatalf("the rounds are %v, want %v", order, want)
	}
	// Which of two readers that were let go comes first is theirs to settle; nobody has two turns in a round.
	for _, round := range [][2]int{{0, 3}, {3, 6}, {6, 8}} {
		got, want := order[round[0]:round[1]], want[round[0]:round[1]]
		if round[0] > 0 {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("a round is %v, want %v", got, want)
		}
	}
	if len(l.inbox.line) != 0 || len(l.inbox.turns) != 0 {
		t.Errorf("%d turns are left", len(l.inbox.line))
	}
}

// Messages that wait in the line stay what they are while more frames come.
func TestFramesInTheLine(t *testing.T) {
	n := still(t)
	n.loops = n.loops[:1]
	l := n.loops[0]
	l.steps.take() // it is busy
	here, there := net.Pipe()
	c := newConn(n, here, bufio.NewReader(here), false, time.Minute)
	c.s = newSession(n, 10, 1)
	c.s.conn = c
	const frames = 5
	go func() {
		defer there.Close()
		for k := range frames {
			b := transport.AppendHeader(nil, 0)
			b = transport.Item{Type: transport.MessageItem, Seq: uint64(1 + k), Name: fmt.Append(nil, "lock ", k), Body: []byte{byte(k)}}.Append(b)
			transport.EndFrame(b)
			if _, err := there.Write(b); err != nil {
				t.Error(err)
			}
		}
	}()
	if err := c.read(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if c.memory != nil {
		t.Error("the memory of a frame in the line is kept for the next one")
	}
	_, _, messages := l.inbox.take(nil, nil, nil, false)
	for k := range frames {
		if len(messages) != frames || string(messages[k].name) != fmt.Sprint("lock ", k) || messages[k].body[0] != byte(k) {
			t.Fatalf("%d messages, among them %q %v", len(messages), messages[k].name, messages[k].body)
		}
	}
}

// The memory of a small frame that nobody looks at any more is that of the next one.
func TestFramesInOneMemory(t *testing.T) {
	n := still(t)
	frame := transport.AppendHeader(nil, 0)
	frame = transport.Item{Type: transport.AckItem, Seq: 0}.Append(frame)
	transport.EndFrame(frame)
	for size, keeps := range map[int]bool{len(frame): true, keepFrame + transport.LengthSize + 1: false} {
		b := append(slices.Clone(frame), make([]byte, size-len(frame))...) // what follows is wrong, and ends the session
		transport.EndFrame(b)
		here, there := net.Pipe()
		c := newConn(n, here, bufio.NewReader(here), true, time.Minute)
		c.s = newSession(n, 0, 1)
		c.s.conn = c
		go func() {
			defer there.Close()
			_, _ = there.Write(b)
		}()
		_ = c.read()
		if (c.memory != nil) != keeps {
			t.Errorf("after a frame of %d bytes %d are kept", size, cap(c.memory))
		}
	}
}

// What is taken needs no signal any more, and what is left has one: then a loop may sleep after each round.
func TestSignalOfWhatIsLeft(t *testing.T) {
	n := still(t)
	n.loops = n.loops[:1]
	l := n.loops[0]
	l.steps.take() // it is busy
	signaled := func() bool { return len(l.inbox.wake) > 0 }
	for k := range maxRound/turnMessages + 1 {
		p, sess := &parcel{size: 1}, newSession(n, protocol.ID(10+k), 1)
		for range turnMessages {
			p.messages = append(p.messages, message{sess: sess, name: []byte("a")})
		}
		p.deliver(n)
	}
	l.inbox.post(event{op: opExit})
	for round, want := range []int{maxRound, turnMessages} {
		if !signaled() {
			t.Fatalf("round %d: nothing says that there is one", round)
		}
		if _, queue, messages := l.inbox.take(nil, nil, nil, false); len(messages) != want || len(queue) != 1-round {
			t.Errorf("round %d: %d messages and %d events, want %d and %d", round, len(messages), len(queue), want, 1-round)
		}
	}
	if signaled() {
		t.Error("nothing is left, and something says that there is")
	}
}

// The memory of a burst goes with it.
func TestBurstIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := still(t)
		n.loops = n.loops[:1]
		l := n.loops[0]
		go l.run()
		defer l.inbox.post(event{op: opClose})
		post := func(k int) {
			l.inbox.mu.Lock()
			for range k {
				l.inbox.queue = append(l.inbox.queue, event{op: opDo, do: func(*loop) {}})
			}
			l.inbox.mu.Unlock()
			l.inbox.signal()
			synctest.Wait()
		}
		post(2 * keepQueue)
		for range 2 { // of which one is the loop's, and the other one the inbox's
			l.inbox.mu.Lock()
			if room := cap(l.inbox.queue); room > keepQueue {
				t.Errorf("there is memory for %d events, want %d at most", room, keepQueue)
			}
			l.inbox.mu.Unlock()
			post(1)
		}
	})
}
