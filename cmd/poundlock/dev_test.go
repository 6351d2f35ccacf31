package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
)

// newDevDir is a directory for a development cluster, which ends with the test.
func newDevDir(t *testing.T) string {
	t.Helper()
	dir := proctest.SocketDir(t)
	t.Cleanup(func() { endDev(dir) })
	t.Setenv(clitest.RunAsProgram, "1") // for the cluster's process
	return dir
}

// lives reports whether a cluster has the directory.
func lives(t *testing.T, dir string) bool {
	t.Helper()
	f, err := tryFlock(filepath.Join(dir, devAlive), unix.LOCK_EX)
	if err != nil {
		return true
	}
	f.Close()
	return false
}

func join(t *testing.T, dir string, idle time.Duration) (d *devClient, said string) {
	t.Helper()
	d, err := joinDevIn(t.Context(), dir, idle, func(f string, a ...any) { said += fmt.Sprintf(f, a...) })
	if err != nil {
		t.Fatal(err)
	}
	return d, said
}

// A cluster without clients ends after a time, and not while it has one.
func TestDevEnds(t *testing.T) {
	const idle = 300 * time.Millisecond
	dir := newDevDir(t)
	d, said := join(t, dir, idle)
	if !strings.HasPrefix(said, "started a development cluster in "+dir) {
		t.Errorf("said %q", said)
	}
	time.Sleep(3 * idle)
	if !lives(t, dir) {
		t.Fatal("ended under its client")
	}
	began := time.Now()
	d.leave()
	for lives(t, dir) {
		if time.Since(began) > patience {
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
func TestDevCountsSessions(t *testing.T) {
	const idle = 200 * time.Millisecond
	dir := newDevDir(t)
	d, _ := join(t, dir, idle)
	c, err := poundlock.Dial(t.Context(), d.config)
	if err != nil {
		t.Fatal(err)
	}
	d.leave()
	time.Sleep(4 * idle)
	if !lives(t, dir) {
		t.Error("ended under a session")
	}
	c.Close()
}

// Clients that come while a cluster ends find a cluster that lives: each of them
// gets a lock.
func TestDevEndsWhileClientsCome(t *testing.T) {
	const idle = 20 * time.Millisecond
	dir := newDevDir(t)
	started := 0
	for i := 0; i < 12 || started < 2; i++ { // the longer a pause, the surer it ends in it
		if i == 200 {
			t.Fatalf("started %d times: nothing was tested", started)
		}
		d, said := join(t, dir, idle)
		if strings.HasPrefix(said, "started") {
			started++
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c, err := poundlock.Dial(ctx, d.config)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if _, err := c.Mutex("a").Lock(ctx); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		c.Close()
		cancel()
		d.leave()
		time.Sleep(idle + time.Duration(i)*2*time.Millisecond)
	}
}

// Many first clients at once start one cluster.
func TestDevStartsOnce(t *testing.T) {
	dir := newDevDir(t)
	var mu sync.Mutex
	started := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			d, err := joinDevIn(t.Context(), dir, time.Minute, func(f string, a ...any) {
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
			d.leave()
		})
	}
	all.Wait()
	if started != 1 {
		t.Errorf("started %d clusters", started)
	}
}

// A cluster whose directory was removed ends, also when another one has come there.
func TestDevDirectoryRemoved(t *testing.T) {
	const idle = 400 * time.Millisecond
	dir := newDevDir(t)
	d, _ := join(t, dir, idle)
	defer d.leave()
	text, err := os.ReadFile(filepath.Join(dir, devAlive))
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
	second, said := join(t, dir, time.Minute)
	defer second.leave()
	if !strings.HasPrefix(said, "started") {
		t.Errorf("said %q", said)
	}
	for end := time.Now().Add(patience); proctest.Running(first); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first one does not end")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := poundlock.Dial(ctx, second.config)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A cluster that cannot start says why, and leaves the directory to the next one.
func TestDevCannotStart(t *testing.T) {
	dir := newDevDir(t)
	if err := os.Mkdir(filepath.Join(dir, "s3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s3", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := joinDevIn(t.Context(), dir, time.Minute, func(string, ...any) {})
	if err == nil {
		t.Fatal("started")
	}
	if log, _ := os.ReadFile(filepath.Join(dir, devLog)); !strings.Contains(string(log), "s3") {
		t.Errorf("log %q", log)
	}
	if err := os.RemoveAll(filepath.Join(dir, "s3")); err != nil {
		t.Fatal(err)
	}
	d, _ := join(t, dir, time.Minute)
	d.leave()
}

// A client that joins a cluster as it dies starts another one.
func TestDevDies(t *testing.T) {
	run := proctest.SocketDir(t)
	dir := filepath.Join(run, "poundlock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endDev(dir) })
	dying, err := tryFlock(filepath.Join(dir, devAlive), unix.LOCK_EX) // and no socket listens
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "lock", "--dev", "a", "--", "echo", "inside")
	c.Env = append(os.Environ(), clitest.RunAsProgram+"=1", "XDG_RUNTIME_DIR="+run)
	var out strings.Builder
	c.Stdout = &out
	messages, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	first := "poundlock: joined the development cluster in " + dir + "\n"
	text := make([]byte, len(first))
	if _, err := io.ReadFull(messages, text); err != nil || string(text) != first {
		t.Errorf("said %q, %v", text, err)
	}
	dying.Close()
	rest, _ := io.ReadAll(messages)
	if err := c.Wait(); err != nil || out.String() != "inside\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	if !strings.HasPrefix(string(rest), "poundlock: started a development cluster in "+dir) {
		t.Errorf("then said %q", rest)
	}
}

// Two users have two clusters, also where both use /tmp, and neither can use the
// other's.
func TestDevTwoUsers(t *testing.T) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: two real users need root")
	}
	tmp := proctest.SocketDir(t)
	if err := os.Chmod(tmp, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(tmp, "poundlock")
	copyFile(t, os.Args[0], program)
	as := func(uid uint32, args ...string) *exec.Cmd {
		c := exec.Command(program, args...)
		c.Env = []string{clitest.RunAsProgram + "=1", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}
		c.Dir = tmp
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return c
	}
	for _, uid := range []uint32{0, nobody} {
		dir := filepath.Join(tmp, fmt.Sprint("poundlock-", uid))
		t.Cleanup(func() { endDev(dir) })
	}

	// Root holds the lock until its standard input ends.
	holder := as(0, "lock", "--dev", "a", "--", "sh", "-c", "echo inside; read x")
	in, _ := holder.StdinPipe()
	out, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		holder.Wait()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("inside\n"))); err != nil {
		t.Fatal(err)
	}

	if text, err := as(nobody, "lock", "--dev", "-n", "a", "--", "id", "-u").CombinedOutput(); err != nil ||
		!strings.Contains(string(text), "65534\n") || !strings.Contains(string(text), "started a development cluster") {
		t.Errorf("another user: %v: %s", err, text)
	}
	if text, err := as(0, "lock", "--dev", "-n", "a", "--", "true").CombinedOutput(); exitCode(err) != cli.ExitNotAcquired {
		t.Errorf("the same user: %v: %s", err, text)
	}

	// A directory that somebody else made first, or lends, is refused.
	run := filepath.Join(tmp, "run")
	if err := os.MkdirAll(filepath.Join(run, "poundlock"), 0o700); err != nil {
		t.Fatal(err)
	}
	os.Chmod(run, 0o777)
	c := as(nobody, "lock", "--dev", "a", "--", "true")
	c.Env = append(c.Env, "XDG_RUNTIME_DIR="+run)
	if text, err := c.CombinedOutput(); exitCode(err) != cli.ExitUsage || !strings.Contains(string(text), "belongs to another user") {
		t.Errorf("a directory of root: %v: %s", err, text)
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return 0
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err == nil {
		err = os.Chmod(to, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
