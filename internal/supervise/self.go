//go:build unix

package supervise

import (
	"os"
	"runtime"
)

// The first arguments with which this program is started again: it must hand the
// remaining ones to Gate and to Watch.
const (
	GateCommand     = "gate"
	WatchdogCommand = "watchdog"
)

// Self returns the path that starts this very program again, also when its file
// was replaced or removed since, as an upgrade does.
func Self() (string, error) {
	path, err := os.Executable()
	if runtime.GOOS != "linux" {
		return path, err
	}
	const running = "/proc/self/exe"
	if err != nil {
		return running, nil
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(running)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return path, nil
	}
	return running, nil
}
