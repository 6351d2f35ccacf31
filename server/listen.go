package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/transport"
)

// ErrInsecure says that a server would listen off loopback without TLS, where
// anybody could take and release locks.
var ErrInsecure = errors.New("listening off loopback without TLS lets anybody take and release locks")

// mayListen says why a server must not listen at an address, and where that is; nil for a unix socket.
func mayListen(addr string, config *tls.Config, insecure bool) (*net.TCPAddr, error) {
	if _, ok := transport.Unix(addr); ok {
		return nil, nil
	}
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	if config == nil && !insecure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("address %q: %w", addr, ErrInsecure)
	}
	return tcp, nil
}

func listen(addr string, config *tls.Config, insecure bool) (net.Listener, error) {
	if path, ok := transport.Unix(addr); ok {
		return listenUnix(path, config)
	}
	tcp, err := mayListen(addr, config, insecure)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, err
	}
	return secure(l, config), nil
}

func secure(l net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return l
	}
	return tls.NewListener(l, config)
}

// listenUnix replaces the socket that a killed server left. A lock on a file
// beside it, which ends with its process, tells that from a server that lives:
// a slot that two processes own at once would give its support twice.
func listenUnix(path string, config *tls.Config) (net.Listener, error) {
	guard, err := private.Lock(path+".lock", unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("unix socket %s: another server listens there: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		guard.Close()
		return nil, err
	}
	l, err := private.Listen(path)
	if err != nil {
		guard.Close()
		return nil, err
	}
	return guarded{secure(l, config), guard}, nil
}

// A guarded listener holds the lock of its socket while it is open.
type guarded struct {
	net.Listener
	guard *os.File
}

func (g guarded) Close() error { return errors.Join(g.Listener.Close(), g.guard.Close()) }
