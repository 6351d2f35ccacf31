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

// WatchdogName is what a list of processes calls the watchdog: who ends all that have
// this program's name (killall, pkill) is not to end the one that ends the rest.
const WatchdogName = "lock-watchdog" // at most 15 bytes count

// rename gives this process another name, where the system lets it.
func rename(name string) { os.WriteFile("/proc/self/comm", []byte(name), 0) }

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
