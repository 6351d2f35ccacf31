package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// cpuTime is the time that a process has had on processors. Its unit is a tick of
// 10 ms, the kernel's USER_HZ.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses and may hold anything; utime and
	// stime are the 14th and 15th.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, f := range fields[11:13] {
		k, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("bench: processor time of %d: %w", pid, err)
		}
		ticks += k
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
