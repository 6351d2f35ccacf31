package supervise

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// restless is the variable that has a gate go on in another thread than its first one, if it can.
const restless = "RESTLESS"

func init() {
	inGate = func() {
		if os.Getenv(restless) == "" {
			return
		}
		for range 2 * runtime.GOMAXPROCS(0) {
			go func() {
				for k := uint(0); ; k++ { // for ever
				}
			}()
		}
		for end := time.Now().Add(50 * time.Millisecond); syscall.Gettid() == os.Getpid() && time.Now().Before(end); {
			syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 1000}) // what comes back from a long call goes on where there is room
		}
	}
}

// The supervisor is killed together with its watchdog: the kernel ends the command.
func TestBothKilled(t *testing.T) {
	t.Parallel()
	l := script(t, options{env: []string{restless + "=1"}}, "echo $$ >pid; exec sleep 600")
	pid := l.pid("pid")
	syscall.Kill(l.watchdog(), syscall.SIGKILL)
	l.cmd.Process.Kill()
	eventually(t, patience, "the command has ended", gone(pid))
}
