//go:build unix

package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses of a gate that did not become its command: the last two are those
// of env(1).
const (
	statusClosed    = 125
	statusCannotRun = 126
	statusNotFound  = 127
)

// Gate waits until it is let through and then becomes the command. Its arguments
// are the number of the descriptor to wait on and the command with its own. It
// returns an exit status, with what to tell the user, if there is no command to
// become.
func Gate(args []string) (status int, err error) {
	if len(args) < 2 {
		return statusClosed, errors.New("supervise: a gate is started by poundlock lock, not by hand")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return statusClosed, fmt.Errorf("supervise: gate: bad descriptor %q", args[0])
	}
	unix.CloseOnExec(fd)
	if opened := readGate(os.NewFile(uintptr(fd), "gate")); !opened {
		return statusClosed, nil
	}
	return become(args[1:])
}

// The message that opens a gate is the end of the lease, by now: a supervisor that
// was paused just before it sent the message must not start a command too late.
func openGate(w io.Writer, leaseEnd time.Duration) error {
	_, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(leaseEnd)))
	return err
}

func readGate(r io.Reader) bool {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return false
	}
	return now() < time.Duration(binary.LittleEndian.Uint64(b[:]))
}

// become replaces this process by the command, as execvp(3) does: a file without
// a format that the kernel knows is a script of the shell.
func become(argv []string) (status int, err error) {
	path, err := lookPath(argv[0])
	if err == nil {
		err = syscall.Exec(path, argv, os.Environ())
		if errors.Is(err, syscall.ENOEXEC) {
			err = syscall.Exec("/bin/sh", append([]string{"sh", path}, argv[1:]...), os.Environ())
		}
	}
	status = statusCannotRun
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		status = statusNotFound
	}
	return status, fmt.Errorf("cannot run %q: %w", argv[0], reason(err))
}

// lookPath finds a command as the shell does: in the current directory too if
// PATH says so, and telling a file that may not be executed from none.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	if !errors.Is(err, exec.ErrNotFound) || strings.Contains(name, "/") {
		return "", err
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, statErr := os.Stat(filepath.Join(dir, name)); statErr == nil && !info.IsDir() {
			return "", fs.ErrPermission
		}
	}
	return "", err
}

// reason is the part of a look-up error that does not repeat the name.
func reason(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err
}
