package faultnet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Server is one entry of a slot table.
type Server struct {
	Name string
	Addr string // host:port, or unix:/path
}

// A Net has a link, a Proxy, for each pair of a client and a server. A name that it
// does not have is a mistake in the test, and panics.
type Net struct {
	clients []string
	servers []string
	links   map[[2]string]*Proxy
}

// NewNet starts the links between clients, by name, and servers.
func NewNet(clients []string, servers []Server) (*Net, error) {
	n := &Net{clients: slices.Clone(clients), links: map[[2]string]*Proxy{}}
	for _, s := range servers {
		n.servers = append(n.servers, s.Name)
		for _, c := range clients {
			p, err := New(s.Addr)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("faultnet: link from %s to %s: %w", c, s.Name, err), n.Close())
			}
			n.links[[2]string{c, s.Name}] = p
		}
	}
	return n, nil
}

// Servers is the slot table for one client: the servers' names, and the addresses
// of its own links.
func (n *Net) Servers(client string) []Server {
	table := make([]Server, len(n.servers))
	for i, s := range n.servers {
		table[i] = Server{s, n.Link(client, s).Addr()}
	}
	return table
}

// Link is the proxy between a client and a server.
func (n *Net) Link(client, server string) *Proxy {
	p := n.links[[2]string{client, server}]
	if p == nil {
		panic(fmt.Sprintf("faultnet: no link between %q and %q", client, server))
	}
	return p
}

// Each calls f for the links between some clients and some servers; nil means all
// of them.
func (n *Net) Each(clients, servers []string, f func(*Proxy)) {
	if clients == nil {
		clients = n.clients
	}
	if servers == nil {
		servers = n.servers
	}
	for _, c := range clients {
		for _, s := range servers {
			f(n.Link(c, s))
		}
	}
}

// SetDelay sets the delay of every link, in each direction.
func (n *Net) SetDelay(delay, jitter time.Duration) {
	n.Each(nil, nil, func(p *Proxy) { p.SetDelay(delay, jitter) })
}

// Cut lets nothing pass between some clients and some servers; nil means all.
func (n *Net) Cut(d Direction, clients, servers []string) {
	n.Each(clients, servers, func(p *Proxy) { p.Cut(d) })
}

// Heal ends the cuts between some clients and some servers; nil means all.
func (n *Net) Heal(clients, servers []string) { n.Each(clients, servers, (*Proxy).Heal) }

// Close closes every link.
func (n *Net) Close() error {
	var errs []error
	for _, p := range n.links {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
