package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// startCluster starts four servers whose clocks are as good as one.
func startCluster(t testing.TB) (*server.Local, poundlock.Config) {
	t.Helper()
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t), ClockBound: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	c := poundlock.Config{ClockBound: time.Millisecond, QuorumWait: time.Second}
	for _, s := range l.Servers() {
		c.Servers = append(c.Servers, poundlock.Server(s))
	}
	return l, c
}

// A daemon is an API on a port of its own, with a client of its own.
type daemon struct {
	url  string
	addr string
	stop func() error // once
}

func startDaemon(t testing.TB, c poundlock.Config, l api.Limits) *daemon {
	t.Helper()
	client, err := poundlock.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.New(api.Config{Client: client, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := api.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(s.Serve(ctx, listener, nil, 10*time.Second), client.Close()) }()
	d := &daemon{addr: listener.Addr().String(), url: "http://" + listener.Addr().String()}
	d.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// httpClient speaks HTTP/1.1, or h2c alone. Its connections end with the test.
func httpClient(t testing.TB, h2c bool) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!h2c)
	tr.Protocols.SetUnencryptedHTTP2(h2c)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A protocol is a way to call the API.
type protocol struct {
	name    string
	h2c     bool
	options []connect.ClientOption
}

var protocols = []protocol{
	{"gRPC", true, []connect.ClientOption{connect.WithGRPC()}},
	{"gRPC-Web", false, []connect.ClientOption{connect.WithGRPCWeb()}},
	{"Connect, JSON, HTTP/1.1", false, []connect.ClientOption{connect.WithProtoJSON()}},
	{"Connect, protobuf, h2c", true, nil},
}

func (p protocol) client(t testing.TB, d *daemon) pb.LockServiceClient {
	return pb.NewLockServiceClient(httpClient(t, p.h2c), d.url, p.options...)
}

func open(t testing.TB, c pb.LockServiceClient, lease time.Duration) string {
	t.Helper()
	r, err := c.OpenSession(t.Context(), &pb.OpenSessionRequest{Label: "test", LeaseMs: uint32(lease.Milliseconds())})
	if err != nil {
		t.Fatal(err)
	}
	return r.SessionId
}

func wantFailure(t testing.TB, what string, err error, code connect.Code, reason pb.Reason) {
	t.Helper()
	got := pb.Reason_REASON_UNSPECIFIED
	var failed *connect.Error
	if errors.As(err, &failed) {
		for _, d := range failed.Details() {
			if v, err := d.Value(); err == nil {
				if f, ok := v.(*pb.Failure); ok {
					got = f.Reason
				}
			}
		}
	}
	if err == nil || connect.CodeOf(err) != code || got != reason {
		t.Errorf("%s: got %v (%v), want %v with %v", what, err, got, code, reason)
	}
}

// TestProtocols: every call in every protocol, on one port.
func TestProtocols(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	var last uint64
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			c, ctx := p.client(t, d), t.Context()
			id := open(t, c, 10*time.Second)
			events, err := c.Watch(ctx, &pb.WatchRequest{SessionId: id})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()

			r, err := c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"b", "a"}, GrantId: "mine"})
			if err != nil {
				t.Fatal(err)
			}
			g := r.Grant
			if fmt.Sprint(g.Names) != "[a b]" || len(g.Tokens) != 2 || g.GrantId != "mine" || g.State != pb.State_STATE_HELD {
				t.Errorf("got %v", g)
			}
			if g.Tokens[0] <= last {
				t.Errorf("token %d of a after %d", g.Tokens[0], last)
			}
			last = g.Tokens[0]
			if g.CertainMs == 0 || g.CertainMs > 10_000 {
				t.Errorf("certain for %d ms", g.CertainMs)
			}
			again, err := c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a", "b"}, GrantId: "mine"})
			if err != nil || again.Grant.Tokens[0] != g.Tokens[0] {
				t.Errorf("repeated: %v, %v", again, err)
			}
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a"}, GrantId: "mine"})
			wantFailure(t, "other names", err, connect.CodeInvalidArgument, pb.Reason_REASON_OTHER_NAMES)

			holder, err := c.Holder(ctx, &pb.HolderRequest{Name: "b"})
			if err != nil || !holder.Held || holder.Token != 0 && holder.Token != g.Tokens[1] {
				t.Errorf("holder: %v, %v, want token %d or 0", holder, err, g.Tokens[1])
			}
			other := open(t, c, 10*time.Second)
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: other, Names: []string{"a"}, Try: true})
			wantFailure(t, "try", err, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED)
			wait := uint32(20)
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: other, Names: []string{"a"}, WaitMs: &wait})
			wantFailure(t, "wait", err, connect.CodeDeadlineExceeded, pb.Reason_REASON_NOT_ACQUIRED)

			renewed, err := c.RenewSession(ctx, &pb.RenewSessionRequest{SessionId: id})
			if err != nil || renewed.LeaseMs != 10_000 || renewed.CertainMs == 0 {
				t.Errorf("renew: %v, %v", renewed, err)
			}
			status, err := c.Status(ctx, &pb.StatusRequest{SessionId: id})
			if err != nil || len(status.Grants) != 1 || status.Grants[0].State != pb.State_STATE_HELD || status.Label != "test" {
				t.Errorf("status: %v, %v", status, err)
			}
			holder, err = c.Holder(ctx, &pb.HolderRequest{Name: "nobody's"})
			if err != nil || holder.Held {
				t.Errorf("holder of nothing: %v, %v", holder, err)
			}
			for range 2 { // again, as after a network error
				if _, err := c.Release(ctx, &pb.ReleaseRequest{SessionId: id, GrantId: "mine"}); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a", "b"}, GrantId: "mine"})
			wantFailure(t, "an id that is used up", err, connect.CodeFailedPrecondition, pb.Reason_REASON_RELEASED)
			_, err = c.Release(ctx, &pb.ReleaseRequest{SessionId: id, GrantId: "another"})
			wantFailure(t, "release what never was", err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_GRANT)

			if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: other}); err != nil {
				t.Error(err)
			}
			if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: id}); err != nil {
				t.Error(err)
			}
			var states []pb.State
			for events.Receive() {
				if g := events.Msg().Grant; g != nil && (len(states) == 0 || states[len(states)-1] != g.State) {
					states = append(states, g.State)
				}
			}
			if err := events.Err(); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			if n := len(states); n == 0 || states[n-1] != pb.State_STATE_RELEASED {
				t.Errorf("states %v", states)
			}
			_, err = c.Status(ctx, &pb.StatusRequest{SessionId: id})
			wantFailure(t, "a closed session", err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_SESSION)

			healthy := grpchealth.NewClient(httpClient(t, p.h2c), d.url, p.options...)
			h, err := healthy.Check(ctx, &grpchealth.CheckRequest{Service: pb.LockServiceName})
			if err != nil || h.Status != grpchealth.StatusServing {
				t.Errorf("health: %v, %v", h, err)
			}
		})
	}
}

// TestExclusion: clients of two daemons and of the library, one lock.
func TestExclusion(t *testing.T) {
	_, config := startCluster(t)
	one, two := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	library, err := poundlock.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	const rounds = 10
	var mu sync.Mutex // guards what follows, and is never contended under the lock
	inside, entries, last := 0, 0, uint64(0)
	section := func(token uint64) {
		mu.Lock()
		defer mu.Unlock()
		if inside++; inside != 1 {
			t.Errorf("%d are inside", inside)
		}
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
		entries++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		inside--
	}
	var all sync.WaitGroup
	for i, d := range []*daemon{one, one, two} {
		c := protocols[i].client(t, d)
		all.Go(func() {
			id := open(t, c, 10*time.Second)
			for range rounds {
				r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"counter"}})
				if err != nil {
					t.Error(err)
					return
				}
				section(r.Grant.Tokens[0])
				if _, err := c.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: r.Grant.GrantId}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			err := library.Mutex("counter").Do(t.Context(), func(_ context.Context, g poundlock.Grant) error {
				section(g.Token())
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if entries != 4*rounds {
		t.Errorf("%d entries, want %d", entries, 4*rounds)
	}
}

// post sends JSON as curl does and returns the answer.
func post(t testing.TB, c *http.Client, url, method, body string) (int, map[string]any) {
	t.Helper()
	r, err := c.Post(url+"/poundlock.v1.LockService/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s: %s: %v", method, text, err)
	}
	return r.StatusCode, answer
}

// TestDeadClient: a client that opened a session and took a lock, and is never
// heard of again, is freed after its lease and not before.
func TestDeadClient(t *testing.T) {
	_, config := startCluster(t)
	d, other := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	const lease = 500 * time.Millisecond
	dead := httpClient(t, false)
	_, opened := post(t, dead, d.url, "OpenSession", fmt.Sprintf(`{"lease_ms": %d}`, lease.Milliseconds()))
	began := time.Now() // the lease begins when the last call has ended, which is later
	if code, answer := post(t, dead, d.url, "Lock", fmt.Sprintf(`{"session_id": %q, "names": ["a"]}`, opened["session_id"])); code != 200 {
		t.Fatal(answer)
	}
	dead.CloseIdleConnections()
	for _, next := range []*daemon{other, d} {
		c := protocols[0].client(t, next)
		id := open(t, c, 0)
		if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < lease {
			t.Errorf("the next one is in after %v, before the lease of %v is over", waited, lease)
		}
		if _, err := c.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: id}); err != nil {
			t.Error(err)
		}
	}
}

// TestCutStream: a client whose stream is cut for half a lease, and comes back,
// keeps its lock; when it does not come back the lock is freed.
func TestCutStream(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	const lease = 600 * time.Millisecond
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := p.client(t, d)
			id := open(t, c, lease)
			stream := func() (cut func()) {
				// A proxy of its own, so that what is cut is the connection.
				proxy := startProxy(t, d.addr)
				events, err := p.client(t, &daemon{url: "http://" + proxy.addr}).Watch(context.Background(), &pb.WatchRequest{SessionId: id})
				if err != nil {
					t.Fatal(err)
				}
				if !events.Receive() {
					t.Fatal(events.Err())
				}
				return func() {
					proxy.cut()
					for events.Receive() {
					}
					events.Close()
				}
			}
			cut := stream()
			name := "cut " + p.name
			if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{name}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * lease / 2) // no call: the stream alone
			cut()
			time.Sleep(lease / 2)
			cut = stream()
			time.Sleep(3 * lease / 2)
			r, err := c.Status(t.Context(), &pb.StatusRequest{SessionId: id})
			if err != nil || len(r.Grants) != 1 || r.Grants[0].State != pb.State_STATE_HELD {
				t.Fatalf("after a cut of half a lease: %v, %v", r, err)
			}
			began := time.Now()
			cut()
			other := open(t, c, 0)
			if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: other, Names: []string{name}}); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited < lease {
				t.Errorf("freed %v after the cut, before the lease of %v is over", waited, lease)
			}
			if _, err := c.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: other}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A proxy forwards connections until it is cut.
type proxy struct {
	addr string
	cut  func()
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	conns := []io.Closer{l}
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, in, out)
			mu.Unlock()
			for _, x := range [][2]net.Conn{{in, out}, {out, in}} {
				all.Go(func() {
					io.Copy(x[0], x[1])
					x[0].Close()
					x[1].Close()
				})
			}
		}
	})
	p := &proxy{addr: l.Addr().String()}
	p.cut = sync.OnceFunc(func() {
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	t.Cleanup(p.cut)
	return p
}

// TestLost: servers that go take the lock along; its client is told at each call.
func TestLost(t *testing.T) {
	l, config := startCluster(t)
	config.Lease = time.Second
	d := startDaemon(t, config, api.Limits{})
	c := protocols[0].client(t, d)
	id := open(t, c, 30*time.Second)
	events, err := c.Watch(t.Context(), &pb.WatchRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := l.Stop(i); err != nil {
			t.Fatal(err)
		}
	}
	for events.Receive() {
		if g := events.Msg().Grant; g != nil && g.State == pb.State_STATE_LOST {
			if g.Reason == "" {
				t.Error("lost without a reason")
			}
			break
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	renewed, err := c.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
	if err != nil || len(renewed.LostGrantIds) != 1 || renewed.CertainMs != 0 {
		t.Errorf("renew: %v, %v", renewed, err)
	}
	for range 2 {
		_, err = c.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: r.Grant.GrantId})
		wantFailure(t, "release", err, connect.CodeAborted, pb.Reason_REASON_LOST)
	}
	_, err = c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"b"}})
	wantFailure(t, "no quorum", err, connect.CodeUnavailable, pb.Reason_REASON_NO_QUORUM)
	h, err := grpchealth.NewClient(httpClient(t, true), d.url, connect.WithGRPC()).Check(t.Context(), &grpchealth.CheckRequest{})
	if err != nil || h.Status != grpchealth.StatusNotServing {
		t.Errorf("health: %v, %v", h, err)
	}
}

// TestStop: a daemon that ends waits for its promises, lets clients release
// meanwhile, and leaves nothing behind.
func TestStop(t *testing.T) {
	_, config := startCluster(t)
	d, other := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	c := protocols[0].client(t, d)
	id := open(t, c, time.Minute)
	r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.Watch(t.Context(), &pb.WatchRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- d.stop() }()
	for events.Receive() {
	}
	wantFailure(t, "stream", events.Err(), connect.CodeUnavailable, pb.Reason_REASON_SHUTTING_DOWN)
	_, err = c.OpenSession(t.Context(), &pb.OpenSessionRequest{})
	wantFailure(t, "open", err, connect.CodeUnavailable, pb.Reason_REASON_SHUTTING_DOWN)
	_, err = c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"b"}})
	wantFailure(t, "lock", err, connect.CodeUnavailable, pb.Reason_REASON_SHUTTING_DOWN)
	try := protocols[1].client(t, other)
	_, err = try.Lock(t.Context(), &pb.LockRequest{SessionId: open(t, try, 0), Names: []string{"a"}, Try: true})
	wantFailure(t, "try elsewhere", err, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED)
	if _, err := c.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: r.Grant.GrantId}); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
