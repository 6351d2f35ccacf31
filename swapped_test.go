package poundlock_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

// Frames that overtake each other are a breach of the protocol: the sessions
// concerned end with an error that says so, and the lock is served by new ones once
// the network keeps the order again.
func TestSwappedSessions(t *testing.T) {
	var log proctest.Log // of both ends: each ends a session when it notices
	logger := slog.New(slog.NewTextHandler(&log, nil))
	cluster, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var swappers []*swapper
	c := poundlock.Config{Lease: time.Second, Log: logger}
	for _, s := range cluster.Servers() {
		w := startSwapper(t, s.Addr, 4)
		swappers = append(swappers, w)
		c.Servers = append(c.Servers, poundlock.Server{Name: s.Name, Addr: w.Addr().String()})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := poundlock.Dial(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for !strings.Contains(log.String(), "link:") { // its error about the order of messages
		attempt, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if g, err := client.Mutex("swapped").Lock(attempt); err == nil {
			g.Unlock()
		}
		cancel()
		if ctx.Err() != nil {
			t.Fatalf("no session ended because of the order of messages. Log:\n%s", &log)
		}
	}
	if text := log.String(); !strings.Contains(text, "session ended") {
		t.Errorf("an error without the end of a session. Log:\n%s", text)
	}
	for _, w := range swappers {
		w.end()
	}
	if _, err := client.Mutex("swapped").Lock(ctx); err != nil {
		t.Errorf("in order again: %v", err)
	}
}

// A swapper passes the connections of clients on to a target, and does what no network does: it has frames change
// places.
type swapper struct {
	net.Listener
	mu    sync.Mutex
	every int // so many frames one changes places with the next one; 0: none does
	conns []net.Conn
}

func startSwapper(t *testing.T, target string, every int) *swapper {
	t.Helper()
	l, err := transport.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &swapper{Listener: l, every: every}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := transport.Dial(context.Background(), "", target, nil)
			if err != nil {
				client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client, server)
			every := w.every
			w.mu.Unlock()
			wg.Go(func() { swap(server, client, every) })
			wg.Go(func() { swap(client, server, every) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.end()
		wg.Wait()
	})
	return w
}

// end closes all connections, and keeps the order in those to come.
func (w *swapper) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every = 0
	for _, c := range w.conns {
		c.Close()
	}
}

// swap copies whole frames. The k-th, the 2k-th and so on come after the one that follows them.
func swap(to, from net.Conn, k int) {
	defer to.Close()
	defer from.Close()
	var late []byte
	for count := 1; ; count++ {
		body, err := transport.ReadFrame(from, transport.MaxFrame)
		if err != nil {
			to.Write(late)
			return
		}
		frame := append(make([]byte, 4, 4+len(body)), body...)
		transport.EndFrame(frame)
		if k > 0 && count%k == 0 {
			late = frame
			continue
		}
		if _, err := to.Write(append(frame, late...)); err != nil {
			return
		}
		late = nil
	}
}

func TestSwap(t *testing.T) {
	from, in := net.Pipe()
	to, out := net.Pipe()
	go swap(in, to, 2)
	go func() {
		for i := range byte(6) {
			b := append(make([]byte, 4), i)
			transport.EndFrame(b)
			out.Write(b)
		}
		out.Close()
	}()
	var got []byte
	for {
		f, err := transport.ReadFrame(from, 10)
		if err != nil {
			break
		}
		got = append(got, f[0])
	}
	if want := []byte{0, 2, 1, 4, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("the frames came as %v, want %v", got, want)
	}
}
