package supervise

import (
	"bytes"
	"os"
	"strconv"
)

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
