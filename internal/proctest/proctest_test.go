package proctest

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "linger" {
		time.Sleep(time.Minute)
		return
	}
	os.Exit(Main{Tests: m}.Run())
}

func TestLeftIsFound(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	c := exec.Command(os.Args[0], "linger")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	if !Running(pid) {
		t.Error("does not run")
	}
	if got := Child(os.Getpid(), "linger"); got != pid {
		t.Errorf("child %d, want %d", got, pid)
	}
	if code := (Main{Tests: passes{}, Patience: 100 * time.Millisecond}).Run(); code == 0 {
		t.Error("left, and nobody noticed")
	}
	c.Wait() // it was killed
	if code := (Main{Tests: passes{}}).Run(); code != 0 {
		t.Error("nothing is left any more")
	}
}

type passes struct{}

func (passes) Run() int { return 0 }
