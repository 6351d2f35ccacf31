// Package door is what the HTTP ports of a server have in common: who may come in, and
// what they say to those who are at the wrong door.
package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// Guard refuses requests for other hosts than this machine, with status 403. It is for
// ports on loopback without TLS: a page of anybody's, open in a browser here, reaches them
// once the name of its own host leads to loopback ("DNS rebinding"), but the browser still
// sends that name. names are further ones that lead here.
func Guard(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CheckHost(r.Host, names); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// CheckHost says why a request for host, with or without a port, is not for this machine.
func CheckHost(host string, names []string) error {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || slices.Contains(names, name) {
		return nil // a browser always names a host
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("a request for host %.80q: this port is on loopback and without TLS, "+
		"and is asked for as localhost, by a loopback address or by its configured name", host)
}

// Names are the names beside localhost under which a listener on loopback without TLS, at
// the configured address addr, is asked for; ok says that it is one.
func Names(l net.Listener, addr string, secure bool) (names []string, ok bool) {
	tcp, isTCP := l.Addr().(*net.TCPAddr)
	if secure || !isTCP || !tcp.IP.IsLoopback() {
		return nil, false
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return nil, true
	}
	return []string{strings.ToLower(strings.TrimSuffix(host, "."))}, true
}

// Serve serves at l until ctx ends, and then waits for end, which may be nil. A client that has not read its answer
// a while later is cut off.
func Serve(ctx context.Context, h *http.Server, l net.Listener, while time.Duration, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
		defer func() { <-ended }() // the listener is closed then
	case err = <-ended:
	}
	if end != nil {
		err = errors.Join(err, end())
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), while)
	defer cancel()
	if h.Shutdown(last) != nil {
		_ = h.Close()
	}
	return err
}

// About answers GET / with a text, and every other path that nothing answers with where
// that is.
func About(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		switch {
		case r.URL.Path != "/":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "nothing is at %.80q: GET / says what is here\n", r.URL.Path)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.WriteHeader(http.StatusMethodNotAllowed)
			io.WriteString(w, "want GET\n")
		default:
			io.WriteString(w, text)
		}
	})
}

// A Conn of an HTTP port tells a client of the lock service that this is the wrong port. To
// a server of HTTP its hello would be a request that does not end.
type Conn struct {
	net.Conn
	once sync.Once
	err  error
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.once.Do(func() {
			if p[0] == 0 { // the length of a frame, which no request and no TLS record begins with
				c.err = fmt.Errorf("%v speaks the protocol of locks here", c.RemoteAddr())
				c.refuse()
			}
		})
	}
	if c.err != nil {
		return 0, c.err
	}
	return n, err
}

// refuse answers in the language of the other end.
func (c *Conn) refuse() {
	b := transport.Refuse{
		What: "this port speaks HTTP: it is that of --api or --admin, and locks are at --listen, or the server's address in --servers",
	}.Append(transport.AppendHeader(nil, 0))
	transport.EndFrame(b)
	c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write(b) // whoever does not take it is cut
}

// A Listener gives Conns.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}
