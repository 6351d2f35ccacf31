package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestBadRequests: what cannot be is refused, and the message names the value.
func TestBadRequests(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	c := protocols[0].client(t, d)
	id := open(t, c, 0)
	number := func(n uint32) *uint32 { return &n }
	for _, x := range []struct {
		r    *pb.LockRequest
		want string
	}{
		{&pb.LockRequest{}, "0 names"},
		{&pb.LockRequest{Names: strings.Fields(strings.Repeat("a ", 17))}, "17 names"},
		{&pb.LockRequest{Names: []string{""}}, "name"},
		{&pb.LockRequest{Names: []string{strings.Repeat("x", 1025)}}, "1025 bytes"},
		{&pb.LockRequest{Names: []string{"line\nfeed"}}, `"line\nfeed"`},
		{&pb.LockRequest{Names: []string{"b", "a", "b"}}, `"b" is named twice`},
		{&pb.LockRequest{Names: []string{"a"}, WaitMs: number(0)}, "wait_ms 0"},
		{&pb.LockRequest{Names: []string{"a"}, WaitMs: number(1 << 31)}, "wait_ms 2147483648"},
		{&pb.LockRequest{Names: []string{"a"}, WaitMs: number(9), Try: true}, "wait_ms 9"},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP}, "mode MODE_GROUP with 0 groups: want 1 to 3"},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP, Groups: strings.Fields("b c d e")}, "groups: 4 groups: want 3 at most"},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP, Groups: []string{"b", "b"}}, `groups: group "b" is named twice`},
		{&pb.LockRequest{Names: []string{"a"}, Groups: []string{"b"}}, `"b" with mode MODE_EXCLUSIVE: want mode MODE_GROUP`},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_SHARED, Groups: []string{"b"}}, `"b" with mode MODE_SHARED`},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP, Groups: []string{""}}, `groups: group "": want 1 to 1024`},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP, Groups: []string{"!b"}}, `group "!b": want`},
		{&pb.LockRequest{Names: []string{"a"}, Mode: pb.Mode_MODE_GROUP, Groups: []string{strings.Repeat("g", 1025)}}, "1025 bytes"},
		{&pb.LockRequest{Names: []string{"a"}, Mode: 3}, "mode 3: want MODE_EXCLUSIVE, MODE_SHARED or MODE_GROUP"},
		{&pb.LockRequest{Names: []string{"a"}, HeadStartMs: 60_001}, "head_start_ms 60001: want 0 to 60000"},
		{&pb.LockRequest{Names: []string{"a"}, GrantId: strings.Repeat("g", 65)}, "65 bytes"},
		{&pb.LockRequest{Names: []string{"a"}, GrantId: "\x7f"}, `"\x7f"`},
	} {
		x.r.SessionId = id
		_, err := c.Lock(t.Context(), x.r)
		wantFailure(t, x.want, err, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want something with %s", err, x.want)
		}
	}
	for _, r := range []*pb.OpenSessionRequest{
		{LeaseMs: 199}, {LeaseMs: 600_001}, {Label: strings.Repeat("l", 257)}, {Label: "\x1b[2J"},
	} {
		_, err := c.OpenSession(t.Context(), r)
		wantFailure(t, r.String(), err, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID)
	}
	// What does not fit the type of its field is no request: no reason, but the value.
	for field, call := range map[string]string{"wait_ms": "Lock", "lease_ms": "OpenSession"} {
		_, answer := post(t, httpClient(t, false), d.url, call, fmt.Sprintf(`{%q: -5}`, field))
		text := fmt.Sprint(answer["message"])
		if answer["code"] != "invalid_argument" || answer["details"] != nil || !strings.Contains(text, "-5") {
			t.Errorf("%s -5: %v", field, answer)
		}
	}
	_, err := c.Holder(t.Context(), &pb.HolderRequest{})
	wantFailure(t, "holder of no name", err, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID)

	h := httpClient(t, false)
	for _, x := range []struct{ body, code string }{
		{"", "invalid_argument"},
		{"{", "invalid_argument"},
		{"[]", "invalid_argument"},
		{`{"session_id": 7}`, "invalid_argument"},
		{`{"nmaes": ["a"]}`, "invalid_argument"},
		{`{"wait_ms": -1}`, "invalid_argument"},
		{`{"mode": "MODE_READ"}`, "invalid_argument"},
		{`{"group": "blue"}`, "invalid_argument"},
		{"{\"names\": [\"\xff\"]}", "invalid_argument"},
		{`{"names": ["\ud800"]}`, "invalid_argument"},
		{`{"names": ["` + strings.Repeat("x", 70_000) + `"]}`, "resource_exhausted"},
		{strings.Repeat("[", 60_000), "invalid_argument"},
	} {
		if _, answer := post(t, h, d.url, "Lock", x.body); answer["code"] != x.code || answer["message"] == "" {
			t.Errorf("%.40s: got %v, want %s", x.body, answer, x.code)
		}
	}
	for path, want := range map[string]int{
		"/":                              http.StatusOK,
		"/metrics":                       http.StatusNotFound,
		"/poundlock.v1.LockService/Fly":  http.StatusNotFound,
		"/poundlock.v1.LockService/Lock": http.StatusMethodNotAllowed, // with GET
	} {
		r, err := h.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, r.StatusCode, want)
		}
	}
}

// TestLimits: each limit of sessions, grants, waits, streams and calls holds, and
// nothing stays counted that has ended.
func TestLimits(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{Sessions: 3, Locks: 5, Grants: 3, Waits: 2, Streams: 1})
	c, ctx := protocols[0].client(t, d), t.Context()
	for range 2 { // again, when all is closed
		var ids []string
		for range 3 {
			ids = append(ids, open(t, c, 0))
		}
		_, err := c.OpenSession(ctx, &pb.OpenSessionRequest{})
		wantFailure(t, "sessions", err, connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)

		lock := func(i int, try bool, names ...string) error {
			_, err := c.Lock(ctx, &pb.LockRequest{SessionId: ids[i], Names: names, Try: try})
			return err
		}
		for _, name := range []string{"a", "b"} {
			if err := lock(0, false, name); err != nil {
				t.Fatal(err)
			}
		}
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				wantFailure(t, "a wait that is released", lock(1, false, "a"), connect.CodeFailedPrecondition, pb.Reason_REASON_RELEASED)
			})
		}
		for {
			r, err := c.Status(ctx, &pb.StatusRequest{SessionId: ids[1]})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Grants) == 2 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		wantFailure(t, "waits", lock(1, true, "c"), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
		wantFailure(t, "locks", lock(2, true, "c", "d"), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
		if err := lock(0, true, "c"); err != nil {
			t.Fatal(err)
		}
		wantFailure(t, "grants", lock(0, true, "d"), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)

		var events *connect.ServerStreamForClient[pb.WatchResponse]
		eventually(t, "a stream is admitted, which one that was closed may still keep out", func() (ok bool) {
			var err error
			if events, err = c.Watch(ctx, &pb.WatchRequest{SessionId: ids[0]}); err != nil {
				t.Fatal(err)
			}
			if ok = events.Receive(); !ok {
				events.Close()
			}
			return ok
		})
		second, err := c.Watch(ctx, &pb.WatchRequest{SessionId: ids[0]})
		if err != nil || second.Receive() {
			t.Fatal("a second stream", err)
		}
		wantFailure(t, "streams", second.Err(), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
		events.Close()
		second.Close()
		slices.Reverse(ids) // those that wait first
		for _, id := range ids {
			if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: id}); err != nil {
				t.Error(err)
			}
		}
		waiting.Wait()
	}
}

// TestSilentConnections: connections that say nothing, send half a request or do
// not end it keep nobody else out, and are ended.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{SlowClient: time.Second}) // honest clients have no more
	begin := []string{
		"",
		"POST /poundlock.v1.LockService/Lock HTTP/1.1\r\nHost: a\r\n",
		"POST /poundlock.v1.LockService/Lock HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		halfBody,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	}
	var conns []net.Conn
	for i := range 200 {
		c, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, begin[i%len(begin)]); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	c := http1.client(t, d)
	id := open(t, c, 0)
	if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}}); err != nil {
		t.Error(err)
	}
	if _, err := c.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil && isTimeout(err) {
			t.Fatalf("the connection that began with %q is still open", begin[i%len(begin)])
		}
	}
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// TestUnreadStream: a stream that nobody reads is cut when nothing more of it can be
// written for a while, and then the lease runs.
func TestUnreadStream(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	_, config := startCluster(t)
	for name, watch := range map[string]func(d *daemon) func(t *testing.T, id string){"HTTP/1.1": unreadHTTP1, "gRPC": unreadGRPC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits, most of the time
			// One stream is admitted: a second one is when the first was cut. Who reads
			// has no more time either, and by HTTP/2 none to answer a ping.
			d := startDaemon(t, config, api.Limits{SlowClient: time.Second, Streams: 1})
			c := http1.client(t, d)
			id := open(t, c, lease)
			watch(d)(t, id)
			// Events of long names, until they are more than all buffers hold.
			var names []string
			for i := range 16 {
				names = append(names, fmt.Sprintf("%0*d", 1024, i))
			}
			for end := time.Now().Add(patience); ; {
				if time.Now().After(end) {
					t.Fatal("a stream that nobody reads is still open")
				}
				r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: names})
				if err == nil {
					_, err = c.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: r.Grant.GrantId})
				}
				if err != nil {
					t.Fatal(err)
				}
				second, err := c.Watch(t.Context(), &pb.WatchRequest{SessionId: id})
				if err != nil {
					t.Fatal(err)
				}
				admitted := second.Receive()
				second.Close()
				if admitted {
					break
				}
				wantFailure(t, "a second stream", second.Err(), connect.CodeResourceExhausted, pb.Reason_REASON_LIMIT)
			}
			// The lease begins when the server has noticed that the second stream is closed,
			// and anew with each look.
			_, err := c.Status(t.Context(), &pb.StatusRequest{SessionId: id})
			for end := time.Now().Add(patience); err == nil && time.Now().Before(end); {
				time.Sleep(lease + 100*time.Millisecond)
				_, err = c.Status(t.Context(), &pb.StatusRequest{SessionId: id})
			}
			wantFailure(t, "after the lease", err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_SESSION)
		})
	}
}

// unreadHTTP1 opens a stream, reads the first line of the answer, and no more.
func unreadHTTP1(d *daemon) func(t *testing.T, id string) {
	return func(t *testing.T, id string) {
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
			t.Fatal(err)
		}
		message := fmt.Sprintf(`{"session_id": %q}`, id)
		frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
		fmt.Fprintf(conn, "POST /poundlock.v1.LockService/Watch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\n"+
			"Content-Length: %d\r\n\r\n%s%s", len(frame)+len(message), frame, message)
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
	}
}

// unreadGRPC opens a stream on a connection that goes on to be read, so that the
// window of the stream is what fills up.
func unreadGRPC(d *daemon) func(t *testing.T, id string) {
	return func(t *testing.T, id string) {
		h := httpClient(t, true)
		h.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		c := pb.NewLockServiceClient(h, d.url, connect.WithGRPC())
		events, err := c.Watch(t.Context(), &pb.WatchRequest{SessionId: id})
		if err != nil || !events.Receive() {
			t.Fatal(err, events.Err())
		}
		t.Cleanup(func() { events.Close() })
	}
}

// TestLeavingWaiters: a Lock whose client goes is given up, and what it
// would have got goes to the next one.
func TestLeavingWaiters(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			c := p.client(t, d)
			first, second := open(t, c, 0), open(t, c, 0)
			if _, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: first, Names: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			for range 3 { // one call and two repetitions
				waiting.Go(func() {
					_, err := c.Lock(ctx, &pb.LockRequest{SessionId: second, Names: []string{"a"}, GrantId: "g"})
					if connect.CodeOf(err) != connect.CodeCanceled {
						t.Errorf("got %v", err)
					}
				})
			}
			grants := func() int {
				r, err := c.Status(t.Context(), &pb.StatusRequest{SessionId: second})
				if err != nil {
					t.Fatal(err)
				}
				return len(r.Grants)
			}
			for grants() != 1 {
				time.Sleep(time.Millisecond)
			}
			leave()
			waiting.Wait()
			for grants() != 0 {
				time.Sleep(time.Millisecond)
			}
			for _, id := range []string{first, second} {
				if _, err := c.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// FuzzJSON: no body of any call makes the handler panic or answer what is not JSON.
// A session and a grant are there to be hit.
func FuzzJSON(f *testing.F) {
	methods := []string{"OpenSession", "RenewSession", "CloseSession", "Lock", "Release", "Status", "Holder", "Watch", "Downgrade"}
	for i := range methods {
		for _, body := range []string{
			`{}`, `{"session_id": "SESSION"}`, `{"session_id": "SESSION", "names": ["b", "a"], "try": true}`,
			`{"session_id": "SESSION", "names": ["a"], "wait_ms": 1, "grant_id": "g"}`,
			`{"session_id": "SESSION", "grant_id": "g"}`, `{"session_id": "SESSION", "grant_id": "g", "mode": "MODE_SHARED"}`, `{"label": "x", "lease_ms": 200}`, `{"name": "a"}`,
			`{"names": ["\u0000", "\ud800"], "wait_ms": 1e99}`, `[`, "\xff", `{"session_id": null}`,
		} {
			f.Add(i, []byte(body))
		}
	}
	_, config := startCluster(f)
	d := startDaemon(f, config, api.Limits{Sessions: 1 << 20})
	c := httpClient(f, false)
	f.Fuzz(func(t *testing.T, method int, body []byte) {
		session := open(t, pb.NewLockServiceClient(c, d.url), 0)
		if _, answer := post(t, c, d.url, "Lock", fmt.Sprintf(`{"session_id": %q, "names": ["g"], "grant_id": "g"}`, session)); answer["grant"] == nil {
			t.Fatal(answer)
		}
		body = bytes.ReplaceAll(body, []byte("SESSION"), []byte(session))
		m := methods[uint(method)%uint(len(methods))]
		kind := "application/json"
		if m == "Watch" {
			kind = "application/connect+json"
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/poundlock.v1.LockService/"+m, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := c.Do(r)
		if err != nil {
			t.Fatalf("%s %q: %v", m, body, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode >= 500 && !bytes.Contains(text, []byte("deadline_exceeded")) {
			t.Errorf("%s %q: status %d, %s, %v", m, body, answer.StatusCode, text, err)
		}
		if _, answer := post(t, c, d.url, "CloseSession", fmt.Sprintf(`{"session_id": %q}`, session)); answer["code"] == "internal" {
			t.Error(answer)
		}
	})
}
