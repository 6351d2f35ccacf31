// Package private is what belongs to one user of a machine alone: directories, sockets in them, and
// locks of files, which end with the process that has them, however that ends.
package private

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CheckDir says why a directory, which is no link to one, is not this user's alone.
func CheckDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link", dir)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ok || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("directory %s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("directory %s has mode %#o, and others can open it: want 0700", dir, info.Mode().Perm())
	case info.Mode().Perm()&0o700 != 0o700:
		return fmt.Errorf("directory %s has mode %#o, and its owner cannot use it: want 0700", dir, info.Mode().Perm())
	}
	return nil
}

// Lock opens a file and locks it: how is unix.LOCK_EX or LOCK_SH. It fails with EWOULDBLOCK while another process
// has it locked.
func Lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// Listen listens at a unix socket that no other user may connect to, whatever the umask is.
func Listen(path string) (*net.UnixListener, error) {
	// A socket that is bound gets the mode of its descriptor, where the system has that: so there is no moment in
	// which others may connect. Elsewhere the mode follows at once.
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.(*net.UnixListener), nil
}
