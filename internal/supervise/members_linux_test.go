package supervise

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// With the argument "headless" this binary ends its first thread and lives on.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "headless" {
		runtime.LockOSThread() // init runs on the first thread
		go func() {
			time.Sleep(time.Minute)
			os.Exit(0)
		}()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// A process that looks like a zombie may still run, in its other threads.
func TestHeadless(t *testing.T) {
	c := exec.Command(os.Args[0], "headless")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	g := group{id: c.Process.Pid}
	zombie := func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(g.id) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(status), "State:\tZ")
	}
	eventually(t, 10*time.Second, "its first thread has ended", zombie)
	if !g.alive() {
		t.Error("a group that runs is taken for one that has ended")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the group has ended", func() bool { return !g.alive() })
	c.Wait()
}
