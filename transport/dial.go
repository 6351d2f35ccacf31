package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
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

// CheckListen says what is wrong with the form of an address to listen at.
func CheckListen(addr string) error {
	if path, ok := Unix(addr); ok {
		// The kernel's limit is 108 bytes with the final zero, and 104 elsewhere.
		if path == "" || len(path) > 103 {
			return fmt.Errorf("unix socket path %q: want 1 to 103 bytes", path)
		}
		if !filepath.IsAbs(path) { // it would be another socket in another directory
			return fmt.Errorf("unix socket path %q: want an absolute path", path)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return fmt.Errorf("address %q: want HOST:PORT or unix:/path", addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("address %q: port %q: want a number up to 65535", addr, port)
	}
	return nil
}

// CheckAddr says what is wrong with the form of an address to connect to: unlike
// one to listen at it needs a host.
func CheckAddr(addr string) error {
	if err := CheckListen(addr); err != nil {
		return err
	}
	if _, ok := Unix(addr); ok {
		return nil
	}
	host, _, _ := net.SplitHostPort(addr)
	if host == "" || len(host) > 253 || strings.ContainsFunc(addr, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("address %q: want HOST:PORT or unix:/path", addr)
	}
	return nil
}

// CertName is what the certificate of a server is for where its address has no host:
// its name, or NAME.SHARD of the server SHARD/NAME, for names in certificates have no
// slash.
func CertName(server string) string {
	if shard, name, ok := strings.Cut(server, "/"); ok {
		return name + "." + shard
	}
	return server
}

// Dial connects to the server called name at addr. c is nil for plaintext. The
// certificate of the server must be for c.ServerName; without one, for the host of
// addr, or for CertName(name) where addr is a unix socket, which has no host. Errors do not name the server.
func Dial(ctx context.Context, name, addr string, c *tls.Config) (net.Conn, error) {
	network, address := split(addr)
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil || c == nil {
		return conn, err
	}
	c = c.Clone()
	if c.ServerName == "" {
		c.ServerName = CertName(name)
		if network == "tcp" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				conn.Close()
				return nil, fmt.Errorf("address %q: %w", addr, err)
			}
			c.ServerName, _, _ = strings.Cut(host, "%") // no certificate names a zone of this machine
		}
	}
	if verify := c.VerifyConnection; verify != nil {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			s.ServerName = c.ServerName // which crypto/tls leaves out where it is an IP address
			return verify(s)
		}
	}
	secure := tls.Client(conn, c)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		if withoutTLS(err) {
			return nil, fmt.Errorf("%w: it broke off the handshake: %w", ErrNoTLS, err)
		}
		return nil, Explain(err)
	}
	return secure, nil
}

// Listen listens at addr: host:port, or unix:/path.
func Listen(addr string) (net.Listener, error) {
	network, address := split(addr)
	return net.Listen(network, address)
}
