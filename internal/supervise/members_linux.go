package supervise

import (
	"bytes"
	"os"
	"strconv"
)

// onlyZombies reports whether all processes of a group have ended, though nobody
// has waited for them: in a container the first process often never does.
func onlyZombies(group int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	zombies := 0
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
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
		// The state is that of the first thread, which others may outlive.
		if k, err := strconv.Atoi(string(fields[threads])); err != nil || k > 1 {
			return false
		}
		if s := fields[state][0]; s != 'Z' && s != 'X' {
			return false
		}
		zombies++
	}
	return zombies > 0 // none at all: hidden from this user
}
