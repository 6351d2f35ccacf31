package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/internal/proctest"
)

// atLast is when what must come at last has come, on any machine.
const atLast = time.Minute

// TestMain makes this binary the cluster, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Run(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// end kills the cluster in a directory, if there is one.
func end(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, Alive))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// newDir is a directory for a development cluster, which ends with the test.
func newDir(t *testing.T) string {
	t.Helper()
	dir := proctest.SocketDir(t)
	t.Cleanup(func() { end(dir) })
	return dir
}

// lives reports whether a cluster has the directory.
func lives(t *testing.T, dir string) bool {
	t.Helper()
	f, err := private.Lock(filepath.Join(dir, Alive), unix.LOCK_EX)
	if err != nil {
		return true
	}
	f.Close()
	return false
}

func joined(t *testing.T, dir string, idle time.Duration) (d *Client, said string) {
	t.Helper()
	d, err := join(t.Context(), dir, idle, func(f string, a ...any) { said += fmt.Sprintf(f, a...) })
	if err != nil {
		t.Fatal(err)
	}
	return d, said
}

// A cluster without clients ends after a time, and not while it has one.
func TestEnds(t *testing.T) {
	const idle = 300 * time.Millisecond
	dir := newDir(t)
	d, said := joined(t, dir, idle)
	if !strings.HasPrefix(said, "started a development cluster in "+dir) {
		t.Errorf("said %q", said)
	}
	time.Sleep(3 * idle)
	if !lives(t, dir) {
		t.Fatal("ended under its client")
	}
	began := time.Now()
	d.Leave()
	for lives(t, dir) {
		if time.Since(began) > atLast {
			t.Fatal("does not end")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if lived := time.Since(began); lived < idle/2 {
		t.Errorf("ended %v after its last client", lived)
	}
	if sockets, _ := filepath.Glob(filepath.Join(dir, "s?")); len(sockets) != 0 {
		t.Errorf("left %v", sockets)
	}
}

// A client that connects to the sockets by itself is a client too.
func TestCountsSessions(t *testing.T) {
	const idle = 200 * time.Millisecond
	dir := newDir(t)
	d, _ := joined(t, dir, idle)
	c, err := poundlock.Dial(t.Context(), d.Config)
	if err != nil {
		t.Fatal(err)
	}
	d.Leave()
	time.Sleep(4 * idle)
	if !lives(t, dir) {
		t.Error("ended under a session")
	}
	c.Close()
}

// Clients that come while a cluster ends find a cluster that lives: each of them
// gets a lock.
func TestEndsWhileClientsCome(t *testing.T) {
	const idle = 20 * time.Millisecond
	dir := newDir(t)
	started := 0
	for i := 0; i < 12 || started < 2; i++ { // the longer a pause, the surer it ends in it
		if i == 200 {
			t.Fatalf("started %d times: nothing was tested", started)
		}
		d, said := joined(t, dir, idle)
		if strings.HasPrefix(said, "started") {
			started++
		}
		ctx, cancel := context.WithTimeout(t.Context(), atLast)
		c, err := poundlock.Dial(ctx, d.Config)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if _, err := c.Mutex("a").Lock(ctx); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		c.Close()
		cancel()
		d.Leave()
		time.Sleep(idle + time.Duration(i)*2*time.Millisecond)
	}
}

// Many first clients at once start one cluster.
func TestStartsOnce(t *testing.T) {
	dir := newDir(t)
	var mu sync.Mutex
	started := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			d, err := join(t.Context(), dir, time.Minute, func(f string, a ...any) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(f, "started") {
					started++
				}
			})
			if err != nil {
				t.Error(err)
				return
			}
			d.Leave()
		})
	}
	all.Wait()
	if started != 1 {
		t.Errorf("started %d clusters", started)
	}
}

// A cluster whose directory was removed ends, also when another one has come there.
func TestDirectoryRemoved(t *testing.T) {
	const idle = 400 * time.Millisecond
	dir := newDir(t)
	d, _ := joined(t, dir, idle)
	defer d.Leave()
	text, err := os.ReadFile(filepath.Join(dir, Alive))
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	second, said := joined(t, dir, time.Minute)
	defer second.Leave()
	if !strings.HasPrefix(said, "started") {
		t.Errorf("said %q", said)
	}
	for end := time.Now().Add(atLast); proctest.Running(first); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first one does not end")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), atLast)
	defer cancel()
	c, err := poundlock.Dial(ctx, second.Config)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A cluster that cannot start says why, and leaves the directory to the next one.
func TestCannotStart(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(filepath.Join(dir, "s3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s3", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := join(t.Context(), dir, time.Minute, func(string, ...any) {})
	if err == nil {
		t.Fatal("started")
	}
	if log, _ := os.ReadFile(filepath.Join(dir, log)); !strings.Contains(string(log), "s3") {
		t.Errorf("log %q", log)
	}
	if err := os.RemoveAll(filepath.Join(dir, "s3")); err != nil {
		t.Fatal(err)
	}
	d, _ := joined(t, dir, time.Minute)
	d.Leave()
}
