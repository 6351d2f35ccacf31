package api_test

import (
	"context"
	"encoding/json"
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

	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

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
	t.Parallel()
	_, config := startCluster(t)
	d, other := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	timely(t, 500*time.Millisecond, func(t *testing.T, lease time.Duration) bool { return deadClient(t, d, other, lease) })
}

func deadClient(t *testing.T, d, other *daemon, lease time.Duration) (late bool) {
	t.Helper()
	dead := httpClient(t, false)
	opening := time.Now()
	_, opened := post(t, dead, d.url, "OpenSession", fmt.Sprintf(`{"lease_ms": %d}`, lease.Milliseconds()))
	began := time.Now() // the lease begins when the last call has ended, which is later
	if code, answer := post(t, dead, d.url, "Lock", fmt.Sprintf(`{"session_id": %q, "names": ["a"]}`, opened["session_id"])); code != 200 {
		if time.Since(opening) >= lease {
			return true
		}
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
	return false
}

// TestCutStream: a client whose stream is cut for half a lease, and comes back,
// keeps its lock; when it does not come back the lock is freed.
func TestCutStream(t *testing.T) {
	t.Parallel()
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			timely(t, 600*time.Millisecond, func(t *testing.T, lease time.Duration) bool { return cutStream(t, d, p, lease) })
		})
	}
}

func cutStream(t *testing.T, d *daemon, p protocol, lease time.Duration) (late bool) {
	t.Helper()
	c := p.client(t, d)
	since := time.Now() // the session has no stream
	id := open(t, c, lease)
	// stream returns nil if the session has had none for longer than its lease.
	stream := func() (cut func()) {
		// A proxy of its own, so that what is cut is the connection.
		proxy := startProxy(t, d.addr)
		events, err := p.client(t, &daemon{url: "http://" + proxy.addr}).Watch(context.Background(), &pb.WatchRequest{SessionId: id})
		if err != nil {
			t.Fatal(err)
		}
		if !events.Receive() {
			events.Close()
			if time.Since(since) >= lease {
				return nil
			}
			t.Fatal(events.Err())
		}
		return func() {
			since = time.Now()
			proxy.cut()
			for events.Receive() {
			}
			events.Close()
		}
	}
	cut := stream()
	if cut == nil {
		return true
	}
	name := "cut " + p.name
	if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{name}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * lease / 2) // no call: the stream alone
	cut()
	time.Sleep(lease / 2)
	if cut = stream(); cut == nil {
		return true
	}
	time.Sleep(3 * lease / 2)
	r, err := c.Status(t.Context(), &pb.StatusRequest{SessionId: id})
	if err != nil || len(r.Grants) != 1 || r.Grants[0].State != pb.State_STATE_HELD {
		t.Fatalf("after a cut of half a lease: %v, %v", r, err)
	}
	cut()
	other := open(t, c, 0)
	if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: other, Names: []string{name}}); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(since); waited < lease {
		t.Errorf("freed %v after the cut, before the lease of %v is over", waited, lease)
	}
	if _, err := c.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: other}); err != nil {
		t.Error(err)
	}
	return false
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
	t.Parallel()
	l, config := startCluster(t)
	config.Lease, config.QuorumWait = time.Second, time.Second
	d := startDaemon(t, config, api.Limits{})
	health := grpchealth.NewClient(httpClient(t, true), d.url, connect.WithGRPC())
	eventually(t, "it has a quorum", func() bool {
		h, err := health.Check(t.Context(), &grpchealth.CheckRequest{})
		return err == nil && h.Status == grpchealth.StatusServing
	})
	c := protocols[0].client(t, d)
	id := open(t, c, patience)
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
	h, err := health.Check(t.Context(), &grpchealth.CheckRequest{})
	if err != nil || h.Status != grpchealth.StatusNotServing {
		t.Errorf("health: %v, %v", h, err)
	}
}

// TestStop: a daemon that ends waits for its promises, lets clients release
// meanwhile, and leaves nothing behind.
func TestStop(t *testing.T) {
	t.Parallel()
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
