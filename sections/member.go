package sections

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/journal"
	"github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// A Peer is a member: its name, which never changes, and its address, host:port or unix:/path.
type Peer = node.Peer

// The algorithms: docs/algorithms/wme.md.
var (
	// WME1 has members acknowledge an operation to all: N*N-1 messages, and all copies have it after two message delays.
	WME1 = node.HostOf(consensus.With(wme.First))
	// WME2 has them acknowledge it to the member that has issued it: 3(N-1) messages, two delays to the result, and three to the last copy.
	WME2 = node.HostOf(consensus.With(wme.Second))
)

// Config describes a member. Fields that are not described as needed may be zero.
type Config struct {
	Name    string // of this member. Needed
	Members []Peer // all of them, in any order: the same names at all members, for as long as the objects live. Needed
	Epoch   uint64 // of their addresses, larger with each change of one: see Member.SetTable
	// Objects are the copies that this member has, by name: the same names at all members. At the start they are equal, for
	// example empty. Needed, unless there is More
	Objects map[string]Object
	// More makes the copy of an object that Member.Open asks for, by its name: equal ones at all members. nil for a name that no object
	// may have. nil: there are those of Objects alone.
	More func(name string) Object
	// Slots is how many objects More may make, the same at all members for as long as the objects live. There is memory, and there are
	// messages where a member is suspected, for each, whether it is made or not. Default 16, at most 256.
	Slots int
	// Bootstrap says that this is the first start of the system: true once, at all members, and never again, whatever happened.
	// A member that starts with false gets the objects from those that have them, and waits while there are none; one with a journal
	// in Dir has them, and is refused with true.
	// A member that starts with true does nothing before it has met all others, and is refused by each of them that has
	// met an earlier life of it.
	Bootstrap bool
	Engine    node.Host // the algorithm, the same at all members. Default WME2

	// Dir makes the member durable: a directory of its own, which is made if need be, for a journal of all that happens to it. A member
	// with a journal goes on from there, without Bootstrap: in the same life, with nothing forgotten but its users. So what has had a
	// result is there after any crash, also of all members at once, if a majority of them is durable and comes back. "": memory only.
	Dir string
	// SyncEvery has the journal be synced so often, and not before anything is acknowledged. Then a loss of power, other than a crash of this
	// process alone, may lose what was told to users and to other members, and break any promise of this package: remove the directory
	// before the start that follows, as if the disk was lost. Default 0: before.
	SyncEvery time.Duration

	Listen   string       // where to accept, host:port or unix:/path. Default: this member's address in Members
	Listener net.Listener // in place of Listen; Close closes it, and so does Open if it fails. TLS is the caller's here
	// TLS is for both ends of a connection: certificates, RootCAs, and for the accepting end ClientCAs and ClientAuth, without
	// which anybody who can connect may take part. Without a ServerName a certificate must be for the host of the member's
	// address, or for its name where that is a unix socket. nil: plaintext, on loopback
	TLS      *tls.Config
	Insecure bool // allow to listen off loopback without TLS: on a network that only members can reach

	// Lease is after which silence a member is suspected, at first. Shorter lets others go on sooner where a holder has crashed, longer
	// survives longer pauses: a false suspicion may eject a holder, and costs nothing else. Default 2s, 20ms to 10m.
	Lease time.Duration
	// Patience is how that grows with suspicions that were wrong. Default: half of Lease more each time, and at most ten times Lease.
	Patience lease.Patience
	// MaxState is how many bytes the state of an object may have: a member that needs a larger one closes. The same at all
	// members. Default 256 MiB, at most 1 GiB.
	MaxState int
	Log      *slog.Logger // nil: discarded

	// Dial connects to a member, by a connection that has deadlines. nil: by its address, with TLS if set.
	Dial func(ctx context.Context, p Peer) (net.Conn, error)
	// Boot is the clock of suspicions. nil: the time since the machine booted. A test with a virtual clock sets it.
	Boot func() time.Duration

	change func(*node.Config) // for tests
	disk   journal.Disk       // for tests: in place of Dir
}

// ErrMetBefore says that a member with Config.Bootstrap has had an earlier life, which another member has met.
var ErrMetBefore = errors.New("sections: this is not the first start: start without Bootstrap, to join")

// ErrInsecure says that a member would listen off loopback without TLS, where anybody could take part.
var (
	ErrInsecure = listen.ErrInsecure
	// ErrNoObject says that no object has the name that was given, and which there are.
	ErrNoObject = errors.New("there is no such object")
)

// Why a member does not start from its Dir.
var (
	// ErrJournal says that the journal there is another member's, or of other members, objects or a newer version, or that this program
	// does not do what the one that wrote it did. The error says which.
	ErrJournal = node.ErrJournal
	// ErrDamaged says that the journal is damaged, and where.
	ErrDamaged = journal.ErrDamaged
	// ErrInUse says that another process uses the directory.
	ErrInUse = journal.ErrInUse
)

// check says what is wrong with a configuration, and returns the place of this member.
func (c *Config) check() (protocol.ID, error) {
	switch {
	case c.Name == "":
		return 0, errors.New("no Name: which of the members is this")
	case len(c.Objects) == 0 && c.More == nil:
		return 0, errors.New("no Objects, and no More that makes some: nothing to enter")
	case c.More == nil && c.Slots != 0, c.Slots < 0 || c.Slots > maxSlots:
		return 0, fmt.Errorf("%d Slots: want 1 to %d with More, and none without", c.Slots, maxSlots)
	case c.SyncEvery < 0 || c.SyncEvery > 0 && !c.durable():
		return 0, fmt.Errorf("SyncEvery is %v: want 0, or more with a Dir", c.SyncEvery)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Objects)) {
		if err := checkName(name); err != nil {
			return 0, err
		}
		if c.Objects[name] == nil {
			return 0, fmt.Errorf("object %q is nil", name)
		}
	}
	table, id, err := members.Table(c.Members, c.Name)
	if err != nil {
		return 0, err
	}
	c.Members = table
	c.Lease = cmp.Or(c.Lease, 2*time.Second)
	c.MaxState = cmp.Or(c.MaxState, 256<<20)
	if c.More != nil {
		c.Slots = cmp.Or(c.Slots, 16)
	}
	if c.Engine == nil {
		c.Engine = WME2
	}
	return id, nil
}

func (c *Config) durable() bool { return c.Dir != "" || c.disk != nil }

// journal opens the journal, nil: there is none.
func (c *Config) journal() (*journal.Journal, error) {
	if !c.durable() {
		return nil, nil
	}
	disk := c.disk
	if disk == nil {
		var err error
		if disk, err = journal.OpenDir(c.Dir); err != nil {
			return nil, fmt.Errorf("directory: %w", err)
		}
	}
	j, err := journal.Open(disk, c.SyncEvery)
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	if j.Exists() && c.Bootstrap {
		return nil, errors.Join(fmt.Errorf("%w: the journal in %q has its life, which goes on then", ErrMetBefore, c.Dir), j.Close())
	}
	return j, nil
}

// A Member is one process of a system, with its copies of the objects. Its methods may be called by many goroutines.
type Member struct {
	n        *node.Node
	c        Config
	replicas map[string]*replica // by their names at the node: see later.go
	journal  *journal.Journal    // nil: it is not durable
	close    sync.Once           // of the journal
}

// Open starts a member, and returns it once it takes part: with Bootstrap when it has met all others, and otherwise
// when it has the objects as the system has them. If ctx ends before, the error says who is missing, and nothing is left
// behind.
func Open(ctx context.Context, c Config) (*Member, error) {
	m, err := start(c)
	if err == nil {
		if err = m.takePart(ctx); err == nil {
			return m, nil
		}
		m.Close()
	} else if c.Listener != nil {
		c.Listener.Close()
	}
	return nil, fmt.Errorf("sections: open: %w", err)
}

func start(c Config) (m *Member, err error) {
	id, err := c.check()
	if err != nil {
		return nil, err
	}
	j, err := c.journal()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && j != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	m = &Member{c: c, replicas: map[string]*replica{}, journal: j}
	nc := node.Config{
		ID: id, Peers: c.Members, Epoch: c.Epoch, Hosts: map[node.Kind]node.Host{node.Replica: c.Engine}, Objects: map[string]node.Object{},
		Joins: !c.Bootstrap, Lease: c.Lease, Patience: c.Patience, MaxState: c.MaxState, TLS: c.TLS, Dial: c.Dial, Boot: c.Boot,
		Log: c.Log,
	}
	for name, o := range c.Objects {
		m.replicas[name] = newReplica(name, o)
	}
	m.addSlots()
	for name, r := range m.replicas {
		nc.Objects[name] = r
	}
	if j != nil {
		nc.Journal = j
		nc.Orphan = func(name string) func() {
			turn := m.replicas[name].turn
			turn <- struct{}{} // it is the first one, so that there is room
			return func() { <-turn }
		}
	}
	if c.change != nil {
		c.change(&nc)
	}
	door := listen.Door{Addr: c.Listen, Listener: c.Listener, TLS: c.TLS, Insecure: c.Insecure}
	if nc.Listener, err = door.Open(c.Members[id].Addr); err != nil {
		return nil, err
	}
	m.n, err = node.Start(nc)
	switch {
	case m.n == nil:
		nc.Listener.Close()
		return nil, err
	case err != nil: // an object has failed already
		m.n.Close()
		return nil, m.gone()
	}
	if m.n.First() { // where the journal says so, too
		for _, r := range m.replicas {
			r.arrive()
		}
	}
	return m, nil
}

// takePart waits until this member does.
func (m *Member) takePart(ctx context.Context) error {
	switch err := m.n.WaitMet(ctx); {
	case errors.Is(err, node.ErrMetBefore):
		return fmt.Errorf("%w (%w)", ErrMetBefore, err)
	case errors.Is(err, node.ErrClosed):
		return m.gone()
	case err != nil:
		return fmt.Errorf("the first start needs all members at once: %w", missing(err))
	}
	for _, name := range slices.Sorted(maps.Keys(m.replicas)) {
		select {
		case <-m.replicas[name].here:
		case <-m.n.Closing():
			return m.gone()
		case <-ctx.Done():
			if err := m.reach(len(m.c.Members) - 1); err != nil {
				return fmt.Errorf("nobody has sent object %q: %w: %w", name, context.Cause(ctx), err)
			}
			return fmt.Errorf("nobody has sent object %q: %w: all members can be reached, and none takes part: "+
				"the first start of a system is with Bootstrap at all members", name, context.Cause(ctx))
		}
	}
	return nil
}

// reach is nil if so many others can be reached now, and otherwise says who cannot.
func (m *Member) reach(k int) error {
	now, cancel := context.WithCancelCause(context.Background())
	cancel(nil)
	err := m.n.WaitAlive(now, k)
	var u *node.UnreachableError
	if errors.As(err, &u) {
		return errors.New(whom(u))
	}
	return err
}

// missing is an error of a wait for others that says why it ended, and who was missing.
func missing(err error) error {
	var u *node.UnreachableError
	if !errors.As(err, &u) {
		return err
	}
	return fmt.Errorf("%w: %s", u.Cause, whom(u))
}

// whom says who could not be reached, and why.
func whom(u *node.UnreachableError) string {
	all := []string{fmt.Sprintf("%d of %d others can be reached", u.Alive, u.Alive+len(u.Members))}
	for _, m := range u.Members {
		all = append(all, fmt.Sprintf("%s (%s): %v", m.Peer.Name, m.Peer.Addr, m.Err))
	}
	return strings.Join(all, "; ")
}

// gone is why this member closes, or has.
func (m *Member) gone() error {
	for _, name := range slices.Sorted(maps.Keys(m.replicas)) {
		r := m.replicas[name]
		r.mu.RLock()
		broken := r.broken
		r.mu.RUnlock()
		if err := cmp.Or(broken, m.n.Failure(name)); err != nil {
			return closed(err)
		}
	}
	return ErrClosed
}

// Healthy is nil while this member can serve its users: it reaches a majority of the members, itself included. Otherwise
// it says who is missing, or why this member has closed: then it does not come back without a new start.
func (m *Member) Healthy() error {
	var err error
	select {
	case <-m.n.Closing():
		err = m.gone()
	default:
		err = m.reach(len(m.c.Members) / 2)
	}
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("sections: no majority: %w", err)
}

// SetTable has some members be at other addresses from now on: table has all of them, with the same names, and epoch
// is higher than before. A member that moves is restarted there, with them in its Config, and each of the others is
// told; those with larger names than its own connect to it. One that was not told learns it from a member with a
// smaller name than its own that was, as long as it can reach that. Sections and operations go on.
func (m *Member) SetTable(epoch uint64, table []Peer) error {
	if err := m.n.SetTable(epoch, members.Sorted(table)); err != nil {
		return fmt.Errorf("sections: %w", err)
	}
	return nil
}

// Suspect has this member take another one for down until it hears of it, as if that had been silent for too long. Where
// that is inside it is ejected as a rule, and others go on. It is for operators and for tests.
func (m *Member) Suspect(member string) error {
	id, err := members.Find(m.c.Members, member)
	if err != nil {
		return fmt.Errorf("sections: suspect: %w", err)
	}
	m.n.Suspect(id)
	return nil
}

// Close ends this member. Users that are inside here, or wait, are told ErrClosed, and the other members go on. It may come
// back, as a new life without Bootstrap, while a majority is up; or, with a Dir, in this one.
func (m *Member) Close() error {
	err := m.n.Close()
	if m.journal != nil {
		m.close.Do(func() { err = errors.Join(err, m.journal.Close()) })
	}
	return err
}
