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
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// Handler serves the API and grpc.health.v1.Health, within the Limits.
func (s *Service) Handler() http.Handler {
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
	return &bounded{
		next:   mux,
		errors: connect.NewErrorWriter(options...),
		calls:  make(chan struct{}, s.limits.Calls),
		bodies: make(chan struct{}, s.limits.Bodies),
		slow:   s.limits.SlowClient,
	}
}

// bounded limits what calls can make this process keep, and how long it waits for
// a client that sends its request, or reads the answer, slowly or never.
type bounded struct {
	next   http.Handler
	errors *connect.ErrorWriter
	calls  chan struct{} // has a token for each call in progress
	bodies chan struct{} // for each body being read
	slow   time.Duration
}

// ServeHTTP implements http.Handler.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	w = &deadlines{w, c, b.slow}
	select {
	case b.calls <- struct{}{}:
		defer func() { <-b.calls }()
	default:
		b.refuse(w, r, failf(pb.Reason_REASON_LIMIT, "%d calls are in progress in this process", cap(b.calls)))
		return
	}
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
	select {
	case b.bodies <- struct{}{}:
		defer func() { <-b.bodies }()
	default:
		return nil, failf(pb.Reason_REASON_LIMIT, "%d requests are being read by this process", cap(b.bodies))
	}
	if err := supported(c.SetReadDeadline(time.Now().Add(b.slow))); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1024))
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
	if !b.errors.IsSupported(r) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
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
	l = limit(l, s.limits.Conns)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	h := &http.Server{
		Handler:           s.Handler(),
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
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, s.stop(h, grace))
}

// stop lets clients release what they hold, and then ends all connections.
func (s *Service) stop(h *http.Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.Shutdown(last) != nil {
		_ = h.Close() // whoever has not read its answer by now
	}
	return err
}
