package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// startAPI starts four servers, processes of their own, the first with an API, and
// returns the address of that.
func startAPI(t *testing.T, flags ...string) (addr string, first *exec.Cmd) {
	t.Helper()
	dir := proctest.SocketDir(t)
	var table []string
	for i := range 4 {
		table = append(table, fmt.Sprintf("s%d=unix:%s/s%d", i+1, dir, i+1))
	}
	for i := range 4 {
		c := exec.Command(os.Args[0], "serve", "--name", fmt.Sprintf("s%d", i+1), "--servers", strings.Join(table, ","), "--clock-bound", "1ms")
		c.Env = append(os.Environ(), runAsProgram+"=1")
		if i == 0 {
			c.Args = append(append(c.Args, "--api", "127.0.0.1:0"), flags...)
		}
		log, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(log)
		for i == 0 && addr == "" && lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), `msg="serving the API" addr=`); ok {
				addr = rest
			}
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
			if err := c.Wait(); err != nil && first != nil {
				t.Errorf("s%d: %v", i+1, err)
			}
		})
		if i == 0 {
			first = c
		}
	}
	if addr == "" {
		t.Fatal("the first server serves no API")
	}
	waitHealthy(t, "http://"+addr)
	return addr, first
}

func waitHealthy(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Post(url+"/grpc.health.v1.Health/Check", "application/json", strings.NewReader("{}"))
		if err == nil {
			var answer struct{ Status string }
			err = json.NewDecoder(r.Body).Decode(&answer)
			r.Body.Close()
			if err == nil && answer.Status == "SERVING_STATUS_SERVING" {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not serving: %v", err)
		}
	}
}

// A block is fenced text of a document.
var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestAPIExamples runs what docs/api.md shows, with bash and curl, against server
// processes, and compares what it prints with what the document says it does.
func TestAPIExamples(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the examples of docs/api.md need %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := startAPI(t)
	const mark = "--- example"
	script, wants := "set -eu -o pipefail\n", map[int]string{}
	n := 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" {
			n++
			script += "echo; echo '" + mark + "'\n" + m[2]
		} else {
			wants[n] = m[2]
		}
	}
	if n < 5 || len(wants) < 5 {
		t.Fatalf("found %d examples and %d outputs", n, len(wants))
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script, "127.0.0.1:7080", addr))
	c.Dir = t.TempDir()
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, errors.String(), out)
	}
	got := strings.Split(string(out), "\n"+mark+"\n")[1:]
	if len(got) != n {
		t.Fatalf("%d outputs of %d examples:\n%s", len(got), n, out)
	}
	for i, want := range wants {
		if !alike(got[i-1], want) {
			t.Errorf("example %d prints\n%s\nwhere the document has\n%s", i, got[i-1], want)
		}
	}
	status, err := os.ReadFile(filepath.Join(c.Dir, "status"))
	if err != nil || !strings.Contains(string(status), "STATE_HELD") {
		t.Errorf("status: %s, %v", status, err)
	}
}

// varying are the values of JSON that no document can know.
var varying = map[string]bool{"session_id": true, "tokens": true, "certain_ms": true, "client_id": true, "token": true}

// alike compares JSON by what does not vary, and other text as it is.
func alike(got, want string) bool {
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return strings.TrimSpace(got) == strings.TrimSpace(want)
	}
	return reflect.DeepEqual(shape(a), shape(b))
}

// shape replaces values that vary by their type.
func shape(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, x := range m {
		if m[k] = shape(x); varying[k] {
			m[k] = fmt.Sprintf("%T", x)
			if list, ok := x.([]any); ok && len(list) > 0 {
				m[k] = fmt.Sprintf("%d of %T", len(list), list[0])
			}
		}
	}
	return m
}

// TestAPIUsage: what --api refuses.
func TestAPIUsage(t *testing.T) {
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
		{"0.0.0.0:0", exitUsage, "without TLS"},
		{"nonsense", exitUsage, "want HOST:PORT"},
		{"127.0.0.1:http!", exitUsage, "want HOST:PORT"},
		{taken.Addr().String(), exitError, "address already in use"},
	} {
		dir := proctest.SocketDir(t)
		c := exec.CommandContext(t.Context(), os.Args[0], "serve", "--name", "s1", "--no-amnesia", "--servers", "s1=unix:"+dir+"/s1", "--api", x.addr)
		c.Env = append(os.Environ(), runAsProgram+"=1")
		out, _ := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != x.status || !strings.Contains(string(out), x.want) {
			t.Errorf("--api %s: status %d, want %d with %q:\n%s", x.addr, got, x.status, x.want, out)
		}
	}
}
