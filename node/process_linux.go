package node

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/clock"
)

// ThisProcess is the name of this process, which no other one has on any machine; "" where the system does not say.
func ThisProcess() string { return processName(os.Getpid()) }

// processName is the name of a process that this one sees with a number, which depends on its namespace.
func processName(pid int) string {
	if n := numbering(); n != "" {
		return fmt.Sprintf("%s %d", n, pid)
	}
	return ""
}

// numbering says among which processes a number is this process's: since when this machine runs, and the namespace.
var numbering = sync.OnceValue(func() string {
	boot := clock.BootID()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if boot == "" || err != nil {
		return ""
	}
	return boot + " " + namespace
})

// A process is the one that has dialed a unix socket. A session of a client ends with it.
type process struct {
	fd int // of the system's, by which it stays the same one when its number is somebody else's
}

// dialerOf returns the process at the other end of a connection if that has this name, and else nil: the connection may be a
// network's, or somebody in between who passes on what another process says.
func dialerOf(nc net.Conn, name string) *process {
	u, ok := underTLS(nc).(*net.UnixConn)
	if !ok || name == "" {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil
	}
	var p *process
	err = raw.Control(func(socket uintptr) {
		who, err := unix.GetsockoptUcred(int(socket), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil || processName(int(who.Pid)) != name {
			return
		}
		if fd, err := unix.GetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil { // Linux 6.5
			p = &process{fd}
		}
	})
	if err != nil {
		return nil
	}
	return p
}

// ended reports whether the process has ended, all of its threads. Its connections are closed a little before, so that this waits a moment.
func (p *process) ended() bool {
	if p == nil {
		return false
	}
	for pause := time.Millisecond; pause < 100*time.Millisecond; pause *= 2 {
		poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		if k, err := unix.Poll(poll, 0); err == nil && k == 1 {
			return poll[0].Revents&unix.POLLIN != 0
		}
		time.Sleep(pause)
	}
	return false
}

func (p *process) close() {
	if p != nil {
		unix.Close(p.fd)
	}
}
