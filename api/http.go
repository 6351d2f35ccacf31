package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/door"
	"github.com/poundlock/poundlock/internal/limit"
)

// Handler serves the API and grpc.health.v1.Health, within the Limits.
func (s *Service) Handler() http.Handler { return s.handler() }

func (s *Service) handler() *bounded {
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxBody),
		connect.WithCodec(snakeJSON{"json"}),
		connect.WithCodec(snakeJSON{"json; charset=utf-8"}),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, what any) error {
			s.log.Error("a call panicked", "procedure", spec.Procedure, "panic", what)
			return connect.NewError(connect.CodeInternal, errors.New("internal error"))
		}),
	}
	mux := http.NewServeMux()
	mux.Handle(pb.NewLockServiceHandler(s, options...))
	mux.Handle(grpchealth.NewHandler(s, options...))
	mux.Handle("/", door.About(about))
	return &bounded{
		next:   mux,
		errors: connect.NewErrorWriter(options...),
		calls:  newPlaces("calls and streams in progress", s.limits.Calls),
		bodies: newPlaces("requests that are being read", s.limits.Bodies),
		slow:   s.limits.SlowClient,
	}
}

// about is what GET / answers.
const about = `This is the API of a server of the distributed lock service Poundlock: gRPC,
gRPC-Web, Connect, and HTTP with JSON.

POST /poundlock.v1.LockService/CALL  OpenSession, Lock, Release, ..
POST /grpc.health.v1.Health/Check    whether a quorum of servers can be reached

docs/api.md of Poundlock tells how to use it, and its schema is
api/proto/poundlock/v1/lock.proto. The command line and Go programs talk to
another port: that of --servers.
`

// bounded limits what calls can make this process keep, and how long it waits for
// a client that sends its request, or reads the answer, slowly or never.
type bounded struct {
	next   http.Handler
	errors *connect.ErrorWriter
	calls  *places // calls in progress
	bodies *places // bodies being read
	slow   time.Duration

	guarded bool     // requests are for this machine, by one of names
	names   []string // see door.Names
}

// ServeHTTP implements http.Handler.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	w = &deadlines{w, c, b.slow}
	// Also for what is refused before its body is read: net/http reads the rest of it.
	if err := supported(c.SetReadDeadline(time.Now().Add(b.slow))); err != nil {
		b.refuse(w, r, connect.NewError(connect.CodeInternal, err))
		return
	}
	if err, ok := r.Context().Value(refusalKey{}).(error); ok {
		w.Header().Set("Connection", "close")
		b.refuse(w, r, err)
		return
	}
	if b.guarded {
		if err := door.CheckHost(r.Host, b.names); err != nil {
			b.refuse(w, r, connect.NewError(connect.CodePermissionDenied, err))
			return
		}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	call, err := b.calls.enter(limit.Host(r.RemoteAddr), false, cancel)
	if err != nil {
		b.refuse(w, r, err)
		return
	}
	defer call.Leave()
	r = r.WithContext(ctx)
	body, err := b.read(c, r)
	if err != nil {
		b.refuse(w, r, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.next.ServeHTTP(w, r)
}

// read reads a whole body: every call has one message. It stops after what is too
// long; the next handler says so.
func (b *bounded) read(c *http.ResponseController, r *http.Request) ([]byte, error) {
	var given atomic.Pointer[error] // why the place was given up
	place, err := b.bodies.enter(limit.Host(r.RemoteAddr), false, func(why error) {
		given.Store(&why)
		_ = c.SetReadDeadline(time.Unix(1, 0)) // where that is not supported the body is no connection's
	})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1024))
	place.Leave()
	if why := given.Load(); why != nil {
		return nil, *why
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the body did not come within %v: %w", b.slow, err))
	}
	if err := supported(c.SetReadDeadline(time.Time{})); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return body, nil
}

// refuse answers in the protocol of the request, if it is one that we speak.
func (b *bounded) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor == 1 {
		// Otherwise net/http waits for the rest of the body before it answers, and again
		// before it closes the connection.
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	}
	if !b.errors.IsSupported(r) {
		status := http.StatusServiceUnavailable
		if connect.CodeOf(err) == connect.CodePermissionDenied {
			status = http.StatusForbidden
		}
		http.Error(w, err.Error(), status)
		return
	}
	_ = b.errors.Write(w, r, err) // who does not read the refusal is cut
}

// deadlines gives each write the time that a slow client has.
type deadlines struct {
	http.ResponseWriter
	c    *http.ResponseController
	slow time.Duration
}

func (d *deadlines) Write(p []byte) (n int, err error) {
	err = d.within(func() error {
		n, err = d.ResponseWriter.Write(p)
		return err
	})
	return n, err
}

// Flush implements http.Flusher.
func (d *deadlines) Flush() { _ = d.within(d.c.Flush) }

// Unwrap is for http.ResponseController.
func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deadlines) within(write func() error) error {
	if err := supported(d.c.SetWriteDeadline(time.Now().Add(d.slow))); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return supported(d.c.SetWriteDeadline(time.Time{}))
}

// supported forgives a ResponseWriter without a connection, such as that of a test.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Protocols are those of HTTP for the NextProtos of a tls.Config. gRPC needs the
// first.
var Protocols = []string{"h2", "http/1.1"}

// Serve serves the API at l until ctx ends, with TLS unless config is nil, which
// should have Protocols. Then it shuts down, which takes grace at most: see
// Shutdown.
func (s *Service) Serve(ctx context.Context, l net.Listener, config *tls.Config, grace time.Duration) error {
	handler := s.handler()
	handler.names, handler.guarded = door.Names(l, s.addr, config != nil)
	l = bound(l, s.limits.Conns, s.limits.SlowClient)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	h := &http.Server{
		Handler:           handler,
		ConnState:         noteState,
		ConnContext:       noteRefusal,
		ReadHeaderTimeout: s.limits.SlowClient,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250,
			SendPingTimeout:      s.limits.SlowClient,
			PingTimeout:          s.limits.SlowClient,
			WriteByteTimeout:     s.limits.SlowClient,
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // clients can cause as much as they like
	}
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetHTTP2(true)
	h.Protocols.SetUnencryptedHTTP2(true)
	return door.Serve(ctx, h, l, time.Second, func() error {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return s.Shutdown(leaving) // clients release what they hold
	})
}
