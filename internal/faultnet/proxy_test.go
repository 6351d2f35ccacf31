package faultnet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// A target answers each connection with handle, until the test ends.
func target(t *testing.T, addr string, handle func(net.Conn)) string {
	t.Helper()
	l, err := transport.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				handle(c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	if l.Addr().Network() == "unix" {
		return addr
	}
	return l.Addr().String()
}

func echo(c net.Conn) { io.Copy(c, c) }

func start(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := transport.Dial(t.Context(), "", p.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// trip is how long an echo of one byte takes.
func trip(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// quiet fails the test when something comes.
func quiet(t *testing.T, c net.Conn, d time.Duration) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(d))
	defer c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(make([]byte, 1))
	if ne := net.Error(nil); n != 0 || !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatalf("read %d bytes and %v while nothing should pass", n, err)
	}
}

func TestDelay(t *testing.T) {
	p := start(t, target(t, "127.0.0.1:0", echo))
	c := dial(t, p)
	// The best of some trips, and of more while it takes longer than it may: what else
	// the machine does makes none shorter.
	best := func(delay, most time.Duration) time.Duration {
		p.SetDelay(delay, 0)
		least := time.Hour
		for k := 0; k < 5 || least > most && k < 50; k++ {
			least = min(least, trip(t, c))
		}
		if least < 2*delay || least > most {
			t.Errorf("a round trip took %v with a delay of %v, want at most %v", least, delay, most)
		}
		return least
	}
	none := best(0, 10*time.Millisecond)
	one := best(20*time.Millisecond, 50*time.Millisecond)
	three := best(60*time.Millisecond, 132*time.Millisecond)
	t.Logf("round trips: %v without delay, %v with 20ms, %v with 60ms", none, one, three)
}

// Delays may be drawn, each way for itself.
func TestDraw(t *testing.T) {
	p := start(t, target(t, "127.0.0.1:0", echo))
	p.SetDelay(time.Hour, time.Hour)
	drawn := map[Direction]int{}
	p.Draw(func(d Direction) time.Duration {
		if drawn[d]++; d == Up {
			return 30 * time.Millisecond
		}
		return -time.Millisecond
	})
	if d := trip(t, dial(t, p)); d < 30*time.Millisecond {
		t.Errorf("a round trip took %v", d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if drawn[Up] != 1 || drawn[Down] != 1 {
		t.Errorf("drawn %v, want once each way", drawn)
	}
}

// A proxy lets one way through and not the other one, and a target may be elsewhere when it is dialed next.
func TestElsewhere(t *testing.T) {
	p := start(t, target(t, "127.0.0.1:0", func(c net.Conn) { c.Write([]byte("a")); io.Copy(io.Discard, c) }))
	first := func(c net.Conn) byte {
		t.Helper()
		b := make([]byte, 1)
		c.Write(b)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		return b[0]
	}
	p.SetCut(Both)
	p.SetCut(0)
	if got := first(dial(t, p)); got != 'a' {
		t.Errorf("heard %q", got)
	}
	p.SetTarget(target(t, "127.0.0.1:0", func(c net.Conn) { c.Write([]byte("b")); io.Copy(io.Discard, c) }))
	if got := first(dial(t, p)); got != 'b' {
		t.Errorf("heard %q of the new target", got)
	}
	p.SetCut(Down)
	c := dial(t, p)
	c.Write([]byte{1})
	quiet(t, c, 20*time.Millisecond)
}

// Many bytes under delay, jitter and back-pressure arrive complete and in order.
func TestStream(t *testing.T) {
	p := start(t, target(t, "127.0.0.1:0", echo))
	p.SetDelay(time.Millisecond, 3*time.Millisecond)
	c := dial(t, p)
	sent := make([]byte, 2<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() {
		c.Write(sent)
		c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes of %d came back, equal: %v, error: %v", len(got), len(sent), bytes.Equal(got, sent), err)
	}
}

// A sender that nobody reads is held back: what is on its way is bounded.
func TestBackPressure(t *testing.T) {
	p := start(t, target(t, "127.0.0.1:0", echo))
	c := dial(t, p)
	trip(t, c)
	p.Cut(Both)
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	sent := 0
	for b := make([]byte, 1<<16); ; {
		n, err := c.Write(b)
		if sent += n; err != nil {
			break
		}
		if sent > maxItems*maxRead+1<<24 { // and what the kernel holds
			t.Fatalf("%d bytes were taken during a cut", sent)
		}
	}
}

// A counter counts what is written to it.
type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return len(b), nil
}

func TestCut(t *testing.T) {
	for _, dir := range []Direction{Up, Down, Both} {
		var came atomic.Int64 // bytes at the target
		p := start(t, target(t, "127.0.0.1:0", func(c net.Conn) {
			io.Copy(c, io.TeeReader(c, counter{&came}))
		}))
		c := dial(t, p)
		trip(t, c)
		p.Cut(dir)
		c.Write([]byte{7})
		quiet(t, c, 50*time.Millisecond)
		if dir == Down {
			await(t, func() bool { return came.Load() == 2 })
		} else if up := came.Load(); up != 1 {
			t.Errorf("cut %d: %d bytes passed up", dir, up)
		}
		fresh := dial(t, p)
		fresh.Write([]byte{8})
		quiet(t, fresh, 50*time.Millisecond)
		p.Heal()
		for _, c := range []net.Conn{c, fresh} { // what was held arrives late
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatalf("cut %d, healed: %v", dir, err)
			}
		}
		trip(t, c)
	}
}

// Nobody hears of a closed connection during a cut.
func TestCutHidesEnds(t *testing.T) {
	ended := make(chan struct{}, 2)
	addr := target(t, "127.0.0.1:0", func(c net.Conn) {
		echo(c)
		ended <- struct{}{}
	})
	p := start(t, addr)
	c := dial(t, p)
	trip(t, c)
	p.Cut(Both)
	c.Close()
	select {
	case <-ended:
		t.Fatal("the end passed the cut")
	case <-time.After(50 * time.Millisecond):
	}
	p.Heal()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the end never arrived")
	}
	await(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.conns) == 0
	})
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to pass")
		}
	}
}

func TestBreak(t *testing.T) {
	served := make(chan error, 1)
	p := start(t, target(t, "127.0.0.1:0", func(c net.Conn) {
		_, err := io.Copy(c, c)
		served <- err
	}))
	c := dial(t, p)
	trip(t, c)
	p.Break()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v, not a reset", err)
	}
	if err := <-served; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server reads %v, not a reset", err)
	}
	trip(t, dial(t, p))
}

// A target that is away looks away, and one that comes back is found.
func TestTargetAway(t *testing.T) {
	path := filepath.Join(proctest.SocketDir(t), "s")
	p := start(t, "unix:"+path)
	c := dial(t, p)
	c.Write([]byte{1})
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes from nobody", n)
	}
	target(t, "unix:"+path, echo)
	trip(t, dial(t, p))
}

func TestUnix(t *testing.T) {
	dir := proctest.SocketDir(t)
	p := start(t, target(t, "unix:"+filepath.Join(dir, "s"), echo))
	p.SetDelay(5*time.Millisecond, 0)
	if d := trip(t, dial(t, p)); d < 10*time.Millisecond {
		t.Errorf("a round trip took %v", d)
	}
}

func TestErrors(t *testing.T) {
	if _, err := New("nowhere"); err == nil {
		t.Error("a target without a port is accepted")
	}
}
