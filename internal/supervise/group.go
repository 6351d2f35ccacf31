//go:build unix

package supervise

import (
	"fmt"
	"syscall"
	"time"
)

// A group is what a command and all that it started is, as far as that can be followed:
// its process group and, where there is one, its control group, which only a process with
// special rights, such as one of root's, can leave.
type group struct {
	id   int // of the process group
	tree cgroup
	mark string // an entry of the command's environment, which nobody else's has
}

// signal is without effect on a group that has ended.
func (g group) signal(s syscall.Signal) { syscall.Kill(-g.id, s) }

// alive reports whether the group has a process that can still do something.
func (g group) alive() bool {
	if syscall.Kill(-g.id, 0) != syscall.ESRCH {
		if live, known := members(g.id); !known || len(live) > 0 {
			return true
		}
	}
	return g.tree.populated()
}

// over reports, when the group has ended, whether all of the command has, for certain. Where alive and over are both false
// nobody can know: the group may have processes that this one cannot see. The watchdog of a lock that the command held itself
// has a moment to end.
func (g group) over() bool {
	gone := false // then its number may be another one's
	for until := now() + time.Second; ; time.Sleep(10 * time.Millisecond) {
		gone = gone || g.gone()
		if gone && g.tree.empty() && len(g.strays()) == 0 {
			return true
		}
		if now() >= until {
			return false
		}
	}
}

// gone reports whether the process group has nobody left who can do something, for certain.
func (g group) gone() bool {
	// Nothing that is started while others look for it outlives that.
	if syscall.Kill(-g.id, syscall.SIGKILL) == syscall.ESRCH {
		return true
	}
	live, known := members(g.id)
	return known && len(live) == 0 && allVisible()
}

// strays are, once the group has ended, the processes of the command that had left it. They are known by the environment
// that they have from the command.
func (g group) strays() []int {
	if g.mark == "" {
		return nil
	}
	return marked(g.mark)
}

// beyond reports whether a process of the group lives that this one has no right to end:
// another user's, such as that of a set-uid program. The control group ends any that it
// still holds.
func (g group) beyond() bool {
	live, known := members(g.id)
	for _, pid := range live {
		if syscall.Kill(pid, 0) == syscall.EPERM && !g.tree.holds(pid) {
			return true
		}
	}
	return !known && g.tree == "" && syscall.Kill(-g.id, 0) == syscall.EPERM // of all of them
}

// kill ends the group at once.
func (g group) kill() {
	g.signal(syscall.SIGKILL)
	g.tree.kill()
}

// end ends the group: with SIGTERM if there is a grace, and with SIGKILL what lives on
// after it. It returns when the group has ended, or soon after the kernel was told to end
// it: then it is false.
func (g group) end(grace time.Duration) (ended bool) {
	if grace > 0 {
		g.signal(syscall.SIGTERM)
		g.signal(syscall.SIGCONT) // a stopped process cannot obey
		for _, pid := range g.tree.pids() {
			if at, err := syscall.Getpgid(pid); err == nil && at != g.id {
				syscall.Kill(pid, syscall.SIGTERM)
				syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		// To look at all processes of a busy machine may take longer than is left.
		onTime := time.AfterFunc(grace, g.kill)
		ended := g.await(grace)
		onTime.Stop()
		if ended {
			return true
		}
	}
	g.kill()
	return g.await(time.Second)
}

// await reports whether the group has ended within a time.
func (g group) await(limit time.Duration) bool {
	until := now() + limit
	for pause := time.Millisecond; g.alive(); pause = min(2*pause, 100*time.Millisecond) {
		if now() >= until {
			return false
		}
		time.Sleep(min(pause, until-now()))
	}
	return true
}

// remains says why a group that was told to end lives on.
func (g group) remains() string {
	if g.beyond() {
		return fmt.Sprintf("process group %d has a process of another user, which poundlock has no right to end", g.id)
	}
	return fmt.Sprintf("process group %d does not end, although it was killed", g.id)
}
