package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// An audited cluster is four server processes, each with an admin port and an audit.
type audited struct {
	t         *testing.T
	dir       string
	table     string
	processes [4]*exec.Cmd
	logs      [4]*proctest.Log
}

func startAudited(t *testing.T, flags ...string) *audited {
	t.Helper()
	c := &audited{t: t, dir: proctest.SocketDir(t)}
	var table []string
	for i := range c.processes {
		table = append(table, fmt.Sprintf("s%d=unix:%s/s%d", i+1, c.dir, i+1))
	}
	c.table = strings.Join(table, ",")
	for i := range c.processes {
		c.start(i, flags...)
	}
	t.Cleanup(func() {
		for i := range c.processes {
			c.stop(i, syscall.SIGTERM)
		}
		if t.Failed() {
			for i, l := range c.logs {
				t.Logf("s%d:\n%s", i+1, l)
			}
		}
	})
	for i := range c.processes {
		c.until(i, http.StatusOK)
	}
	return c
}

func (c *audited) path(name string, i int) string { return fmt.Sprintf("%s/%s%d", c.dir, name, i+1) }

func (c *audited) program(args ...string) *exec.Cmd {
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), clitest.RunAsProgram+"=1", "POUNDLOCK_SERVERS="+c.table, "POUNDLOCK_CLOCK_BOUND=1ms")
	return p
}

func (c *audited) start(i int, flags ...string) {
	c.t.Helper()
	p := c.program(append([]string{
		"serve", "--name", fmt.Sprintf("s%d", i+1), "--admin", "unix:" + c.path("admin", i), "--audit", c.path("audit", i),
	}, flags...)...)
	c.logs[i] = new(proctest.Log)
	p.Stderr = c.logs[i]
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.processes[i] = p
}

func (c *audited) stop(i int, s os.Signal) {
	c.t.Helper()
	p := c.processes[i]
	if p == nil {
		return
	}
	c.processes[i] = nil
	_ = p.Process.Signal(s)
	if err := p.Wait(); err != nil && s == syscall.SIGTERM {
		c.t.Errorf("s%d: %v", i+1, err)
	}
}

// get asks the admin port of a server.
func (c *audited) get(i int, path string) (status int, body string, err error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.path("admin", i))
		},
	}}
	r, err := client.Get("http://admin" + path)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), err
}

// until waits until /healthz answers with a status.
func (c *audited) until(i, want int) (h server.Health) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, body, err := c.get(i, "/healthz")
		if err == nil && status == want {
			if err := json.Unmarshal([]byte(body), &h); err != nil {
				c.t.Fatalf("%q: %v", body, err)
			}
			return h
		}
		if time.Now().After(end) {
			c.t.Fatalf("s%d is not %d: %d %s %v", i+1, want, status, body, err)
		}
	}
}

func (c *audited) scrape(i int) string {
	c.t.Helper()
	status, body, err := c.get(i, "/metrics")
	if err != nil || status != http.StatusOK {
		c.t.Fatalf("scrape of s%d: %d %v\n%s", i+1, status, err, body)
	}
	return body
}

func (c *audited) lock(args ...string) {
	c.t.Helper()
	p := c.program(append([]string{"lock"}, args...)...)
	if out, err := p.CombinedOutput(); err != nil {
		c.t.Fatalf("lock: %v\n%s", err, out)
	}
}

// While a quorum is lost, /healthz says so, with what each server says, and metrics
// are scraped all the same; once it is back, all is well again.
func TestHealthFollowsQuorum(t *testing.T) {
	t.Parallel()
	c := startAudited(t, "--lease", "1s")
	c.stop(2, syscall.SIGKILL)
	c.stop(3, syscall.SIGKILL)
	wrong := func() string {
		h := c.until(0, http.StatusServiceUnavailable)
		if h.Server != "s1" || !h.Serving || h.Quorum ||
			!strings.Contains(h.Error, "s3 (") || !strings.Contains(h.Error, "s4 (") || strings.Contains(h.Error, "s2 (") {
			return fmt.Sprintf("without a quorum: %+v", h)
		}
		body := c.scrape(0)
		for _, line := range []string{
			"poundlock_serving 1", "poundlock_client_quorum_reachable 0", `poundlock_server_info{server="s1"} 1`,
			`poundlock_client_server_connected{server="s2"} 1`, `poundlock_client_server_connected{server="s3"} 0`,
		} {
			if !strings.Contains(body, "\n"+line+"\n") {
				return fmt.Sprintf("the scrape has no line %q", line)
			}
		}
		return ""
	}
	// A machine that stands still for a lease takes s2 away too, for a while.
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text := wrong()
		if text == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(text)
		}
	}
	c.start(2, "--lease", "1s")
	c.until(0, http.StatusOK)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // a machine that stands still for a lease takes it away again
		out, err := c.program("lock", "a", "--", "true").CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("lock: %v\n%s", err, out)
		}
	}
}

// section is the part of a document below a heading.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	if end := regexp.MustCompile(`(?m)^#+ `).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

var metricName = regexp.MustCompile(`\b(poundlock|go|process)_[a-z_]+`)

// missingMetrics are the names of metrics in a text that no scrape has, by hand of the
// TYPE lines: a histogram has samples of three suffixes.
func missingMetrics(text, scrape string) (missing []string) {
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(scrape, -1) {
		have[m[1]] = true
		if m[2] == "histogram" {
			have[m[1]+"_bucket"], have[m[1]+"_count"], have[m[1]+"_sum"] = true, true, true
		}
	}
	for _, name := range metricName.FindAllString(text, -1) {
		if !have[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// The metrics and causes in docs/operations.md are those of a scrape.
func TestMetricsDoc(t *testing.T) {
	const doc = "../../docs/operations.md"
	c := startAudited(t)
	c.lock("a", "--", "true")
	// There is no certificate here: TestCertificateMetric.
	scrape := c.scrape(0) + "\n# TYPE poundlock_certificate_expiry_timestamp_seconds gauge\n"
	alerts := section(t, doc, "### What to alert on")
	if names := metricName.FindAllString(alerts, -1); len(names) < 20 {
		t.Fatalf("only %d names of metrics", len(names))
	}
	for _, name := range missingMetrics(alerts+section(t, doc, "## Metrics and health"), scrape+"\n# TYPE poundlock_client_ prefix\n") {
		t.Errorf("%s names the metric %s, which there is not", doc, name)
	}
	if bad := missingMetrics(strings.Replace(alerts, "poundlock_serving", "poundlock_serves", 1), scrape); !slices.Contains(bad, "poundlock_serves") {
		t.Error("a name that there is not passes")
	}
	for _, m := range regexp.MustCompile(`cause(?:=~|=)"([^"]+)"`).FindAllStringSubmatch(alerts, -1) {
		for _, cause := range strings.Split(strings.ReplaceAll(m[1], `\`, ""), "|") {
			if !strings.Contains(scrape, `cause="`+cause+`"`) {
				t.Errorf("%s names the cause %s, which there is not", doc, cause)
			}
		}
	}
}

// Load balancers in front of an API hear that it takes no lock any more, however little
// time its server has to drain.
func TestHealthOfEndingAPI(t *testing.T) {
	c := startAudited(t)
	c.stop(0, syscall.SIGTERM)
	c.start(0, "--api", "127.0.0.1:0", "--drain-timeout", "0")
	c.until(0, http.StatusOK)
	_, addr, _ := strings.Cut(c.logs[0].String(), `msg="serving the API" addr=`)
	addr, _, _ = strings.Cut(addr, "\n")
	call := func(name, body string, answer any) {
		t.Helper()
		if err := post(t, http.DefaultClient, "http://"+addr+"/poundlock.v1.LockService/"+name, body, answer); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var s apiSession
	call("OpenSession", `{"lease_ms": 60000}`, &s)
	call("Lock", fmt.Sprintf(`{"session_id": %q, "names": ["a"]}`, s.SessionID), new(apiGrant))
	p := c.processes[0]
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if h := c.until(0, http.StatusServiceUnavailable); !h.Draining || !h.Quorum {
		t.Errorf("while the API waits for its clients: %+v", h)
	}
	call("CloseSession", fmt.Sprintf(`{"session_id": %q}`, s.SessionID), new(struct{}))
	c.processes[0] = nil
	if err := p.Wait(); err != nil {
		t.Errorf("s1: %v", err)
	}
}
