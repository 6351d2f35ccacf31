// Package slots is the static slot table: which servers make a cluster, which
// id each of them has, and the parameters on which all its processes agree.
package slots

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/quorum"
	"github.com/poundlock/poundlock/transport"
)

// Defaults that servers and clients share.
const (
	DefaultClockBound = 50 * time.Millisecond
	DefaultLease      = 10 * time.Second
)

// MaxClockBound is a tenth of how long servers remember the token of an idle lock:
// with larger bounds tokens could fall.
const MaxClockBound = time.Second

// ErrTooFew says that a table has too few servers to lose a memory.
var ErrTooFew = errors.New("too few servers: fewer than four memory-only servers " +
	"cannot survive that one of them loses its memory; use 4, 7 or 10")

// Parse reads a table as people write it: s1=HOST:PORT,s2=unix:/path.
func Parse(text string) ([]node.Peer, error) {
	var table []node.Peer
	for part := range strings.SplitSeq(text, ",") {
		name, addr, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, fmt.Errorf("server %q is not of the form NAME=HOST:PORT", part)
		}
		table = append(table, node.Peer{Name: name, Addr: addr})
	}
	return table, nil
}

// Check returns the table in the order of ids. That is the order of the names,
// so that it does not matter in which order an operator lists the servers: two
// processes that number them differently would not exclude each other.
func Check(table []node.Peer, noAmnesia bool) ([]node.Peer, error) {
	if len(table) == 0 {
		return nil, errors.New("the list of servers is empty")
	}
	table = slices.Clone(table)
	slices.SortFunc(table, func(a, b node.Peer) int { return strings.Compare(a.Name, b.Name) })
	addrs := map[string]string{}
	for i, p := range table {
		if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == '=' || r == ',' }) {
			return nil, fmt.Errorf("server name %q: want a word without spaces, commas and equal signs", p.Name)
		}
		if i > 0 && table[i-1].Name == p.Name {
			return nil, fmt.Errorf("server name %q appears twice", p.Name)
		}
		if other, ok := addrs[p.Addr]; ok {
			return nil, fmt.Errorf("servers %s and %s have the same address %s: one host that fails would count twice",
				other, p.Name, p.Addr)
		}
		addrs[p.Addr] = p.Name
		err := CheckAddr(p.Addr)
		if host, _, split := net.SplitHostPort(p.Addr); err == nil && split == nil && host == "" {
			err = fmt.Errorf("address %q: want HOST:PORT or unix:/path", p.Addr)
		}
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", p.Name, err)
		}
	}
	if len(table) < 4 && !noAmnesia {
		return nil, fmt.Errorf("%d servers: %w", len(table), ErrTooFew)
	}
	return table, nil
}

// CheckAddr says what is wrong with the form of an address to listen at. To connect
// to it, it also needs a host.
func CheckAddr(addr string) error {
	if path, ok := transport.Unix(addr); ok {
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

const maxName = transport.MaxName // the longest lock name in bytes

// CheckName says what is wrong with the name of a lock.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a lock needs a name")
	case len(name) > maxName:
		return fmt.Errorf("lock name %.20q... has %d bytes, more than %d", name, len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("lock name %q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("lock name %q has a control character", name)
	}
	return nil
}

// Quorum is how many of n servers must support a holder.
func Quorum(n int) int { return quorum.TwoThirds(n) }

// System is the configuration of the processes of a cluster of n servers whose
// clocks are within eps of real time. Servers and clients need the same one.
func System(n int, eps time.Duration) protocol.Config {
	return protocol.Config{N: n, Options: map[string]int64{
		"quorum": int64(Quorum(n)),
		"fence":  1,
		"eps":    int64(eps),
	}}
}
