// Package slots is the slot table: which servers make a cluster, in which shards,
// which id each of them has, and the parameters on which all its processes agree.
package slots

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
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
var ErrTooFew = errors.New("fewer than four memory-only servers cannot survive that one of them loses its memory; use 4, 7 or 10")

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

// Check returns the table in the order of ids, shard by shard. That is the order of the names,
// so that it does not matter in which order an operator lists the servers: two
// processes that number them differently would not exclude each other.
func Check(table []node.Peer, noAmnesia bool) ([]node.Peer, error) {
	if len(table) == 0 {
		return nil, errors.New("the list of servers is empty")
	}
	table = members.Sorted(table)
	for _, p := range table {
		if err := checkName(p.Name); err != nil {
			return nil, fmt.Errorf("server name %q: %w", p.Name, err)
		}
		if err := transport.CheckAddr(p.Addr); err != nil {
			return nil, fmt.Errorf("server %s: %w", p.Name, err)
		}
	}
	if err := (transport.Table{Slots: table}).Check(); err != nil {
		return nil, err
	}
	if err := Split(table).check(noAmnesia); err != nil {
		return nil, err
	}
	return table, nil
}

// Quorum is how many of n servers must support a holder.
func Quorum(n int) int { return quorum.TwoThirds(n) }

// Node is what the configurations of all nodes of a shard have in common.
func (all Shards) Node(g Shard, epoch uint64, eps time.Duration) node.Config {
	return node.Config{System: System(len(g.Servers), eps), Hosts: Hosts(), Peers: g.Servers, Epoch: epoch, Shards: all.String()}
}

// Hosts make the processes of each kind of lock.
func Hosts() map[node.Kind]node.Host {
	return map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)}
}

// System is the configuration of the processes of a cluster of n servers whose
// clocks are within eps of real time. Servers and clients need the same one.
func System(n int, eps time.Duration) protocol.Config {
	return protocol.Config{N: n, Options: map[string]int64{
		"quorum": int64(Quorum(n)),
		"fence":  1,
		"eps":    int64(eps),
		// A hand-over needs one server then instead of m, for n messages more.
		"promise": 1,
		// Sessions lose nothing that a CHECK would have to mend, and a server has one a
		// period for each lock that is held: with a million, and every 10 s, they took both processors.
		"check": int64(2 * time.Minute),
	}}
}

// Algorithm is what servers and clients know of the algorithm that they run.
func Algorithm() protocol.Info { return sigma.Algorithm.Info }
