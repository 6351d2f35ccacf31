package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

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
	c := poundlock.Config{ClockBound: time.Millisecond}
	for _, s := range l.Servers() {
		c.Servers = append(c.Servers, poundlock.Server(s))
	}
	return l, c
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// timely tells a story in which a client must call within a lease. A machine that stands
// still for so long makes it late, whatever the API does; the story says so, and is told
// again with twice the lease.
func timely(t *testing.T, lease time.Duration, tell func(t *testing.T, lease time.Duration) (late bool)) {
	t.Helper()
	for ; tell(t, lease); lease *= 2 {
		t.Logf("this machine was too slow for a lease of %v", lease)
		if lease > patience {
			t.Fatal("and would be for any other")
		}
	}
}

// A daemon is an API on a port of its own, with a client of its own.
type daemon struct {
	url  string
	addr string
	stop func() error // once
}

func startDaemon(t testing.TB, c poundlock.Config, l api.Limits) *daemon {
	t.Helper()
	c.Outlived = true
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

// http1 is one whose connections nobody pings.
var http1 = protocols[2]

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

// A service has no client whose locks servers may give away while callers act under them.
func TestClientOfService(t *testing.T) {
	servers := []poundlock.Server{{Name: "s1", Addr: "unix:/nowhere/s1"}}
	for _, x := range []struct {
		config poundlock.Config
		fits   bool
	}{
		{poundlock.Config{}, false},
		{poundlock.Config{Outlived: true}, true},
		{poundlock.Config{Outlived: true, EndWithConnection: true}, false},
	} {
		x.config.Servers, x.config.NoAmnesia = servers, true
		client, err := poundlock.Connect(x.config)
		if err != nil {
			t.Fatal(err)
		}
		s, err := api.New(api.Config{Client: client})
		if (err == nil) != x.fits || err != nil && !strings.Contains(err.Error(), "set Outlived") {
			t.Errorf("%+v: %v", x.config, err)
		}
		if err == nil {
			s.Shutdown(t.Context())
		}
		client.Close()
	}
}
