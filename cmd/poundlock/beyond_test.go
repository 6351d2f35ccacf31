package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// TestReleaseAlone: an operator's grace, be it none at all, lets nobody in while the
// command of the holder runs, whether the holder allows a shorter one than its own or not.
func TestReleaseAlone(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		flags []string
		told  string
	}{
		"its own grace": {[]string{"--grace", "1s"}, `was told to leave lock "a", within 1s`},
		"any grace":     {[]string{"--grace", "1s", "--release-grace", "0"}, `was told to leave lock "a" at once`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			own := s.flags
			s.flags = append(append([]string{"--lease", "10s"}, own...), x.flags...)
			s.flags = append(s.flags, "--lease", "10s") // nothing here is to end with it
			p := s.lock(family)
			grandchild, child := s.await("grandchild"), s.await("pid")
			release := clitest.Command(append([]string{"release", "a", "--reason", "mine", "--grace", "0"}, own...)...)
			var said proctest.Log
			release.Stdout, release.Stderr = &said, &said
			if err := release.Start(); err != nil {
				t.Fatal(err)
			}
			g := s.next()
			if a, b := proctest.Running(child), proctest.Running(grandchild); a || b {
				t.Errorf("beside the next holder: child %v, grandchild %v", a, b)
			}
			p.want(cli.ExitLost)
			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
			if err := release.Wait(); err != nil || !strings.Contains(said.String(), x.told) {
				t.Errorf("release: %v: %s", err, &said)
			}
		})
	}
}

// TestCommandOfAnotherUser: poundlock has no right to end its command. It says so, and
// nobody is told anything else; as long as it can hold the lock, it does, though --max-hold
// is over or an operator asks for it.
func TestCommandOfAnotherUser(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "commands of another user, which take five seconds to end")
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a set-uid program and another user need root")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("SKIPPED: setpriv of util-linux is not installed")
	}
	const script = `trap "" TERM; echo $$ >pid; until test -e end; do sleep 0.02; done; echo over >over`
	for name, flags := range map[string][]string{
		"max-hold": {"--max-hold", "1s", "--grace", "500ms", "--lease", "1s"},
		"release":  {"--grace", "500ms", "--lease", "1s"},
		"killed":   {"--lease", "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.SocketDir(t)
			program, rooted := filepath.Join(dir, "poundlock"), filepath.Join(dir, "rooted")
			copyFile(t, os.Args[0], program)
			copyFile(t, setpriv, rooted)
			for path, mode := range map[string]os.FileMode{dir: os.ModeSticky | 0o777, rooted: os.ModeSetuid | 0o755} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { endDev(filepath.Join(dir, "poundlock-65534")) })
			s := &stage{t: t, dir: dir}
			start := func(args ...string) *lockProcess {
				p := &lockProcess{stage: s, cmd: exec.Command(program, args...), ended: make(chan struct{})}
				p.cmd.Env = []string{clitest.RunAsProgram + "=1", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
				p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = dir, &p.stderr, 10*time.Second
				p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				go func() {
					p.cmd.Wait()
					close(p.ended)
				}()
				t.Cleanup(func() {
					p.cmd.Process.Kill()
					<-p.ended
				})
				return p
			}
			lock := append([]string{"lock", "--dev", "a"}, flags...)
			holder := start(append(lock, "--", rooted, "--reuid=0", "--regid=0", "--clear-groups", "sh", "-c", script)...)
			pid := s.await("pid")
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
			const noRight = "has a process of another user, which poundlock has no right to end"
			holder.says(noRight + `: should lock "a" be lost, or poundlock be killed, it would run on without the lock`)
			next := start("lock", "--dev", "a", "--", "sh", "-c", "test -e over; echo $? >next")
			entered := 0 // the next holder finds that the command is over
			switch name {
			case "release":
				release := start("release", "--dev", "a", "--reason", "mine", "--grace", "0", "--timeout", "1s")
				release.want(cli.ExitError)
				if !strings.Contains(release.stderr.String(), `has not left lock "a"`) {
					t.Errorf("release: %s", release.stderr.String())
				}
				fallthrough
			case "max-hold":
				holder.says(noRight + "; the lock is held until that has ended")
				time.Sleep(3 * time.Second) // the grace, and two leases
				if _, err := s.read("next"); err == nil {
					t.Error("the next holder is inside")
				}
			case "killed":
				holder.cmd.Process.Kill()
				holder.says(noRight + "; it runs on when somebody else has the lock")
				s.await("next")
				entered = 1
			}
			s.write("end")
			if name != "killed" {
				holder.want(cli.ExitLost)
			}
			next.want(0)
			if got := s.await("next"); got != entered {
				t.Errorf("test -e over gave %d to the next holder, want %d", got, entered)
			}
			if said := holder.stderr.String(); strings.Contains(said, "ending its command") || strings.Contains(said, "killing its command") {
				t.Errorf("the holder said: %s", said)
			}
		})
	}
}
