// Package peers is for processes with names of their own that lock among themselves, without any server: each is a member of
// the system, and runs its part of an algorithm of the literature.
//
// Join makes a process a member. Its locks are those of package poundlock: a Mutex, an RWMutex or a GroupMutex by name, with
// the same grants, contexts and errors. For example three replicas of a service, r1, r2 and r3, hold one lock at a time:
//
//	m, err := peers.Join(ctx, peers.Config{Name: "r1", Members: members, Bootstrap: first})
//	..
//	g, err := m.Mutex("compaction").Lock(ctx)
//
// # Which algorithm
//
// The default, tokengme/recovery, serves groups, sends no message for a lock that this process had last, and lets the next
// one in after one message delay. Its members may be killed and come back, and be cut off: a majority of them goes on, and
// whoever is inside without one loses the lock before it does. So do ra2/recovery, suzuki-kasami/recovery and centralised/recovery,
// tokengme/several-recovery, whose users may want any one of several groups, and tokengme/bounded-recovery.
//
// The other ones (Algorithms) need every member: while one is down, calls fail with ErrPeerDown, and once it has come
// back as a new process, all members have to be restarted. They are for a lecture, and for processes that live and die together.
//
// # Fencing tokens
//
// The Token of a grant is larger than that of each grant that ended before and does not share with it (see package fence), with
// lamport, ra1, ra2, ricart-agrawala, suzuki-kasami, and tokengme, where its numbers are not bounded; it is 0 with the others. With recovery
// that is so over restarts of members, and of a majority or all of them as long as their clocks agree and go on; with the rest of these, and
// after another Bootstrap, tokens start again when all members are restarted.
//
// # Who leads
//
// Member.Leader waits until this process leads, and Member.Observe tells who does: at most one at any time, and with
// recovery one as long as a majority is there. Elect guesses more quickly, and without a majority.
//
// # The first start
//
// The members of a new system are started with Config.Bootstrap, once. It begins when all have met. Later each member that was
// restarted joins the others, without Bootstrap. Where it is said again, those who have met the life before refuse the new one.
// Where all join, as after a restart of everybody, they begin when a majority has met and a lease is over. No two
// processes may have one name at a time: the others take the younger one for a restart, and the older one loses its locks.
package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
)

// A Peer is a member: its Name, and its Addr, host:port or unix:/path.
type Peer = node.Peer

// ErrPeerDown says that too few of the other members could be reached for Config.Patience. The text names them, and says
// what became of each. It is poundlock.ErrNoQuorum, too.
var ErrPeerDown error = &down{}

type down struct{}

func (*down) Error() string { return "poundlock: peers are down" }
func (*down) Unwrap() error { return poundlock.ErrNoQuorum }

// ErrMetBefore says that a member with Config.Bootstrap has had an earlier life, which another member has met.
var ErrMetBefore = errors.New("peers: this is not the first start: start without Bootstrap, to join")

// ErrConfig says that a Config makes no sense: with another one it would begin.
var ErrConfig = errors.New("peers: bad configuration")

// configError is ErrConfig, and says no more than what is wrong.
func configError(err error) error { return &badConfig{fmt.Errorf("peers: %w", err)} }

type badConfig struct{ error }

func (e *badConfig) Unwrap() error        { return e.error }
func (e *badConfig) Is(target error) bool { return target == ErrConfig }

// ErrInsecure says that a member would listen off loopback without TLS, where anybody could take its locks.
var ErrInsecure = listen.ErrInsecure

// Config describes a member. Name and Members are required; all members have the same Members, Algorithm and Options.
type Config struct {
	Name    string // which of Members this process is
	Members []Peer // all of them; their order does not matter
	Epoch   uint64 // of their addresses, larger with each change of one: see Member.SetTable
	// Bootstrap says that the system begins: exactly once, at all members. Otherwise this member joins those that are
	// there, which is what a restart is.
	Bootstrap bool

	Algorithm string           // one of Algorithms. Default: tokengme/recovery
	Options   map[string]int64 // of the algorithm, by their names: see Options

	Listen   string       // where to accept, host:port or unix:/path. Default: the own address in Members
	Listener net.Listener // in place of Listen, without TLS
	// TLS is for both directions: with a certificate, and with RootCAs and ClientCAs. Without a ServerName the certificate of each
	// member must be for the host of its address, or for its name where that is a unix socket.
	TLS      *tls.Config
	Insecure bool // allow to listen off loopback without TLS

	// Lease is how long members go on to count on one that is silent: the others go on without it after a lease, and it loses
	// its locks a little earlier. Default 2s
	Lease time.Duration
	// Patience is how long a call waits while too few members can be reached, from when they fell silent: then it fails with
	// ErrPeerDown. Default, and at least: two leases
	Patience time.Duration

	MaxHold     time.Duration // see poundlock.Config, as for all that follow
	Grace       time.Duration
	AwaitUnlock bool
	Label       string // of this member, for people. Default: Name
	Log         *slog.Logger
	Audit       *slog.Logger

	id     protocol.ID
	change func(*node.Config) // for tests
}

// A Member is this process as a member. Its methods may be called by several goroutines at once.
type Member struct {
	client *poundlock.Client
	node   *node.Node
}

// Join makes this process a member, and returns when it takes part: at the first start when all members have met, and else when
// enough of them can be reached. When ctx ends first it returns ErrPeerDown with what each of the others said.
func Join(ctx context.Context, c Config) (*Member, error) {
	host, err := c.host(hosts(), Default)
	if err != nil {
		return nil, err
	}
	info := host.Info()
	m := new(Member)
	start := func(answer func(protocol.ID, []byte) []byte) (*node.Node, error) {
		m.node, err = c.start(node.Config{Hosts: map[node.Kind]node.Host{node.Mutex: host}, Call: answer})
		return m.node, err
	}
	m.client, err = poundlock.Attach(ctx, start, info, ErrPeerDown, poundlock.Config{
		Lease: c.Lease, QuorumWait: c.Patience - c.Lease, MaxHold: c.MaxHold, Grace: c.Grace, AwaitUnlock: c.AwaitUnlock,
		Label: c.Label, Log: c.Log, Audit: c.Audit,
	})
	switch {
	case errors.Is(err, node.ErrMetBefore) && info.Tolerates&protocol.Recovery == 0:
		return nil, fmt.Errorf("peers: %s does not survive the restart of a member: restart all members (%w)", info.Name, err)
	case errors.Is(err, node.ErrMetBefore):
		return nil, fmt.Errorf("%w (%w)", ErrMetBefore, err)
	case err != nil:
		return nil, err
	}
	return m, nil
}

// host completes c, and returns the host of its algorithm among some. An error is ErrConfig.
func (c *Config) host(among map[string]node.Host, usual string) (node.Host, error) {
	host := among[cmp.Or(c.Algorithm, usual)]
	if host == nil {
		return nil, configError(fmt.Errorf("algorithm %q: want one of %s", c.Algorithm, strings.Join(slices.Sorted(maps.Keys(among)), ", ")))
	}
	if err := c.complete(host.Info()); err != nil {
		return nil, configError(err)
	}
	return host, nil
}

// complete fills in the defaults and says what is wrong.
func (c *Config) complete(info protocol.Info) (err error) {
	if c.Members, c.id, err = members.Table(c.Members, c.Name); err != nil {
		return err
	}
	c.Label = cmp.Or(c.Label, c.Name)
	c.Lease = cmp.Or(c.Lease, 2*time.Second)
	c.Patience = cmp.Or(c.Patience, 2*c.Lease)
	switch {
	case info.Largest > 0 && len(c.Members) > info.Largest:
		return fmt.Errorf("%d members: %s is for at most %d", len(c.Members), info.Name, info.Largest)
	case c.Patience < 2*c.Lease:
		return fmt.Errorf("patience %v: want at least two leases, %v", c.Patience, 2*c.Lease)
	}
	return info.CheckOptions(c.system())
}

func (c *Config) system() protocol.Config {
	return protocol.Config{N: len(c.Members), Options: c.Options}
}

// start starts the node of a configuration that is complete. x has what is the caller's.
func (c *Config) start(x node.Config) (*node.Node, error) {
	door := listen.Door{Addr: c.Listen, Listener: c.Listener, TLS: c.TLS, Insecure: c.Insecure}
	l, err := door.Open(c.Members[c.id].Addr)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	x.ID, x.System, x.Peers, x.Epoch, x.Listener, x.TLS, x.Lease = c.id, c.system(), c.Members, c.Epoch, l, c.TLS, c.Lease
	x.Label, x.Log, x.Joins = c.Label, c.Log, !c.Bootstrap
	x.Patience = lease.Patience{First: c.Lease, Step: c.Lease / 2, Most: 10 * c.Lease}
	if c.change != nil {
		c.change(&x)
	}
	n, err := node.Start(x)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", errors.Join(err, l.Close()))
	}
	return n, nil
}

// Algorithms are the names of those that a system may run, in their order.
func Algorithms() []string { return slices.Sorted(maps.Keys(hosts())) }

// Options are those of one of Algorithms: docs/algorithms.md says what each is for.
func Options(algorithm string) []protocol.Option {
	if host := hosts()[algorithm]; host != nil {
		return host.Info().Options
	}
	return nil
}

// Mutex is the lock of a name, for one holder: see poundlock.Client.Mutex.
func (m *Member) Mutex(name string) *poundlock.Mutex { return m.client.Mutex(name) }

// RWMutex is the lock of a name for readers and writers, where the algorithm has groups: see poundlock.Client.RWMutex. Goroutines
// of this process that wait come in together. With TokenGME one that comes later joins them as long as nobody waits who does not
// share; with ra1 and ra2, which do not say that, it waits for its turn.
func (m *Member) RWMutex(name string) *poundlock.RWMutex { return m.client.RWMutex(name) }

// Groups is the lock of a name for holders that share, where the algorithm has groups: see RWMutex.
func (m *Member) Groups(name string) *poundlock.GroupMutex { return m.client.Groups(name) }

// Leader waits until this process leads in the election of a name, and returns its term: its context ends before
// anybody else leads, and its token, with an algorithm that has tokens, is larger than that of each leader before.
// Whoever leads holds the Mutex of that name: so at most one does. It has the errors of Mutex.Lock.
func (m *Member) Leader(ctx context.Context, name string) (*poundlock.Leadership, error) {
	return m.client.Election(name).Campaign(ctx)
}

// Observe tells who leads in the election of a name, now and after each change, until ctx ends: see
// poundlock.Election.Observe. The Label is that of the member, which is its name unless Config.Label says otherwise.
func (m *Member) Observe(ctx context.Context, name string) iter.Seq2[poundlock.Leader, error] {
	return m.client.Election(name).Observe(ctx)
}

// SetTable has some members be at other addresses from now on: table has all of them, with the same names, and epoch
// is higher than before. A member that moves is restarted there, with them in its Config, and each of the others is
// told; those with larger names than its own connect to it. One that was not told learns it from a member with a
// smaller name than its own that was, as long as it can reach that. What the members have among themselves goes on.
func (m *Member) SetTable(epoch uint64, table []Peer) error { return setTable(m.node, epoch, table) }

func setTable(n *node.Node, epoch uint64, table []Peer) error {
	if err := n.SetTable(epoch, members.Sorted(table)); err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	return nil
}

// Client is the client whose locks these are, for what takes one, such as api.New. Its Holder and Holders ask the members.
func (m *Member) Client() *poundlock.Client { return m.client }

// Stats is what a member has counted since it joined, and what there is now. Package metrics has a collector of it
// for Prometheus.
type Stats struct {
	Locks poundlock.Stats // of the users of this member; Servers are the other members
	Node  node.Stats      // messages, and the sessions with the other members
}

// Stats returns what this member has counted.
func (m *Member) Stats() Stats { return Stats{m.client.Stats(), m.node.Stats()} }

// Healthy returns nil while enough members can be reached, and otherwise ErrPeerDown with what each of the others said.
func (m *Member) Healthy() error { return m.client.Healthy() }

// Close gives up every lock and leaves the others. Those who wait get poundlock.ErrClosed, and holders lose their locks.
func (m *Member) Close() error { return m.client.Close() }
