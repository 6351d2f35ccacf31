package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

func TestCgroupOf(t *testing.T) {
	const v2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	const other = "24 1 0:5 / / rw - ext4 /dev/sda rw\n29 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for name, x := range map[string]struct {
		membership, mounts string
		want               cgroup
	}{
		"version 2":              {"0::/user.slice/run-7.scope\n", other + v2, "/sys/fs/cgroup/user.slice/run-7.scope"},
		"the root":               {"0::/\n", v2, "/sys/fs/cgroup"},
		"beside version 1":       {"4:memory:/x\n1:name=systemd:/y\n0::/z\n", other + v2, "/sys/fs/cgroup/z"},
		"version 1":              {"4:memory:/x\n1:name=systemd:/y\n", other, ""},
		"not mounted":            {"0::/z\n", other, ""},
		"a part is mounted":      {"0::/box/z\n", "35 24 0:30 /box /cg rw - cgroup2 cgroup2 rw\n", "/cg/z"},
		"another part":           {"0::/z\n", "35 24 0:30 /box /cg rw - cgroup2 cgroup2 rw\n", ""},
		"outside of a namespace": {"0::/../z\n", v2, ""},
		"nonsense":               {"0::\n\n::", "a - cgroup2 \n - cgroup2 - \n\n", ""},
	} {
		if got := cgroupOf(x.membership, x.mounts); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// The files of a control group, in a directory that is none.
func TestCgroupFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup."+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := cgroup(dir)
	if c.populated() || c.pids() != nil {
		t.Error("something lives where nothing is")
	}
	c.kill()
	if _, err := os.Stat(c.file("kill")); err == nil {
		t.Error("a file is made")
	}
	if got := c.enclose(7); got != "" {
		t.Errorf("enclosed in %s, which is an ordinary directory", got)
	}
	put("events", "populated 1\nfrozen 0\n")
	put("procs", "12\n0\n345\n")
	put("kill", "")
	if c.kill(); !c.populated() || !slices.Equal(c.pids(), []int{12, 345}) {
		t.Errorf("populated %v, processes %v", c.populated(), c.pids())
	}
	if text, _ := os.ReadFile(c.file("kill")); string(text) != "1" {
		t.Errorf("%q is written", text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "poundlock-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// delegated is a control group of version 2 for one test, which belongs to a user.
func delegated(t *testing.T, uid int) cgroup {
	t.Helper()
	const why = "SKIPPED: this needs a control group of version 2 that is writable: systemd-run --user --scope -p Delegate=yes go test"
	own := readCgroup("self")
	if own == "" {
		t.Skip(why)
	}
	dir, err := os.MkdirTemp(string(own), "test-")
	if err != nil {
		t.Skip(why)
	}
	c := cgroup(dir)
	t.Cleanup(func() {
		c.kill()
		eventually(t, patience, "the control group is empty", func() bool {
			inner, _ := filepath.Glob(filepath.Join(dir, "poundlock-*"))
			for _, x := range inner {
				syscall.Rmdir(x)
			}
			return syscall.Rmdir(dir) == nil
		})
	})
	if _, err := os.Stat(c.file("kill")); err != nil {
		t.Skip("SKIPPED: this needs Linux 5.14, which can end a control group as a whole")
	}
	for _, name := range []string{"", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"} {
		if err := os.Chown(dir+name, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// within lets a supervisor begin its life in a control group.
func (o options) within(t *testing.T, c cgroup) options {
	t.Helper()
	dir, err := os.Open(string(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	attr := syscall.SysProcAttr{}
	if o.attr != nil {
		attr = *o.attr
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	o.attr = &attr
	o.env = append(o.env, withCgroups+"=1")
	return o
}

func (l *lock) wantNoGroup(c cgroup) {
	l.t.Helper()
	eventually(l.t, patience, "the command's control group is removed", func() bool {
		inner, _ := filepath.Glob(filepath.Join(string(c), "poundlock-*"))
		return len(inner) == 0
	})
}

// A control group is ended as a whole: what has left the process group, and what is
// another user's, when the lock is lost and when the supervisor is killed.
func TestCgroupEnds(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"lost": false, "killed": true} {
		for _, rooted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " set-uid"}[rooted], func(t *testing.T) {
				o, uid, text := options{}, os.Geteuid(), `
setsid sh -c 'trap "" TERM; echo $$ >pid; while :; do sleep 0.02; done' &
wait`
				if rooted {
					o, uid, text = asNobody(t), nobody, strange
				}
				c := delegated(t, uid)
				t.Parallel()
				o = o.within(t, c)
				o.grace = 300 * time.Millisecond
				if !killed {
					o.lose = 300 * time.Millisecond
				}
				l := script(t, o, text)
				pid := l.pid("pid")
				if killed {
					l.cmd.Process.Kill()
				} else {
					l.want(statusLost)
				}
				eventually(t, patience, "the process has ended", gone(pid))
				if said := l.stderr.String(); strings.Contains(said, "no right") || !strings.Contains(said, "ending its command") {
					t.Errorf("stderr: %s", said)
				}
				l.wantNoGroup(c)
			})
		}
	}
}

// What a command leaves behind when it ends by itself runs on, and the control group goes.
func TestCgroupLeft(t *testing.T) {
	c := delegated(t, os.Geteuid())
	l := script(t, options{}.within(t, c), "(exec sleep 60) >/dev/null 2>&1 & echo $! >pid; exit 5")
	l.want(5)
	l.wantNoGroup(c)
	if pid := l.pid("pid"); !proctest.Running(pid) || !slices.Contains(c.pids(), pid) {
		t.Errorf("process %d running %v, in %v", pid, proctest.Running(pid), c.pids())
	}
}

// A process of root's may leave the control group, and is then beyond what ends: it says so
// as soon as there is one.
func TestCgroupLeftByRoot(t *testing.T) {
	o := asNobody(t)
	c := delegated(t, nobody)
	o = o.within(t, c)
	o.lose, o.grace = 300*time.Millisecond, 300*time.Millisecond
	leave := `echo 0 >` + filepath.Dir(string(c)) + `/cgroup.procs; echo $$ >pid`
	l := script(t, o, strings.Replace(strange, "echo $$ >pid", leave, 1))
	leader, root := l.pid("pid2"), l.pid("pid")
	l.says(noRight + `: should lock "pretence" be lost`)
	l.says(noRight + "; the lock is held until that has ended")
	eventually(t, patience, "the leader has ended", gone(leader))
	if !proctest.Running(root) {
		t.Error("root's process has ended")
	}
	l.letEnd()
	l.want(statusLost)
	l.wantNoGroup(c)
}
