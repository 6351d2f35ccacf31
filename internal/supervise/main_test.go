//go:build unix

package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// TestMain makes this binary the programs of this package: the gate, the watchdog,
// a supervisor whose lock is a pretence, and a process that tells how long it runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case GateCommand:
			inGate()
			status, err := Gate(os.Args[2:])
			fmt.Fprintln(os.Stderr, "gate:", err)
			os.Exit(status)
		case WatchdogCommand:
			if err := Watch(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, farewell); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "beat":
			beat()
		case "pretend":
			os.Exit(pretend(os.Args[2:]))
		}
	}
	// The race detector lets every process sleep for a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	lane.Waits()
	os.Exit(proctest.Main{Tests: m}.Run())
}

// inGate is what a gate does first.
var inGate = func() {}

// withCgroups is the variable that lets a supervisor use control groups.
const withCgroups = "WITH_CGROUPS"

// statusLost is the exit status of a supervisor whose lock was lost.
const statusLost = 74

// pretend runs a command under a lock that exists in this process only:
//
//	LEASE ACTION GRACE RENEW-FOR LOSE-AFTER -- COMMAND
//
// Every third of a lease until RENEW-FOR is over its end moves to a lease from
// now. LOSE-AFTER the command has written the file "pid" or "pid2", unless 0s, the lock
// is lost; if it is negative, the end is in the past after that long, and nobody says
// more. The file "lease", if it is there, tells the end.
func pretend(args []string) int {
	durations := make([]time.Duration, 5)
	for _, i := range []int{0, 2, 3, 4} {
		d, err := time.ParseDuration(args[i])
		if err != nil {
			panic(err)
		}
		durations[i] = d
	}
	lease, grace, renew, lose := durations[0], durations[2], durations[3], durations[4]
	cgroups = os.Getenv(withCgroups) != ""
	lost := make(chan struct{})
	var past atomic.Bool // the end is
	if lose != 0 {
		go func() {
			for !written("pid") && !written("pid2") {
				time.Sleep(2 * time.Millisecond)
			}
			time.Sleep(max(lose, -lose))
			if past.Store(lose < 0); lose > 0 {
				close(lost)
			}
		}()
	}
	mark := fmt.Sprintf("PRETENDER=%d", os.Getpid())
	start := time.Now()
	c := Command{
		Args:   args[6:],
		Env:    append(os.Environ(), mark),
		Mark:   mark,
		Name:   "pretence",
		Lease:  lease,
		Lost:   lost,
		OnLoss: Action(args[1]),
		Grace:  grace,
		End: func() time.Time {
			if past.Load() {
				return start
			}
			step := lease / 3
			end := start.Add(min(time.Since(start), renew) / step * step).Add(lease)
			if f, err := os.OpenFile("lease", os.O_WRONLY, 0); err == nil {
				f.WriteAt([]byte(end.Format(time.RFC3339Nano+"\n")), 0)
				f.Close()
			}
			return end
		},
		Signals: Signals(),
		Log:     func(f string, a ...any) { fmt.Fprintf(os.Stderr, "lock: "+strings.TrimSpace(f)+"\n", a...) },
	}
	if c.OnLoss != Warn {
		var err error
		if c.Watchdog, err = StartWatchdog(c.Name, c.OnLoss, grace); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		dir, _ := os.Getwd()
		if !written("main_test.go") { // else it is that of the package
			will, _ := json.Marshal(filepath.Join(dir, "farewell"))
			c.Watchdog.SetFarewell(will)
		}
	}
	result, err := c.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if result.Interrupted {
		Interrupt()
	}
	if result.Lost {
		return statusLost
	}
	return result.Status
}

func written(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Size() > 0
}

// beat writes the time to the file "beat" until it is killed.
func beat() {
	rename("beat")
	signal.Ignore(syscall.SIGTERM)
	f, err := os.Create("beat")
	if err != nil {
		panic(err)
	}
	for {
		if _, err := f.WriteAt([]byte(time.Now().Format(time.RFC3339Nano+"\n")), 0); err != nil {
			panic(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// farewell writes the time to the file that it is told.
func farewell(will []byte) error {
	var path string
	if err := json.Unmarshal(will, &path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(time.Now().Format(time.RFC3339Nano+"\n")), 0o600)
}
