// Package proctest helps tests that start processes: it tells whether they still
// run, and fails a test binary that leaves some behind. It reads /proc, and knows
// nothing where there is none.
package proctest

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Running is false for a process that has ended, even if nobody has waited for it.
func Running(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	s := string(text)
	state := strings.TrimSpace(s[strings.LastIndexByte(s, ')')+1:])
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// children are the processes that a process has started.
func children(pid int) (all []int) {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, f := range lists {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// Child finds a running child of a process by an argument of its command line. It
// returns 0 if there is none.
func Child(parent int, argument string) int {
	for _, pid := range children(parent) {
		cmdline, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if strings.Contains(string(cmdline), "\x00"+argument+"\x00") && Running(pid) {
			return pid
		}
	}
	return 0
}

// KillNamesakes kills a process and those of its descendants that have its name, as killall
// and pkill would, and returns how many these were.
func KillNamesakes(pid int) int {
	comm := func(pid int) string {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		return string(text)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	name := comm(pid)
	all = slices.DeleteFunc(all, func(pid int) bool { return comm(pid) != name })
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(all)
}

// A Main runs the tests of a package and then fails if a process of the test
// binary is left: some test started it, or something that it started did. No signal
// is ignored meanwhile: what tests start would inherit that from nohup, say.
type Main struct {
	Tests interface{ Run() int }

	// Patience is how long processes that were told to end may take. Default: a minute.
	Patience time.Duration
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

// Run implements what a testing.M does.
func (m Main) Run() int {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			// Caught by this process, it is at its default in those that it starts.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	code := m.Tests.Run()
	left := others()
	for end := time.Now().Add(cmp.Or(m.Patience, patience)); len(left) > 0 && time.Now().Before(end); left = others() {
		time.Sleep(10 * time.Millisecond) // they were told to end
	}
	for pid, cmdline := range left {
		fmt.Fprintf(os.Stderr, "proctest: process %d is left: %s\n", pid, cmdline)
		syscall.Kill(pid, syscall.SIGKILL)
		code = max(code, 1)
	}
	return code
}

// others are the processes that run this binary, by id.
func others() map[int]string {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil
	}
	found := map[int]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if exe, err := os.Stat(link); err == nil && os.SameFile(self, exe) && Running(pid) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found[pid] = strings.ReplaceAll(string(cmdline), "\x00", " ")
		}
	}
	return found
}
