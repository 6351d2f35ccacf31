package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/devcluster"
	"github.com/poundlock/poundlock/internal/proctest"
)

// A client that joins a cluster as it dies starts another one.
func TestDevDies(t *testing.T) {
	t.Parallel()
	run := proctest.SocketDir(t)
	dir := filepath.Join(run, "poundlock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endDev(dir) })
	dying, err := os.Create(filepath.Join(dir, devcluster.Alive)) // and no socket listens
	if err == nil {
		err = unix.Flock(int(dying.Fd()), unix.LOCK_EX)
	}
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
	t.Parallel()
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

// copyFile copies a program. Another process does: a child that is started meanwhile has what this one has open for writing, and a
// program that somebody may write does not start.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("install", "-m", "755", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
