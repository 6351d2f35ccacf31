package certs

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/transport"
)

// A Subject is who a certificate is for.
type Subject struct {
	Name string
	// Hosts are the names and IP addresses of a server. Without any it is a client,
	// which no other client takes for a server.
	Hosts []string
}

// Subjects are servers and clients that a cluster needs certificates for.
type Subjects []Subject

// AddServer adds a server of a slot table, with the host of its address.
func (all *Subjects) AddServer(name, addr string) error {
	if err := transport.CheckAddr(addr); err != nil {
		return fmt.Errorf("server %s: %w", name, err)
	}
	if _, ok := transport.Unix(addr); ok {
		return all.AddHosts(name)
	}
	host, _, _ := net.SplitHostPort(addr)
	return all.AddHosts(name, host)
}

// AddHosts adds hosts to a server, and the server if it is new: a name, or SHARD/NAME.
func (all *Subjects) AddHosts(name string, hosts ...string) error {
	for part := range strings.SplitSeq(name, "/") {
		if checkFileName(part) != nil {
			return checkFileName(name)
		}
	}
	name = transport.CertName(name)
	if err := checkFileName(name); err != nil {
		return err
	}
	i := all.find(name)
	if i < 0 {
		i = len(*all)
		*all = append(*all, Subject{Name: name, Hosts: []string{name}})
	}
	s := &(*all)[i]
	for _, h := range hosts {
		if !isHost(h) {
			return fmt.Errorf("server %s: %q is neither a host name nor an IP address", name, h)
		}
		if !slices.Contains(s.Hosts, h) {
			s.Hosts = append(s.Hosts, h)
		}
	}
	return nil
}

// AddClient adds a client.
func (all *Subjects) AddClient(name string) error {
	if err := checkFileName(name); err != nil {
		return err
	}
	if all.find(name) >= 0 {
		return fmt.Errorf("the name %q is taken", name)
	}
	*all = append(*all, Subject{Name: name})
	return nil
}

func (all *Subjects) find(name string) int {
	return slices.IndexFunc(*all, func(s Subject) bool { return s.Name == name })
}

// isHost says that a certificate may name h: an IP address or a name of DNS.
func isHost(h string) bool {
	if net.ParseIP(h) != nil {
		return true
	}
	return h != "" && len(h) <= 253 && !strings.ContainsFunc(h, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._*", r))
	})
}

// checkFileName says why a name does not name files, or a host in a certificate.
func checkFileName(name string) error {
	switch {
	case !isHost(name) || strings.HasPrefix(name, ".") || strings.Contains(name, "*"):
		return fmt.Errorf("the name %q cannot be that of a file: want letters, digits, dots, hyphens and underscores", name)
	case name == AuthorityName:
		return fmt.Errorf("%q is the name of the authority's own files", name)
	}
	return nil
}
