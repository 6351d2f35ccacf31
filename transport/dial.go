package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
)

const unixPrefix = "unix:"

// Unix returns the path of an address of the form unix:/path.
func Unix(addr string) (path string, ok bool) { return strings.CutPrefix(addr, unixPrefix) }

// split returns the network and the address of addr: host:port, or unix:/path.
func split(addr string) (network, address string) {
	if path, ok := Unix(addr); ok {
		return "unix", path
	}
	return "tcp", addr
}

// CheckAddr says what is wrong with the form of an address.
func CheckAddr(addr string) error {
	network, address := split(addr)
	if network == "unix" {
		if address == "" {
			return fmt.Errorf("transport: address %q has no path", addr)
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("transport: address %q: want host:port or unix:/path: %w", addr, err)
	}
	return nil
}

// Dial connects to the server called name at addr. c is nil for plaintext. The
// certificate of the server must be for c.ServerName; without one, for the host of
// addr, or for name where addr is a unix socket, which has no host.
func Dial(ctx context.Context, name, addr string, c *tls.Config) (net.Conn, error) {
	network, address := split(addr)
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil || c == nil {
		return conn, err
	}
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName = name
		if network == "tcp" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				conn.Close()
				return nil, fmt.Errorf("transport: address %q: %w", addr, err)
			}
			c.ServerName, _, _ = strings.Cut(host, "%") // no certificate names a zone of this machine
		}
	}
	secure := tls.Client(conn, c)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		if withoutTLS(err) {
			return nil, fmt.Errorf("%w: %s broke off the handshake: %w", ErrNoTLS, addr, err)
		}
		return nil, fmt.Errorf("transport: TLS with %s, expected to be %q: %w", addr, c.ServerName, err)
	}
	return secure, nil
}

// Listen listens at addr: host:port, or unix:/path.
func Listen(addr string) (net.Listener, error) {
	network, address := split(addr)
	return net.Listen(network, address)
}
