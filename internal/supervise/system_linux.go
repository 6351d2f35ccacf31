package supervise

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childAttr puts the child in its own process group. The kernel sends it the
// orphan signal, unless 0, when the supervisor dies: a second line behind the
// watchdog, for the case that both were killed.
func childAttr(orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
}

// members are the processes of a process group that can still do something: not those
// that have ended and for which nobody has waited, which in a container the first process
// often never does. They are not known where none at all can be seen: they may be hidden
// from this user.
func members(group int) (live []int, known bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// PID (NAME) STATE PARENT GROUP ... THREADS ...; the name may hold anything.
		const state, ofGroup, threads = 0, 2, 17
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) <= threads || string(fields[ofGroup]) != strconv.Itoa(group) {
			continue
		}
		known = true
		// The state is that of the first thread, which others may outlive.
		k, err := strconv.Atoi(string(fields[threads]))
		if s := fields[state][0]; err != nil || k > 1 || s != 'Z' && s != 'X' {
			live = append(live, pid)
		}
	}
	return live, known
}

// marked are the processes, as far as this one may look, that began with an entry in their environment, and that
// can still do something.
func marked(entry string) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		// That of a process which has ended is empty.
		if env, _ := os.ReadFile("/proc/" + name + "/environ"); bytes.Contains(append([]byte{0}, env...), []byte("\x00"+entry+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// allVisible reports whether this process sees those of other users, too.
func allVisible() bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && !bytes.Contains(mounts, []byte("hidepid="))
}

// stopGroup sends SIGTSTP to this process's group, with the signal's default
// action in this process: os/signal keeps the runtime's handler, which does
// nothing, for a signal that it once asked for. The caller calls restore when the
// process was continued.
func stopGroup() (restore func()) {
	// All zeros is the default action, whatever the layout of the structure.
	var action, old [64]byte
	set := func(to, from *[64]byte) {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP),
			uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), 8, 0, 0)
	}
	set(&action, &old)
	unix.Kill(0, unix.SIGTSTP)
	return func() { set(&old, nil) }
}

// holdTTOU calls f with SIGTTOU blocked: a process that is not in the foreground
// may then write to the terminal and change its foreground instead of being
// stopped. Ignoring the signal would do so too, and the command would inherit it.
func holdTTOU(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	const bits = 8 * int(unsafe.Sizeof(set.Val[0]))
	set.Val[(int(unix.SIGTTOU)-1)/bits] |= 1 << ((int(unix.SIGTTOU) - 1) % bits)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err == nil {
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	f()
}

// The orphan signal is sent to the process that the first thread of a gate becomes: one that another thread becomes is not sent it.
func init() {
	if len(os.Args) > 1 && os.Args[1] == GateCommand {
		runtime.LockOSThread() // main runs where init does
	}
}
