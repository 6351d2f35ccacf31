package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// roleVariable makes the test binary a client process.
const roleVariable = "POUNDLOCK_TEST_CLIENT"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runClient(role))
	}
	lane.Waits()
	code := m.Run()
	if dir := binaryDir; dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var binaryDir string

// binary builds poundlock, once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "poundlock-e2e")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "poundlock")
	build := exec.Command("go", "build", "-tags", tags, "-o", path, "github.com/poundlock/poundlock/cmd/poundlock")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// A cluster is n server processes on loopback.
type cluster struct {
	t       *testing.T
	servers string // as --servers takes them
	table   []string
	hosts   []string // the network namespace of each server; nil: all are here
	from    string   // that of whoever asks for the status
	procs   []*exec.Cmd
	logs    []*proctest.Log
	flags   func(i int) []string // of server i; nil: none
	env     func(i int) []string // more of its environment; nil: none
}

// startCluster starts n servers and waits until they answer.
func startCluster(t *testing.T, n int) *cluster {
	t.Helper()
	return startClusterWith(t, n, nil)
}

// startClusterWith gives the servers flags.
func startClusterWith(t *testing.T, n int, flags func(i int) []string) *cluster {
	t.Helper()
	c := &cluster{t: t, flags: flags}
	c.startSome(n)
	return c
}

// startSome starts n servers and waits until they answer.
func (c *cluster) startSome(n int) {
	c.t.Helper()
	for i := range n {
		c.table = append(c.table, fmt.Sprintf("s%d=%s", i+1, proctest.FreeAddr(c.t)))
	}
	c.startAll()
}

// startAll starts the servers of the table and waits until they answer.
func (c *cluster) startAll() {
	t, n := c.t, len(c.table)
	t.Helper()
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	c.procs, c.logs = make([]*exec.Cmd, n), make([]*proctest.Log, n)
	c.servers = strings.Join(c.table, ",")
	t.Cleanup(func() {
		for i := range n {
			c.kill(i)
			if t.Failed() {
				log := c.logs[i].String()
				t.Logf("end of the log of s%d:\n%s", i+1, log[max(0, len(log)-4000):])
			}
		}
	})
	for i := range n {
		c.logs[i] = &proctest.Log{}
		c.start(i)
	}
	c.awaitAll()
}

// awaitAll waits until all servers answer.
func (c *cluster) awaitAll() {
	c.t.Helper()
	c.await("all answer", func(s status) bool { return s.Reachable == len(c.table) })
}

// start starts server i, empty.
func (c *cluster) start(i int) {
	c.t.Helper()
	path, err := binary()
	if err != nil {
		c.t.Fatal(err)
	}
	host := ""
	if c.hosts != nil {
		host = c.hosts[i]
	}
	cmd := command(host, path, "serve", "--name", fmt.Sprintf("s%d", i+1), "--servers", c.servers)
	if c.flags != nil {
		cmd.Args = append(cmd.Args, c.flags(i)...)
	}
	cmd.Env = cleanEnv()
	if c.env != nil {
		cmd.Env = append(cmd.Env, c.env(i)...)
	}
	cmd.Stderr = c.logs[i]
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.procs[i] = cmd
}

// kill ends server i with SIGKILL and waits until it is gone.
func (c *cluster) kill(i int) {
	if p := c.procs[i]; p != nil {
		c.procs[i] = nil
		_ = p.Process.Kill()
		_ = p.Wait() // says that it was killed
	}
}

// status runs poundlock status --json.
func (c *cluster) status(flags ...string) (s status, code int, err error) {
	out, code, err := c.run(append([]string{"status", "--json", "--servers", c.servers}, flags...)...)
	if err == nil || code == 69 {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, code, err
}

func (c *cluster) run(args ...string) (out string, code int, err error) {
	path, err := binary()
	if err != nil {
		return "", 0, err
	}
	cmd := command(c.from, path, args...)
	cmd.Env = cleanEnv()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, &stderr)
		code = exit.ExitCode()
	}
	return stdout.String(), code, err
}

// command is a command in a network namespace, "" for that of the test.
func command(host, path string, args ...string) *exec.Cmd {
	if host == "" {
		return exec.Command(path, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", host, path}, args...)...)
}

// status is what the tests read of the JSON of poundlock status.
type status struct {
	Quorum, Reachable int
	RestartSafe       bool `json:"restart_safe"`
	LossBudget        int  `json:"loss_budget"`
	Servers           []struct {
		Name, Incarnation, Error string
		Reachable, Draining      bool
		Sessions                 int
		ClockAheadMS             int64 `json:"clock_ahead_ms"`
		ClockWrong               bool  `json:"clock_wrong"`
	}
	Locks []struct {
		Name, Kind string
		Holders    []holder
		Waiters    []request
	}
}

type holder struct {
	ID, Label      string
	AgeMS          int64 `json:"age_ms"`
	SupportsLive   int   `json:"supports_live"`
	SupportsNeeded int   `json:"supports_needed"`
	LossBudget     int   `json:"loss_budget"`
}

type request struct {
	ID, Label string
	AgeMS     int64 `json:"age_ms"`
	Supports  int
}

// cleanEnv is the environment without poundlock's variables.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "POUNDLOCK_") {
			env = append(env, kv)
		}
	}
	return env
}

// A process is a client process: the test binary in another role.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr proctest.Log
}

// startClient starts a client process; args are JSON in its environment.
func startClient(t *testing.T, a clientArgs) *process {
	t.Helper()
	role, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: command(a.Host, exe)}
	p.cmd.Env = append(cleanEnv(), roleVariable+"="+string(role))
	if a.ClockOffset != "" {
		p.cmd.Env = append(p.cmd.Env, offsetVariable+"="+a.ClockOffset)
	}
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// say sends one line.
func (p *process) say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		p.t.Fatalf("client: %v\n%s", err, &p.stderr)
	}
}

// hear reads one line.
func (p *process) hear() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("client: %v\n%s", err, &p.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// end closes the client's stdin, which ends it, and returns its last line.
func (p *process) end() string {
	p.t.Helper()
	p.stdin.Close()
	line := p.hear()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("client: %v\n%s", err, &p.stderr)
	}
	return line
}
