package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
)

// An apiCluster is four servers, processes of their own, the first with an API.
type apiCluster struct {
	addr    string // of the API
	servers string // as --servers takes them
	first   *exec.Cmd
}

func startAPI(t *testing.T, flags ...string) *apiCluster {
	t.Helper()
	dir := proctest.SocketDir(t)
	var table []string
	for i := range 4 {
		table = append(table, fmt.Sprintf("s%d=unix:%s/s%d", i+1, dir, i+1))
	}
	cluster := &apiCluster{servers: strings.Join(table, ",")}
	for i := range 4 {
		name := fmt.Sprintf("s%d", i+1)
		c := asProgram("serve", "--name", name, "--servers", cluster.servers, "--clock-bound", "1ms")
		c.Args = append(c.Args, flags...)
		if i == 0 {
			c.Args = append(c.Args, "--api", "127.0.0.1:0")
			cluster.first = c
		}
		log, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(log)
		serving := false // then it ends well on SIGTERM
		for (!serving || cluster.addr == "") && lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), `msg="serving the API" addr=`); ok {
				cluster.addr = rest
			}
			serving = serving || strings.Contains(lines.Text(), " msg=serving ")
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for lines.Scan() {
			}
		}()
		t.Cleanup(func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			<-drained
			if err := c.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if cluster.addr == "" {
		t.Fatal("the first server serves no API")
	}
	return cluster
}

// asProgram is this binary as poundlock.
func asProgram(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), clitest.RunAsProgram+"=1")
	return c
}

// url is that of a call of the lock service.
func (c *apiCluster) url(call string) string {
	return "http://" + c.addr + "/poundlock.v1.LockService/" + call
}

// post sends JSON and decodes the answer.
func post(t *testing.T, h *http.Client, url, body string, answer any) error {
	t.Helper()
	r, err := h.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", r.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}

// waitHealthy waits until the API says that the cluster has a quorum.
func waitHealthy(t *testing.T, h *http.Client, scheme, addr string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var answer struct{ Status string }
		err := post(t, h, scheme+"://"+addr+"/grpc.health.v1.Health/Check", "{}", &answer)
		if err == nil && answer.Status == "SERVING_STATUS_SERVING" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not serving: %v, %v", answer, err)
		}
	}
}

// An apiSession is a session of one client.
type apiSession struct {
	SessionID string `json:"session_id"`
}

// An apiGrant is what Lock answers.
type apiGrant struct {
	Grant struct {
		ID        string   `json:"grant_id"`
		Tokens    []string `json:"tokens"`
		CertainMS int64    `json:"certain_ms"`
	} `json:"grant"`
}

// TestAPIAndCommandLine: a lock that the API has taken is taken for poundlock lock,
// and the other way round.
func TestAPIAndCommandLine(t *testing.T) {
	c := startAPI(t)
	waitHealthy(t, http.DefaultClient, "http", c.addr)
	try := func(want int) {
		t.Helper()
		l := asProgram("lock", "--servers", c.servers, "--clock-bound", "1ms", "--try", "shared", "--", "true")
		if out, _ := l.CombinedOutput(); l.ProcessState.ExitCode() != want {
			t.Errorf("poundlock lock: %v, want %d\n%s", l.ProcessState, want, out)
		}
	}
	var s apiSession
	var g apiGrant
	if err := post(t, http.DefaultClient, c.url("OpenSession"), "{}", &s); err != nil {
		t.Fatal(err)
	}
	take := fmt.Sprintf(`{"session_id": %q, "names": ["shared"], "try": true}`, s.SessionID)
	if err := post(t, http.DefaultClient, c.url("Lock"), take, &g); err != nil {
		t.Fatal(err)
	}
	try(cli.ExitNotAcquired)
	release := fmt.Sprintf(`{"session_id": %q, "grant_id": %q}`, s.SessionID, g.Grant.ID)
	if err := post(t, http.DefaultClient, c.url("Release"), release, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	try(0)
	l := asProgram("lock", "--servers", c.servers, "--clock-bound", "1ms", "shared", "--", "cat")
	in, err := l.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "inside")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if err := post(t, http.DefaultClient, c.url("Lock"), take, &g); err == nil || !strings.Contains(err.Error(), "failed_precondition") {
		t.Errorf("the API takes what poundlock lock has: %v", err)
	}
	in.Close()
	if err := l.Wait(); err != nil {
		t.Error(err)
	}
	if err := post(t, http.DefaultClient, c.url("CloseSession"), fmt.Sprintf(`{"session_id": %q}`, s.SessionID), &struct{}{}); err != nil {
		t.Error(err)
	}
}

// TestSharedEverywhere: an RWMutex in Go, the API and poundlock lock share one lock, and exclude each other, by its name.
func TestSharedEverywhere(t *testing.T) {
	t.Parallel()
	c := startAPI(t)
	waitHealthy(t, http.DefaultClient, "http", c.addr)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	servers, err := slots.Parse(c.servers)
	if err != nil {
		t.Fatal(err)
	}
	client, err := poundlock.Dial(ctx, poundlock.Config{Servers: servers, ClockBound: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	book := client.RWMutex("book")
	var s apiSession
	if err := post(t, http.DefaultClient, c.url("OpenSession"), `{"lease_ms": 600000}`, &s); err != nil {
		t.Fatal(err)
	}
	// take asks the API for the lock, and says what it was refused for.
	take := func(mode string, try bool) (id string, err error) {
		var g apiGrant
		err = post(t, http.DefaultClient, c.url("Lock"),
			fmt.Sprintf(`{"session_id": %q, "names": ["book"], "mode": %q, "try": %v}`, s.SessionID, mode, try), &g)
		return g.Grant.ID, err
	}
	release := func(id string) {
		t.Helper()
		text := fmt.Sprintf(`{"session_id": %q, "grant_id": %q}`, s.SessionID, id)
		if err := post(t, http.DefaultClient, c.url("Release"), text, &struct{}{}); err != nil {
			t.Error(err)
		}
	}
	command := func(flags ...string) *exec.Cmd {
		return asProgram(append(append([]string{"lock", "--servers", c.servers, "--clock-bound", "1ms", "book"}, flags...), "--", "cat")...)
	}
	run := func(want int, flags ...string) {
		t.Helper()
		l := command(flags...)
		if out, _ := l.CombinedOutput(); l.ProcessState.ExitCode() != want {
			t.Errorf("poundlock lock %q: %v, want %d\n%s", flags, l.ProcessState, want, out)
		}
	}
	// under runs f while poundlock lock has the lock.
	under := func(f func(), flags ...string) {
		t.Helper()
		l := command(flags...)
		in, err := l.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, "inside")
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("%q, %v", line, err)
		}
		f()
		in.Close()
		if err := l.Wait(); err != nil {
			t.Error(err)
		}
	}

	// Three readers are inside together, and no writer is.
	id, err := take("MODE_SHARED", false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := book.RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	under(func() {
		run(cli.ExitNotAcquired, "--try")
		run(cli.ExitNotAcquired, "--try", "--group", "red")
	}, "--shared")
	release(id)
	if id, err := take("MODE_EXCLUSIVE", true); err == nil {
		t.Errorf("the API takes %s beside a reader in Go", id)
	}
	under(func() {
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		if g, err := book.TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
			t.Errorf("a writer in Go beside poundlock lock --shared: %v, %v", g, err)
		}
	}, "--group", "shared")

	// A writer is inside alone, whichever it is.
	under(func() {
		if g, err := book.TryRLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
			t.Errorf("a reader in Go beside poundlock lock: %v, %v", g, err)
		}
		if id, err := take("MODE_SHARED", true); err == nil {
			t.Errorf("the API takes %s beside poundlock lock", id)
		}
	}, "--exclusive")
	if g, err = book.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	run(cli.ExitNotAcquired, "--try", "--shared")
	if id, err := take("MODE_SHARED", true); err == nil {
		t.Errorf("the API takes %s beside a writer in Go", id)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	if id, err = take("MODE_EXCLUSIVE", false); err != nil {
		t.Fatal(err)
	}
	run(cli.ExitNotAcquired, "--try", "--shared")
	release(id)
	run(0, "--shared")
}

// TestAPIKilled: when the process of the API is killed, its locks go to others, but
// not before the time for which its clients were told that they are certain.
func TestAPIKilled(t *testing.T) {
	t.Parallel()
	c := startAPI(t, "--lease", "3s")
	waitHealthy(t, http.DefaultClient, "http", c.addr)
	var s apiSession
	var g apiGrant
	if err := post(t, http.DefaultClient, c.url("OpenSession"), `{"lease_ms": 60000}`, &s); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := post(t, http.DefaultClient, c.url("Lock"), fmt.Sprintf(`{"session_id": %q, "names": ["a"]}`, s.SessionID), &g); err != nil {
		t.Fatal(err)
	}
	certain := time.Duration(g.Grant.CertainMS) * time.Millisecond
	if certain <= 0 || certain > 3*time.Second {
		t.Errorf("certain for %v, with a lease of the cluster of 3s", certain)
	}
	if err := c.first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l := asProgram("lock", "--servers", c.servers, "--clock-bound", "1ms", "a", "--", "true")
	if out, err := l.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if d := time.Since(began); d < certain {
		t.Errorf("the next one was in after %v, certain was %v", d, certain)
	}
}

// TestAPITLS: with an authority, only its clients get through, over HTTP/1.1 and
// HTTP/2.
func TestAPITLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	ours.sign("server", ours, time.Hour)
	ours.sign("client", ours, time.Hour)
	others.sign("client", others, time.Hour)
	c := startAPI(t, "--tls-cert", ours.path("server.pem"), "--tls-key", ours.path("server.key"),
		"--tls-ca", ours.path("authority.pem"), "--tls-server-name", "server")
	for _, x := range []struct {
		who   string
		certs *authority
		h2    bool
		ok    bool
	}{
		{"HTTP/1.1", ours, false, true},
		{"HTTP/2", ours, true, true},
		{"no certificate", nil, false, false},
		{"no certificate, HTTP/2", nil, true, false},
		{"another authority's", others, true, false},
	} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: forced(t, ours.flags("client")).RootCAs}, Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP1(!x.h2)
		tr.Protocols.SetHTTP2(x.h2)
		if x.certs != nil {
			tr.TLSClientConfig.GetClientCertificate = forced(t, x.certs.flags("client")).GetClientCertificate
		}
		h := &http.Client{Transport: tr}
		if x.ok {
			waitHealthy(t, h, "https", c.addr)
		}
		var s apiSession
		err := post(t, h, "https://"+c.addr+"/poundlock.v1.LockService/OpenSession", "{}", &s)
		if (err == nil) != x.ok {
			t.Errorf("%s: %v", x.who, err)
		}
		tr.CloseIdleConnections()
	}
	if err := post(t, http.DefaultClient, c.url("OpenSession"), "{}", &struct{}{}); err == nil || !strings.Contains(err.Error(), "HTTPS") {
		t.Errorf("plaintext: %v", err)
	}
}

// TestAPIUsage: what --api refuses.
func TestAPIUsage(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, x := range []struct {
		addr   string
		status int
		want   string
	}{
		{"0.0.0.0:0", cli.ExitUsage, "without TLS"},
		{"nonsense", cli.ExitUsage, "want HOST:PORT"},
		{"127.0.0.1:http!", cli.ExitUsage, "want HOST:PORT"},
		{taken.Addr().String(), cli.ExitError, "address already in use"},
	} {
		dir := proctest.SocketDir(t)
		c := asProgram("serve", "--name", "s1", "--no-amnesia", "--servers", "s1=unix:"+dir+"/s1", "--api", x.addr)
		out, _ := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != x.status || !strings.Contains(string(out), x.want) {
			t.Errorf("--api %s: status %d, want %d with %q:\n%s", x.addr, got, x.status, x.want, out)
		}
	}
}
