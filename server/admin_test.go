package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/node"
)

// atLast is how long a test waits for what must come at last, on any machine.
const atLast = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(atLast); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", atLast, what)
		}
	}
}

func startAdmin(t *testing.T, s *Server, change func(*AdminConfig)) *Admin {
	t.Helper()
	c := AdminConfig{Listen: "127.0.0.1:0", Quorum: func() error { return nil }}
	if change != nil {
		change(&c)
	}
	a, err := NewAdmin(s, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

func get(t *testing.T, a *Admin, path, accept string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestHealth(t *testing.T) {
	l := startLocal(t)
	var lost error
	a := startAdmin(t, l.lives[0].server, func(c *AdminConfig) { c.Quorum = func() error { return lost } })
	health := func() (h Health, status int) {
		response, body := get(t, a, "/healthz", "")
		if err := json.Unmarshal([]byte(body), &h); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		return h, response.StatusCode
	}
	if h, status := health(); status != http.StatusOK || h != (Health{Server: "s1", Serving: true, Quorum: true}) {
		t.Errorf("status %d: %+v", status, h)
	}
	l.lives[0].server.Drain(t.Context())
	want := Health{Server: "s1", Serving: true, Draining: true, Quorum: true}
	if h, status := health(); status != http.StatusServiceUnavailable || h != want {
		t.Errorf("status %d while it drains: %+v", status, h)
	}
	lost = errors.New("s2: refused; s3: <silent>")
	want.Quorum, want.Error = false, "s2: refused; s3: <silent>"
	if h, status := health(); status != http.StatusServiceUnavailable || h != want {
		t.Errorf("status %d: %+v", status, h)
	}
}

// A server that does not serve yet answers all the same.
func TestAdminBeforeServing(t *testing.T) {
	s, err := New(Config{Name: "s1", Servers: table("127.0.0.1:0", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := startAdmin(t, s, nil)
	if _, body := get(t, a, "/healthz", ""); !strings.Contains(body, `"serving":false`) {
		t.Error(body)
	}
	if _, body := get(t, a, "/metrics", ""); !strings.Contains(body, "\npoundlock_serving 0\n") {
		t.Error(body)
	}
}

func TestAdminRefuses(t *testing.T) {
	s := startLocal(t).lives[0].server
	quorum := func() error { return nil }
	for _, c := range []AdminConfig{
		{Listen: "0.0.0.0:0"},
		{Listen: ":0"},
		{Listen: "0.0.0.0:0", ClientCerts: true},
	} {
		c.Quorum = quorum
		if a, err := NewAdmin(s, c); !errors.Is(err, ErrAdminInsecure) {
			t.Errorf("%+v: %v, %v", c, a, err)
		}
	}
	for addr, want := range map[string]string{"nonsense": `"nonsense"`, "": `address "": want HOST:PORT`} {
		_, err := NewAdmin(s, AdminConfig{Listen: addr, Quorum: quorum})
		if err == nil || errors.Is(err, ErrAdminInsecure) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if _, err := NewAdmin(s, AdminConfig{Listen: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "Quorum is nil") {
		t.Error(err)
	}
	a := startAdmin(t, s, func(c *AdminConfig) { c.Listen, c.Insecure = "0.0.0.0:0", true })
	_, port, _ := net.SplitHostPort(a.Addr().String())
	response, err := http.Post("http://127.0.0.1:"+port+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", response.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestPprof(t *testing.T) {
	a := startAdmin(t, startLocal(t).lives[0].server, nil)
	if _, body := get(t, a, "/debug/pprof/goroutine?debug=1", ""); !strings.Contains(body, "goroutine profile: total") {
		t.Errorf("%.200s", body)
	}
	for _, path := range []string{"profile", "trace", "heap"} {
		for _, seconds := range []string{"61", "3600", "1e300", "NaN", "Inf", "-1", "0", "x"} {
			response, body := get(t, a, "/debug/pprof/"+path+"?seconds="+seconds, "")
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"`+seconds+`"`) {
				t.Errorf("%s of %s s: status %d: %.200s", path, seconds, response.StatusCode, body)
			}
		}
	}
	if response, _ := get(t, a, "/debug/pprof/trace?seconds=0.01", ""); response.StatusCode != http.StatusOK {
		t.Errorf("a trace of 10 ms: status %d", response.StatusCode)
	}
	for range maxScrapes {
		a.profiles <- struct{}{}
	}
	if response, _ := get(t, a, "/debug/pprof/heap", ""); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one profile too many: status %d", response.StatusCode)
	}
}

// Silent connections are bounded, and keep nobody out for long: a new one is
// closed at once while there are too many.
func TestAdminConnections(t *testing.T) {
	a := startAdmin(t, startLocal(t).lives[0].server, nil)
	var open []net.Conn
	for range maxAdminConns + 10 {
		nc, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		open = append(open, nc)
	}
	closed := 0
	for _, nc := range open[maxAdminConns:] {
		nc.SetReadDeadline(time.Now().Add(4 * time.Second)) // below ReadHeaderTimeout
		if _, err := nc.Read(make([]byte, 1)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				closed++
			}
		}
	}
	if closed != 10 {
		t.Errorf("%d of 10 connections too many were closed", closed)
	}
	for _, nc := range open {
		nc.Close()
	}
	eventually(t, "others are served again", func() bool {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + a.Addr().String() + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// With TLS the admin port asks for a certificate, and may then be open to others.
func TestAdminTLS(t *testing.T) {
	dir := t.TempDir()
	authority, err := certs.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	store := func(s certs.Subject, shows bool) *certs.Store {
		f := certs.Files{CA: certs.CertPath(dir, "ca"), ServerName: "s1"}
		if shows {
			if _, err := authority.Issue(s, 30); err != nil {
				t.Fatal(err)
			}
			f.Cert, f.Key = certs.CertPath(dir, s.Name), certs.KeyPath(dir, s.Name)
		}
		files, err := certs.Open(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	config, err := store(certs.Subject{Name: "s1", Hosts: []string{"s1"}}, true).Server()
	if err != nil {
		t.Fatal(err)
	}
	a := startAdmin(t, startLocal(t).lives[0].server, func(c *AdminConfig) {
		c.Listen, c.TLS, c.ClientCerts = "0.0.0.0:0", config, true
	})
	_, port, _ := net.SplitHostPort(a.Addr().String())
	ask := func(with *certs.Store) error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: with.Client()}}
		r, err := client.Get("https://127.0.0.1:" + port + "/healthz")
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	if err := ask(store(certs.Subject{Name: "prometheus"}, true)); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := ask(store(certs.Subject{}, false)); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
}

// GET / says what the admin port is; on loopback without TLS only requests for this machine
// are served; and a client of the lock service hears that it is wrong here.
func TestAdminDoor(t *testing.T) {
	t.Parallel()
	a := startAdmin(t, startLocal(t).lives[0].server, nil)
	if r, body := get(t, a, "/", ""); r.StatusCode != http.StatusOK || !strings.Contains(body, `admin port of server "s1"`) {
		t.Errorf("GET /: %d %s", r.StatusCode, body)
	}
	for line := range strings.Lines(about) {
		if len(line) > 80 { // with its end
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	if r, body := get(t, a, "/metric", ""); r.StatusCode != http.StatusNotFound || !strings.Contains(body, "GET / says") {
		t.Errorf("GET /metric: %d %s", r.StatusCode, body)
	}
	for host, want := range map[string]int{"localhost:1": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr().String()+"/debug/pprof/cmdline", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %s: %d, want %d", host, answer.StatusCode, want)
		}
	}
	answers, err := ask(t.Context(), AskConfig{
		Servers: []node.Peer{{Name: "s1", Addr: a.Addr().String()}}, NoAmnesia: true, Timeout: time.Second,
	})
	if err != nil || !strings.Contains(fmt.Sprint(answers[0].Err), "this port speaks HTTP") {
		t.Errorf("a look at the status: %v, %v", answers, err)
	}
}
