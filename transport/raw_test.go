package transport_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// sockets returns the two ends of a connection of package net.
func sockets(t *testing.T, network string) (a, b net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, c := range []net.Conn{a, b} { // many writes find room for a part
		if err := c.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(16 << 10); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// TestRawBytes sends bytes in pieces of many sizes both ways at once, to a reader that
// is slow at times, so that both sides must wait.
func TestRawBytes(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			a, b := sockets(t, network)
			a, b = transport.Raw(a), transport.Raw(b)
			sums := make(chan [sha256.Size]byte, 4)
			errs := make(chan error, 4)
			for i, c := range []net.Conn{a, b} {
				go func() {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					sum := sha256.New()
					var err error
					for left := 4 << 20; left > 0 && err == nil; {
						p := make([]byte, min(left, 1+r.IntN(40<<10)))
						for j := range p {
							p[j] = byte(r.Uint32())
						}
						sum.Write(p)
						var n int
						if n, err = c.Write(p); err == nil && n != len(p) {
							err = io.ErrShortWrite
						}
						left -= len(p)
					}
					c.(interface{ CloseWrite() error }).CloseWrite()
					sums <- [sha256.Size]byte(sum.Sum(nil))
					errs <- err
				}()
				go func() {
					r := rand.New(rand.NewPCG(2, uint64(i)))
					sum := sha256.New()
					var err error
					for k := 0; err == nil; k++ {
						p := make([]byte, 1+r.IntN(40<<10))
						var n int
						n, err = c.Read(p)
						sum.Write(p[:n])
						if k%100 == 0 {
							time.Sleep(2 * time.Millisecond)
						}
					}
					if err == io.EOF {
						err = nil
					}
					sums <- [sha256.Size]byte(sum.Sum(nil))
					errs <- err
				}()
			}
			seen := map[[sha256.Size]byte]int{}
			for range 4 {
				seen[<-sums]++
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if len(seen) != 2 {
				t.Errorf("%d different streams were sent and received, want 2", len(seen))
			}
		})
	}
}

// TestRawLikeNet compares what a Raw connection returns with what one of package net does.
func TestRawLikeNet(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: Raw does nothing on " + runtime.GOOS)
	}
	type result struct {
		n       int
		text    string
		timeout bool
		broken  bool
		closed  bool
	}
	past := func() time.Time { return time.Now().Add(-time.Second) }
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	for _, test := range []struct {
		name string
		do   func(c, peer net.Conn) (int, error)
	}{
		{"nothing to read", func(c, _ net.Conn) (int, error) { return c.Read(nil) }},
		{"nothing to write", func(c, _ net.Conn) (int, error) { return c.Write(nil) }},
		{"read some", func(c, peer net.Conn) (int, error) {
			peer.Write([]byte("abc"))
			return c.Read(make([]byte, 10))
		}},
		{"read later", func(c, peer net.Conn) (int, error) {
			time.AfterFunc(10*time.Millisecond, func() { peer.Write([]byte("abc")) })
			return c.Read(make([]byte, 2))
		}},
		{"end", func(c, peer net.Conn) (int, error) {
			peer.Close()
			return c.Read(make([]byte, 10))
		}},
		{"reset", func(c, peer net.Conn) (int, error) {
			c.Write([]byte("unread"))
			peer.(*net.TCPConn).SetLinger(0)
			peer.Close()
			return c.Read(make([]byte, 10))
		}},
		{"write after a reset", func(c, peer net.Conn) (int, error) {
			peer.(*net.TCPConn).SetLinger(0)
			peer.Close()
			c.Read(make([]byte, 10))
			return c.Write([]byte("abc"))
		}},
		{"read past the deadline", func(c, peer net.Conn) (int, error) {
			peer.Write([]byte("abc"))
			c.SetReadDeadline(past())
			return c.Read(make([]byte, 10))
		}},
		{"read until the deadline", func(c, _ net.Conn) (int, error) {
			c.SetReadDeadline(soon())
			return c.Read(make([]byte, 10))
		}},
		{"write past the deadline", func(c, _ net.Conn) (int, error) {
			c.SetWriteDeadline(past())
			return c.Write([]byte("abc"))
		}},
		{"write until the deadline", func(c, _ net.Conn) (int, error) {
			p := make([]byte, 1000)
			for {
				c.SetWriteDeadline(soon())
				if _, err := c.Write(p); err != nil {
					return 0, err
				}
			}
		}},
		{"read when closed", func(c, _ net.Conn) (int, error) {
			c.Close()
			return c.Read(make([]byte, 10))
		}},
		{"write when closed", func(c, _ net.Conn) (int, error) {
			c.Close()
			return c.Write([]byte("abc"))
		}},
		{"read until closed", func(c, _ net.Conn) (int, error) {
			time.AfterFunc(10*time.Millisecond, func() { c.Close() })
			return c.Read(make([]byte, 10))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got [2]result
			for i := range got {
				c, peer := sockets(t, "tcp")
				if i == 1 {
					plain := c
					if c = transport.Raw(c); c == plain {
						t.Fatal("Raw returned the connection as it is")
					}
				}
				n, err := test.do(c, peer)
				r := result{n: n}
				if err != nil {
					r.text = regexp.MustCompile(`:\d+`).ReplaceAllString(err.Error(), "")
				}
				var timeout net.Error
				r.timeout = errors.As(err, &timeout) && timeout.Timeout() && errors.Is(err, os.ErrDeadlineExceeded)
				r.broken, r.closed = transport.BrokenOff(err), errors.Is(err, net.ErrClosed)
				got[i] = r
			}
			if got[0] != got[1] {
				t.Errorf("package net: %+v; raw: %+v", got[0], got[1])
			}
		})
	}
}

// TestRawPartialWrite says how much of a write that ends at a deadline was sent.
func TestRawPartialWrite(t *testing.T) {
	c, peer := sockets(t, "unix")
	c = transport.Raw(c)
	c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	var sent int
	var err error
	for err == nil {
		var n int
		n, err = c.Write(bytes.Repeat([]byte{1}, 30<<10))
		sent += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	c.Close()
	received, err := io.Copy(io.Discard, peer)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) || received != int64(sent) {
		t.Errorf("%d bytes were sent and %d received: %v", sent, received, err)
	}
}
