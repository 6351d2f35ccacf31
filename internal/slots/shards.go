package slots

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/node"
)

// maxShards bounds the names of all shards together, which every handshake carries.
const maxShards = 1000

// A Shard is a set of servers that serve a part of the lock names, with quorums of
// their own. It has no name where it is the only one.
// Its servers are called SHARD/NAME.
type Shard struct {
	Name    string
	Servers []node.Peer // in the order of ids
}

// Shards are all shards of a cluster, in the bytewise order of their names.
type Shards []Shard

// ShardOf is the shard that the name of a server says, "" for none.
func ShardOf(server string) string {
	shard, _, ok := strings.Cut(server, "/")
	if !ok {
		return ""
	}
	return shard
}

// Split returns the shards of a table that Check has returned: there the servers of a
// shard stand together, because their names begin alike.
func Split(table []node.Peer) Shards {
	var all Shards
	for _, p := range table {
		name := ShardOf(p.Name)
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, Shard{Name: name})
		}
		g := &all[len(all)-1]
		g.Servers = append(g.Servers, p)
	}
	slices.SortFunc(all, func(a, b Shard) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// String is the list of names, on which all processes must agree: one that knows of
// other shards would look for some locks elsewhere.
func (all Shards) String() string {
	var names []string
	for _, g := range all {
		names = append(names, g.Name)
	}
	return strings.Join(names, ",")
}

// Of returns the index of the shard that a lock belongs to, by rendezvous hashing: the
// one with the highest score, and of equal ones the first by name. When a shard comes
// or goes, only those locks move that it gets or had.
func (all Shards) Of(lock string) int {
	if len(all) == 1 {
		return 0
	}
	best, most := 0, uint64(0)
	if len(all) == 1 {
		return best
	}
	for i, g := range all {
		if s := score(g.Name, lock); i == 0 || s > most {
			best, most = i, s
		}
	}
	return best
}

// score is FNV-1a of the shard's name, a zero byte and the lock's name, mixed by the
// finalizer of MurmurHash3: FNV alone leaves the high bits, which decide, to the bytes
// that come first.
func score(shard, lock string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, shard)
	h.Write([]byte{0})
	io.WriteString(h, lock)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// check says what is wrong with the shards of a table.
func (all Shards) check(noAmnesia bool) error {
	if len(all) > 1 {
		for i, g := range all {
			if other := all[(i+1)%len(all)]; g.Name == "" {
				return fmt.Errorf("server %s is in no shard, and %s is in shard %s: give all servers a shard, or none",
					g.Servers[0].Name, other.Servers[0].Name, other.Name)
			}
		}
	}
	if names := all.String(); len(names) > maxShards {
		return fmt.Errorf("the names of the shards have %d bytes together: want at most %d", len(names), maxShards)
	}
	for _, g := range all {
		if len(g.Servers) >= 4 || noAmnesia {
			continue
		}
		if g.Name == "" {
			return fmt.Errorf("%d servers: %w", len(g.Servers), ErrTooFew)
		}
		return fmt.Errorf("%d servers in shard %s: %w", len(g.Servers), g.Name, ErrTooFew)
	}
	return nil
}

// checkName says what is wrong with the name of a server.
func checkName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '=' || r == ',' }) {
		return errors.New("want a word without spaces, commas and equal signs")
	}
	shard, rest, sharded := strings.Cut(name, "/")
	if sharded && (shard == "" || rest == "" || strings.Contains(rest, "/")) {
		return errors.New("want NAME, or SHARD/NAME")
	}
	return nil
}
