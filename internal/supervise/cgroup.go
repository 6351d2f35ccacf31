//go:build unix

package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cgroup is the directory of a control group (version 2, Linux) that holds a command
// and whatever it starts; "" is none, of which nothing is known and which nothing ends.
type cgroup string

// cgroups is false in tests of process groups.
var cgroups = true

// cgroupOf is the control group of a process, "" where there is none to be seen.
// Its arguments are what /proc/PID/cgroup and /proc/self/mountinfo say.
func cgroupOf(membership, mounts string) cgroup {
	path, found := "", false
	for line := range strings.Lines(membership) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/"); ok {
			path, found = "/"+p, filepath.IsLocal("./"+p) // else it is outside of this namespace
		}
	}
	for line := range strings.Lines(mounts) {
		// ID PARENT DEVICE ROOT POINT OPTIONS... - TYPE ...
		const root, point = 3, 4
		place, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(place)
		if !found || len(fields) <= point || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		// A mount may show a part of the tree only, and this process be elsewhere.
		if below, err := filepath.Rel(fields[root], path); err == nil && filepath.IsLocal(below) {
			return cgroup(filepath.Join(fields[point], below))
		}
	}
	return ""
}

// enclose makes a control group below this process's own one and puts a process into it.
// It is "" where that cannot be done: there is no such thing, it is not for this user to
// do, or the kernel cannot end one as a whole (Linux before 5.14).
func enclose(pid int) cgroup {
	if !cgroups {
		return ""
	}
	return readCgroup("self").enclose(pid)
}

// readCgroup is the control group of a process, "" where it cannot be seen.
func readCgroup(pid string) cgroup {
	membership, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return cgroupOf(string(membership), string(mounts))
}

func (c cgroup) enclose(pid int) cgroup {
	if c == "" {
		return ""
	}
	dir, err := os.MkdirTemp(string(c), "poundlock-")
	if err != nil {
		return ""
	}
	inner := cgroup(dir)
	if _, err := os.Stat(inner.file("kill")); err != nil || inner.write("procs", strconv.Itoa(pid)) != nil {
		os.Remove(dir)
		return ""
	}
	return inner
}

func (c cgroup) file(name string) string { return filepath.Join(string(c), "cgroup."+name) }

// write writes to a file that is there: a directory of another kind gets none.
func (c cgroup) write(name, text string) error {
	f, err := os.OpenFile(c.file(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// kill ends all of its processes, whoever's they are and whatever they start meanwhile.
func (c cgroup) kill() {
	if c != "" {
		c.write("kill", "1")
	}
}

// populated reports whether a process in it, or below it, lives.
func (c cgroup) populated() bool {
	if c == "" {
		return false
	}
	text, err := os.ReadFile(c.file("events"))
	return err == nil && bytes.Contains(text, []byte("populated 1"))
}

// empty reports whether no process in it, nor below it, lives, for certain.
func (c cgroup) empty() bool {
	if c == "" {
		return true
	}
	text, err := os.ReadFile(c.file("events"))
	return errors.Is(err, os.ErrNotExist) || err == nil && bytes.Contains(text, []byte("populated 0"))
}

// holds reports whether a process is in it, or below it. A process with the right to do so,
// such as root's, may have moved itself elsewhere.
func (c cgroup) holds(pid int) bool {
	at := readCgroup(strconv.Itoa(pid))
	return c != "" && (at == c || strings.HasPrefix(string(at), string(c)+"/"))
}

// pids are its processes.
func (c cgroup) pids() (pids []int) {
	if c == "" {
		return nil
	}
	text, _ := os.ReadFile(c.file("procs"))
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 { // 0: of another namespace
			pids = append(pids, pid)
		}
	}
	return pids
}

// remove moves what lives in it out, as what a command leaves behind when it ends by
// itself, and removes it. What has groups of its own in there stays where it is.
func (c cgroup) remove() {
	if c == "" {
		return
	}
	outside := cgroup(filepath.Dir(string(c)))
	for range 10 { // the kernel takes a moment, and processes start others
		for _, pid := range c.pids() {
			outside.write("procs", strconv.Itoa(pid))
		}
		if err := syscall.Rmdir(string(c)); err != syscall.EBUSY {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
