package kvapi

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve has a server at an address until the test ends.
func serve(t *testing.T, s *Server) (addr string) {
	t.Helper()
	path := filepath.Join(proctest.SocketDir(t), "api")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, l, 10*time.Second) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "unix:" + path
}

// alone is a system of one member.
func alone(t *testing.T) *Server {
	t.Helper()
	self := sections.Peer{Name: "a", Addr: "127.0.0.1:0"}
	m, err := sections.Open(t.Context(), sections.Config{
		Name: "a", Members: []sections.Peer{self}, Bootstrap: true, Objects: map[string]sections.Object{"kv": &kv.Store{}},
		More: func(string) sections.Object { return &kv.Store{} }, Slots: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	s := NewServer()
	s.Ready(m)
	return s
}

func put(key, value string) Request {
	return Request{Object: "kv", Then: []kv.Pair{{Key: key, Value: []byte(value)}}}
}

// What is refused was not executed, and says why. What is to be changed is made.
func TestRefused(t *testing.T) {
	waits, full := NewServer(), NewServer()
	full.calls = make(chan struct{})
	addr := serve(t, alone(t))
	large := put("k", strings.Repeat("x", sections.MaxOperation))
	for _, test := range []struct {
		what, addr string
		r          Request
		want       Fate
		says       string
	}{
		{"nobody is there", "unix:/nowhere", put("k", "v"), Unavailable, "no member at /nowhere"},
		{"it has not begun", serve(t, waits), put("k", "v"), Unavailable, "waits for the other members"},
		{"too many", serve(t, full), put("k", "v"), Unavailable, "1024 commands are under way"},
		{"no object", addr, Request{Object: "other", Get: new(string)}, Refused, `"other": there is no such object: ["kv"]`},
		{"one more object", addr, Request{Object: "more", Then: put("k", "v").Then}, Executed, ""},
		{"one too many", addr, Request{Object: "other", Then: put("k", "v").Then}, Refused, "no slot for another object: 1 are made already"},
		{"too large for an operation", addr, large, Refused, "more than 262112"},
		{"too large for a request", addr, put("k", strings.Repeat("x", 2*sections.MaxOperation)), Refused, "too large"},
		{"no section", addr, Request{Object: "kv", Section: "x", Then: put("k", "v").Then}, Lost, "has ended"},
	} {
		if a := Operate(t.Context(), test.addr, test.r); a.Fate != test.want || !strings.Contains(a.Error, test.says) {
			t.Errorf("%s: %+v", test.what, a)
		}
	}
	key := "k"
	if a := Operate(t.Context(), addr, Request{Object: "kv", Get: &key}); a.Fate != Executed || a.Done || a.Error != "" {
		t.Errorf("in the end: %+v", a)
	}
}

// While a section lasts its operations are executed, and nobody else's. It ends with its user, and with the server.
func TestEnter(t *testing.T) {
	server := alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := filepath.Join(proctest.SocketDir(t), "api")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, l, 10*time.Second) }()
	addr := "unix:" + path

	s, a := Enter(t.Context(), addr, Request{Object: "kv"})
	if s == nil {
		t.Fatalf("%+v", a)
	}
	within := put("k", "within")
	within.Section = s.ID
	if a := Operate(t.Context(), addr, within); a.Fate != Executed || !a.Done {
		t.Errorf("within: %+v", a)
	}
	other := put("k", "other")
	other.Wait = 10 * time.Millisecond
	if a := Operate(t.Context(), addr, other); a.Fate != NotEntered || !strings.Contains(a.Error, "not within 10ms") {
		t.Errorf("another one: %+v", a)
	}
	if s, a := Enter(t.Context(), addr, Request{Object: "kv", Wait: 10 * time.Millisecond}); s != nil || a.Fate != NotEntered {
		t.Errorf("another section: %+v", a)
	}
	if why, lost := s.Close(); lost {
		t.Errorf("it was lost: %s", why)
	}
	other.Wait = time.Minute
	if a := Operate(t.Context(), addr, other); a.Fate != Executed {
		t.Errorf("afterwards: %+v", a)
	}
	if s, a = Enter(t.Context(), addr, Request{Object: "kv"}); s == nil {
		t.Fatalf("%+v", a)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-s.lost
	if why, lost := s.Close(); !lost || why != "the member ends" {
		t.Errorf("the server has ended: %q, %v", why, lost)
	}
}

// A member that stops, and answers nothing, keeps nobody for longer than it wants to wait.
func TestStopped(t *testing.T) {
	defer func(before time.Duration) { lateAnswer = before }(lateAnswer)
	lateAnswer = 10 * time.Millisecond
	path := filepath.Join(proctest.SocketDir(t), "api")
	l, err := net.Listen("unix", path) // the system accepts, and nobody else
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := put("k", "v")
	r.Wait = time.Millisecond
	if a := Operate(t.Context(), "unix:"+path, r); a.Fate != Unknown {
		t.Errorf("an operation: %+v", a)
	}
	if s, a := Enter(t.Context(), "unix:"+path, Request{Object: "kv", Wait: time.Millisecond}); s != nil || a.Fate != Unavailable {
		t.Errorf("a section: %+v", a)
	}
}

// A page that a browser shows cannot change values through a port of loopback.
func TestNoPages(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	server := alone(t)
	go func() { ended <- server.Serve(ctx, l, time.Second) }()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+operatePath, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Origin", "http://example.com")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", a.StatusCode)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
