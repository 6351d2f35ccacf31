package api_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/server"
)

// from is a client of HTTP/1.1 whose address is another one of this machine's.
func from(t testing.TB, ip string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	tr := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// dialFrom opens a connection from an address, and says something.
func dialFrom(t testing.TB, d *daemon, ip, text string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := dialer.DialContext(t.Context(), "tcp", d.addr)
	if err != nil {
		t.Skipf("this machine has no second address on loopback: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const halfBody = "POST /poundlock.v1.LockService/OpenSession HTTP/1.1\r\nHost: localhost\r\n" +
	"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"

// However many bodies one host sends by halves, others are served; and the host is told
// its address and the limit.
func TestHalfSentBodiesOfOneHost(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{Bodies: 20})
	var hostile []net.Conn
	for range 40 {
		hostile = append(hostile, dialFrom(t, d, "127.0.0.2", halfBody))
	}
	// Those beyond 20 are refused at once: nobody waits for their rest.
	var refused atomic.Int64
	for _, c := range hostile {
		go func() {
			b, _ := io.ReadAll(c)
			if text := string(b); strings.Contains(text, "429") && strings.Contains(text, "127.0.0.2 has 20 requests that are being read, and 20 are the limit") {
				refused.Add(1)
			}
		}()
	}
	eventually(t, "20 of 40 bodies are refused by name", func() bool { return refused.Load() >= 20 })
	for range 3 {
		if status, answer := post(t, from(t, "127.0.0.1"), d.url, "OpenSession", `{}`); status != http.StatusOK {
			t.Errorf("an honest host: %d, %v", status, answer)
		}
	}
	// One made room.
	eventually(t, "21 of 40 bodies are refused by name", func() bool { return refused.Load() >= 21 })
}

// Idle connections of one host keep nobody waiting, and the one beyond all is told so.
func TestIdleConnectionsOfOneHost(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{Conns: 20})
	for range 100 {
		dialFrom(t, d, "127.0.0.2", "")
	}
	for range 3 {
		if status, answer := post(t, from(t, "127.0.0.1"), d.url, "OpenSession", `{}`); status != http.StatusOK {
			t.Errorf("an honest host: %d, %v", status, answer)
		}
	}
	// Busy ones are not given up for one more of the same host.
	eventually(t, "a connection beyond the limit is refused by name", func() bool {
		dialFrom(t, d, "127.0.0.3", halfBody)
		c := dialFrom(t, d, "127.0.0.3", "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(patience))
		b, _ := io.ReadAll(c)
		return strings.Contains(string(b), "127.0.0.3 has ") && strings.Contains(string(b), "connections, and 20 are the limit")
	})
}

// Streams of one host give way to calls of others, and say why.
func TestCallsOfOneHost(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{Calls: 3})
	greedy := pb.NewLockServiceClient(from(t, "127.0.0.2"), d.url)
	if _, err := net.ListenPacket("udp", "127.0.0.2:0"); err != nil {
		t.Skip("this machine has no second address on loopback")
	}
	id := open(t, greedy, 0)
	var streams []*connect.ServerStreamForClient[pb.WatchResponse]
	for range 3 {
		s, err := greedy.Watch(t.Context(), &pb.WatchRequest{SessionId: id})
		if err != nil || !s.Receive() {
			t.Fatal(err, s.Err())
		}
		defer s.Close()
		streams = append(streams, s)
	}
	_, err := greedy.Status(t.Context(), &pb.StatusRequest{SessionId: id})
	wantFailure(t, "one more of the same host", err, connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
	open(t, pb.NewLockServiceClient(from(t, "127.0.0.1"), d.url), 0)
	for streams[0].Receive() {
	}
	wantFailure(t, "the oldest stream", streams[0].Err(), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
}

// On loopback without TLS only requests for this machine are served: a browser sends the
// name under which it found this port, whatever address that name leads to.
func TestHostOfRequests(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "LOCALHOST.:80": 200, "127.0.0.1:7080": 200, "127.9.9.9": 200, "[::1]:7080": 200, "[::1]": 200,
		"evil.example": 403, "evil.example:7080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"10.0.0.1": 403, "[2001:db8::1]:80": 403, "0.0.0.0": 403,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/poundlock.v1.LockService/OpenSession", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		answer, err := httpClient(t, false).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want || want == 403 && !strings.Contains(string(text), "host \\\""+host) {
			t.Errorf("host %q: %d %s, want %d", host, answer.StatusCode, text, want)
		}
	}
}

// GET / says what this port is, and a client of the lock service that it is the wrong one.
func TestWrongDoor(t *testing.T) {
	t.Parallel()
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	r, err := httpClient(t, false).Get(d.url)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != http.StatusOK || !strings.Contains(string(text), "POST /poundlock.v1.LockService/CALL") {
		t.Errorf("GET /: %d %s", r.StatusCode, text)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 80 { // with its end
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	wrong := poundlock.Config{Servers: []poundlock.Server{{Name: "s1", Addr: d.addr}}, NoAmnesia: true, QuorumWait: time.Second}
	_, err = poundlock.Dial(t.Context(), wrong)
	if err == nil || !strings.Contains(err.Error(), "this port speaks HTTP") {
		t.Errorf("a client of the lock service: %v", err)
	}
}

// Sessions of one process are told apart: in what they are refused with, and by all the
// cluster.
func TestSessionsAreNamed(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "ten seconds until names reach all servers")
	local, config := startCluster(t)
	config.Label = "server s1"
	d := startDaemon(t, config, api.Limits{})
	c, ctx := protocols[0].client(t, d), t.Context()
	var ids []string
	for _, label := range []string{"nightly backup of ann", "bob", ""} {
		s, err := c.OpenSession(ctx, &pb.OpenSessionRequest{Label: label})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.SessionId)
	}
	lock := func(i int, name string) error {
		_, err := c.Lock(ctx, &pb.LockRequest{SessionId: ids[i], Names: []string{name}, Try: true, GrantId: name})
		return err
	}
	if err := lock(0, "a"); err != nil {
		t.Fatal(err)
	}
	err := lock(1, "a")
	wantFailure(t, "bob's attempt", err, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED)
	if text := fmt.Sprint(err); !strings.Contains(text, `lock "a" not acquired: "nightly backup of ann" holds it`) || strings.Contains(text, "this client") {
		t.Error(text)
	}
	for _, id := range ids[:2] {
		_, err := c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a"}, WaitMs: new(uint32(50))})
		wantFailure(t, "a short wait", err, connect.CodeDeadlineExceeded, pb.Reason_REASON_NOT_ACQUIRED)
		if text := fmt.Sprint(err); !strings.HasSuffix(text, `: lock "a" not acquired: not within 50ms: "nightly backup of ann" holds it`) ||
			strings.Contains(text, "poundlock: ") {
			t.Error(text)
		}
	}
	if err := lock(2, "b"); err != nil {
		t.Fatal(err)
	}
	other := startDaemon(t, poundlock.Config{Servers: config.Servers, ClockBound: config.ClockBound, Label: "server s2"}, api.Limits{})
	for name, want := range map[string]string{
		"a": "server s1: nightly backup of ann", "b": "server s1: session " + ids[2][:8],
	} {
		h, err := protocols[0].client(t, other).Holder(ctx, &pb.HolderRequest{Name: name})
		if err != nil || h.Label != want {
			t.Errorf("the holder of %s by another server: %v, %v; want %s", name, h, err, want)
		}
	}
	o, err := server.Observe(server.AskConfig{Servers: local.Servers(), ClockBound: config.ClockBound})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	named := 0
	for _, l := range o.OneLock(ctx, o.Sessions(ctx), "a") {
		if l != nil && l.Holder != nil && l.Holder.Label == "server s1: nightly backup of ann" {
			named++
		}
	}
	if named < 3 {
		t.Errorf("%d of 4 servers name the holder", named)
	}
}
