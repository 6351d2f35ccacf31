// Package listen is where processes of a system listen: at a TCP address that needs TLS off loopback, or at a unix socket that
// only one process owns.
package listen

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/transport"
)

// ErrInsecure says that a process would listen off loopback without TLS, where
// anybody could take and release locks, or change what members share.
var ErrInsecure = errors.New("listening off loopback without TLS lets anybody take and release locks")

// Allowed says why a process must not listen at an address, and where that is; nil for a unix socket.
func Allowed(addr string, config *tls.Config, insecure bool) (*net.TCPAddr, error) {
	if err := transport.CheckListen(addr); err != nil {
		return nil, err
	}
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

// At listens at an address.
func At(addr string, config *tls.Config, insecure bool) (net.Listener, error) {
	tcp, err := Allowed(addr, config, insecure)
	if err != nil {
		return nil, err
	}
	if path, ok := transport.Unix(addr); ok {
		return listenUnix(path, config)
	}
	l, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, err
	}
	return Secure(l, config), nil
}

// Secure is l with TLS, where that is configured.
func Secure(l net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return l
	}
	return tls.NewListener(l, config)
}

// A Door is where a member accepts connections.
type Door struct {
	Addr     string       // "": the address of the member in the table
	Listener net.Listener // in place of Addr; nobody adds TLS to it
	TLS      *tls.Config
	Insecure bool
}

// Open returns the listener of the member whose address in the table is own.
func (d Door) Open(own string) (net.Listener, error) {
	switch {
	case d.Listener == nil:
		return At(cmp.Or(d.Addr, own), d.TLS, d.Insecure)
	case d.Addr != "":
		return nil, errors.New("both Listen and a Listener: want one")
	}
	return d.Listener, nil
}

// listenUnix replaces the socket that a killed process left. A lock on a file
// beside it, which ends with its process, tells that from a process that lives:
// a slot that two processes own at once would give its support twice.
func listenUnix(path string, config *tls.Config) (net.Listener, error) {
	guard, err := private.Lock(path+".lock", unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("unix socket %s: another process listens there: %w", path, err)
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
	return guarded{Secure(l, config), guard}, nil
}

// A guarded listener holds the lock of its socket while it is open.
type guarded struct {
	net.Listener
	guard *os.File
}

func (g guarded) Close() error { return errors.Join(g.Listener.Close(), g.guard.Close()) }
