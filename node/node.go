// Package node runs the processes of one algorithm on a network: one process
// for each lock name, created on first use and dropped when it is idle. It gives
// them what the contract promises: reliable channels, a clock, timers, a
// failure detector made of leases, and copies of replicated objects.
//
// Two processes share one session for all their locks. A session outlives its
// connections: what was not acknowledged is sent again on the next one. It ends
// when its lease lapses, which the client always notices first, or when one end
// has lost it; a new session then begins with new numbers, and no message of
// the old one is delivered any more. Members that are users themselves hold leases
// at each other (mutual.go), or suspect each other (watch.go), as their algorithm asks;
// gate.go says what their lives are to each other.
//
// The goroutines of a node are some event loops, each with the instances
// whose names hash to it; a reader and a writer a connection; one dialer for
// each process that this one dials; one that watches the leases; one that logs
// their ends; and one for each control request being answered. A reader steps a loop that is idle itself. Nobody who
// steps a loop waits for a peer: messages go to the window of the session, from there to the connection as far as the kernel
// takes them at once, and the writer sees to the rest.
package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// Config describes a node. The zero values of optional fields are the defaults.
type Config struct {
	ID protocol.ID // of a member: its place in Peers. That of a client follows from Secret
	// Secret makes this a client, whose id is ClientID(Secret): NewSecret. Members are told it, and nobody else
	// may be: whoever knows it can be this client.
	Secret uint64
	// EndWithConnection has a session of this client end with its connection: here before this end closes it, and
	// at a member when the client's system has, which it does when the process is killed. Then nobody waits for the lease.
	// It is for clients that reach members with nothing in between that could end one half of a connection, and
	// for algorithms whose members each give a lease.
	EndWithConnection bool
	// Process is ThisProcess for a client, unless something else acts for it that may outlive this process. Then a session with a member
	// whose unix socket this process dials itself ends with this process, and does not wait for the lease.
	Process string
	// Follows says that an earlier process was this client, and has ended: at members the sessions of this one end those.
	Follows bool
	System  protocol.Config
	// Hosts make the processes, for each kind of lock that this node serves or uses.
	// All share its sessions, so their algorithms have the same users and detector.
	Hosts map[Kind]Host
	Peers []Peer // the slot table: every member. SetTable replaces it
	Epoch uint64 // of the slot table, in every frame; members refuse older ones

	// Shards names the shards that lock names are spread over, for the two
	// ends to agree on. Owns says why a lock does not belong to this member's shard.
	// nil: there is one shard, which has all names.
	Shards string
	Owns   func(name string) error

	Listener net.Listener // where a member accepts; Close closes it. nil: Serve follows, or this is a client
	// TLS is for dialing; nil: plaintext. A TLS listener is the caller's. Without a
	// ServerName each member's certificate must be for the host of its address, or
	// for its name in Peers where the address is a unix socket.
	TLS *tls.Config

	// Lease is L: a member suspects a client that it has not heard of for L. A
	// client asks for its own, and gets at most the member's. Default 10s, MinLease
	// to MaxLease.
	Lease time.Duration
	// Idle is for clients: members are dialed when something is wanted of them, a lock or an answer, and their sessions end when nothing
	// has been for so long, while a quorum of them can be reached. It has to be several leases. 0: members are dialed at Start, and sessions stay.
	Idle       time.Duration
	ClockDrift float64 // rho: two clocks' rates differ by less. Default 0.001
	// ClockBound is how far any clock may be from real time, for the two ends to compare:
	// they warn where theirs differ. 0: not compared.
	ClockBound time.Duration
	Label      string       // who this is, for people: shown by status as the holder
	Log        *slog.Logger // nil: discarded

	// Objects are the copies that this member has of the objects of locks of kind Replica, by
	// name. All members have the same names. Their processes begin with the node, and others
	// are refused.
	Objects map[string]Object
	// Leader is told, by the goroutine of a loop, who leads by an algorithm of kind Election, and by which epoch, whose number grows: as
	// far as this process knows. It must not block. nil: nobody is.
	Leader func(leader protocol.ID, epoch uint64)
	// Joins says that a life of this member was part of the system before, or that the system
	// has run without: algorithms whose members come back (protocol.Recovery) are told. A
	// member that has had a life and says false has forgotten what it promised: those that met
	// that life refuse it, and others take it for one that promised nothing. Where members come back
	// the wall clock must be later at each start than at the one before, and Lease no shorter while
	// others go on; and a first life does nothing before it has met all members. Where they do not, nobody
	// does, and all members must begin anew when one has.
	Joins bool
	// Patience is how members suspect each other, where their algorithm asks for that:
	// protocol.UnreliableDetector. A member is heard of at least every third of Lease. Default:
	// Lease at first, half as much more with each mistake, and at most ten times as much.
	Patience lease.Patience
	// Journal makes a member durable whose users are members that suspect each other: after a restart it goes on, in the same life,
	// from what is written there. nil: it is not.
	Journal Journal
	// JournalCut is after how many bytes, of what happened and of what was sent, a checkpoint takes their place. Larger starts slower,
	// smaller writes more. A checkpoint of more bytes is written after as many. Default 16 MiB
	JournalCut int
	// Orphan is told, by Start, of a user that was there when the journal ended. The node has it leave as soon as it can, calls gone then,
	// and lets no other one try before. Needed with a Journal.
	Orphan func(name string) (gone func())

	// Audit is told of each support that this member gives or ends, in their order for
	// one lock, by the goroutines of loops: it must not block. nil: nobody is.
	Audit func(Support)

	// Call answers a control request of a connected process, such as status, on
	// a goroutine of its own; Close waits for it. A panic fails the request only.
	// nil: requests are refused.
	Call func(from protocol.ID, request []byte) []byte

	// Dial connects to a member, by a connection that has deadlines. nil: TCP or a unix socket, with TLS if set.
	Dial func(ctx context.Context, p Peer) (net.Conn, error)
	// Boot is the clock of leases. nil: the time since the machine booted, which
	// counts a suspended machine's sleep. A test with a virtual clock sets it.
	Boot func() time.Duration

	MaxSessions int // sessions with clients; more are refused. Default 16384
	// MaxSessionsOfOne is how many of these clients may have that come from one address, or show one certificate.
	// Default: no more than are left for others, which is half of them for one address alone
	MaxSessionsOfOne int
	// MaxWaiters is how many clients may hold or wait for a lock at a member, each counted once for each lock. Other
	// names are refused; so are those of clients from an address, or with a certificate, that has no less than
	// is left for others. Default 4194304
	MaxWaiters int
	// MaxLocks is how many locks one client may hold or want at once, and MaxInstances
	// how many a member keeps for all of them, idle ones whose tokens it remembers
	// included. Other names are refused. Default 65536 and 2097152
	MaxLocks, MaxInstances int
	// MaxUnacked is how many bytes of messages all sessions of a member may have that
	// are not acknowledged, but for those of more than 256 KiB, such as states of objects. Beyond, one with more than 64 KiB of them is dropped when
	// there is more to tell it, and suspected when its lease is over. Default 256 MiB
	MaxUnacked int64
	// MaxFrames is how many bytes of memory a member has for frames that others send it, which are unfinished or are to be
	// handled. Those of up to 8 KiB do not count. Beyond, the connection with the oldest unfinished one is closed, of
	// those from the address that has most; its session goes on. So is one whose address would have more to be handled
	// than is left for others. Default 256 MiB
	MaxFrames int
	// MaxState is how many bytes the state of an object may have, with the last results: a larger one is not
	// sent, and who asks for it closes; so does a member that gets one which is larger than it allows. Raise it
	// at all members. Default 256 MiB, 1 byte to 1 GiB
	MaxState int
}

// What Try fails with.
var (
	ErrClosed error = &end{"the node is closed", CauseClosed, true}
	ErrBusy         = errors.New("node: the lock has a user that is not in its remainder section")
	ErrFailed       = errors.New("node: the lock failed")
)

// A FailedError says why a lock has failed at this node, where nobody can have it any more. It wraps ErrFailed.
type FailedError struct{ Lock, Why string }

func (e *FailedError) Error() string { return fmt.Sprintf("%v: %q: %s", ErrFailed, e.Lock, e.Why) }
func (e *FailedError) Unwrap() error { return ErrFailed }

// A User is told what the process of its lock does. Calls come from the node's
// own goroutines, one at a time for one lock. They must not block, and may call
// Try, Cancel, Exit, Sessions and Ended of the node, but no other method. After a panic
// in Crit, Supported or Ejected the lock stays closed at this node.
type User interface {
	Crit(e Entry) // the user is inside
	// Supported says that the critical section now counts on these.
	Supported(sessions map[protocol.ID]uint64)
	// Rem: the user is out. why is nil where it asked for that, or did not want to wait; a protocol.Reason
	// where the process gave up; and else what went wrong at this node or at a member.
	Rem(why error)
	Ejected()
}

// A Sharer is a User that shares the lock with those of a group: Entry.Group tells of which.
type Sharer interface {
	User
	// Wants is asked once, after Try: any one of these; "" to be alone.
	Wants() protocol.Groups
	// Wanted says that somebody waits who does not share: before the user is inside, or while it is, and
	// perhaps more than once.
	Wanted()
}

// An Early user has a head start: its request counts as made so much earlier, up to protocol.MaxHeadStart, where
// the algorithm knows that (Info.Early).
type Early interface {
	User
	// HeadStart is what it was when Try was called.
	HeadStart() time.Duration
}

// An Entry is what a user is told as it gets in.
type Entry struct {
	Token uint64         // the fencing token, 0 where the algorithm has none
	Group protocol.Group // that the user shares the lock with, "": it is alone
	// Request is the time of the request that was granted, by which the members know
	// it: see RequestID. 0 where the algorithm does not say.
	Request uint64
	// Sessions are the members that the critical section counts on: the numbers of
	// the sessions with them, some of which may have ended a moment ago.
	Sessions map[protocol.ID]uint64
}

// RequestID names a request of a client for people and for logs: 16 hexadecimal
// digits of the client's id, and 16 of the time of its request. The client and
// all members know one request by the same name.
func RequestID(client protocol.ID, request uint64) string {
	return fmt.Sprintf("%016x-%016x", uint64(client), request)
}

// A Node hosts processes until it is closed.
type Node struct {
	c           Config
	roles       roles
	table       slotTable
	incarnation uint64
	started     time.Time // of timers
	clock       wallClock
	lives       *lives
	detector    *detector // nil: members do not suspect each other
	seed        maphash.Seed
	loops       []*loop

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	parcels sync.Pool // of *parcel
	buffers sync.Pool // of *[]byte, for frames

	sessions *sessions
	pacer    *pacer
	thrift   thrift
	demand   *demand // nil: members are dialed always
	naps     *naps

	mu       sync.Mutex // taken before that of sessions
	draining bool
	frozen   *Frozen // nil: the node runs
	front    *front  // nil: nothing is accepted

	frames    limit.Room // of memory for frames that others send
	acker     acker
	done      chan struct{} // closed when Close is done
	calls     chan struct{} // one element for each control request being answered
	bound     atomic.Int64  // the last clock bound that this node warned of
	book      *logbook
	instances atomic.Int64 // of all loops
	// Constant: every kind of message, and where those of a kind of locks begin.
	messages     []MessageStats
	firstMessage [256]int
	counters     counters // of connections and sessions; what loops count is theirs
}

// Start starts a node.
func Start(c Config) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	n.run()
	if c.Listener != nil {
		err = n.Serve(c.Listener)
	}
	return n, err
}

// newNode makes a node that does not run yet.
func newNode(c Config) (*Node, error) {
	sleeps := machine
	if c.Boot != nil {
		sleeps = &naps{boot: c.Boot}
	}
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{
		c:           c,
		roles:       roles{self: c.ID, members: Names(c.Peers), info: c.anyHost().Info()},
		incarnation: c.incarnation(),
		started:     time.Now(),
		seed:        maphash.MakeSeed(),
		done:        make(chan struct{}),
		calls:       make(chan struct{}, maxCalls),
		book:        newLogbook(c.Log),
		frames:      limit.Room{Most: c.MaxFrames, Yields: true},
		clock:       wallClock{wall: wall},
	}
	n.sessions = newSessions(n)
	n.pacer = newPacer(n)
	n.thrift.n = n
	n.demand = newDemand(n)
	n.naps = sleeps
	n.parcels.New = func() any { return new(parcel) }
	n.buffers.New = func() any { return new([]byte) }
	n.nameMessages()
	n.counters.peers = make([]peerCounters, c.System.N+1)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.clock.start(c.Boot, c.ClockBound, n.clockSet)
	n.table.n = n
	n.table.replace(c.Epoch, c.Peers)
	n.lives = newLives(n)
	n.detector = newDetector(n)
	loops := runtime.GOMAXPROCS(0)
	if c.Journal != nil {
		loops = 1 // what happens has one order, which is that of the journal
	}
	for range loops {
		n.loops = append(n.loops, newLoop(n))
	}
	if c.Journal != nil {
		if err := n.loops[0].journal.load(); err != nil {
			n.cancel()
			return nil, fmt.Errorf("node: %w", err)
		}
	}
	return n, nil
}

// run starts the goroutines of a node.
func (n *Node) run() {
	n.wg.Add(1) // an object may fail at once, and then the node closes and waits for all of them
	defer n.wg.Done()
	for id := range n.c.Peers {
		if id := protocol.ID(id); id != n.c.ID && n.roles.standing(id) && n.sessions.lookup(id) == nil {
			n.sessions.stand(newSession(n, id, 1))
		}
	}
	if n.roles.mutual() && n.c.Joins {
		n.sessions.rejoin()
	}
	for _, l := range n.loops {
		go l.run()
	}
	if n.roles.watched() {
		n.wg.Go(func() { n.detector.run(n.ctx) })
	}
	for id := range n.c.Peers {
		if id := protocol.ID(id); n.roles.dialsTo(id) {
			d := &dialer{n: n, id: id, number: n.c.earlier()}
			n.wg.Go(d.run)
		}
	}
	if n.c.member() {
		n.wg.Go(n.watchClock)
	}
	n.wg.Go(n.sessions.run)
	n.wg.Go(func() { n.book.run(n.ctx) })
}

// complete fills in the defaults and says what is wrong.
func (c *Config) complete() error {
	if c.Secret != 0 {
		c.ID = ClientID(c.Secret)
	}
	if err := c.checkHosts(); err != nil {
		return err
	}
	c.System.N = cmp.Or(c.System.N, len(c.Peers))
	switch {
	case len(c.Peers) == 0:
		return errors.New("no members")
	case len(c.Objects) > 0 && (c.Hosts[Replica] == nil || !c.member()):
		return errors.New("objects without an algorithm for replicas, or at a client")
	case c.System.N != len(c.Peers):
		return fmt.Errorf("the system has %d members, the slot table %d", c.System.N, len(c.Peers))
	case !c.member() && c.Secret == 0:
		return fmt.Errorf("no member has the id %d, and a client needs a secret", c.ID)
	case !c.member() && c.Listener != nil:
		return errors.New("a client does not listen")
	case c.Idle < 0 || c.Idle > 0 && c.member():
		return fmt.Errorf("the idle time %v: want 0 or more at a client, and 0 at a member", c.Idle)
	case c.EndWithConnection && (c.member() || c.anyHost().Info().Detector != protocol.LeaseDetector):
		return errors.New("EndWithConnection is for clients with leases")
	case c.Journal != nil && (!c.member() || !onlyReplicas(c.Hosts) || c.Orphan == nil):
		return errors.New("a journal is for members with replicas alone, and needs Orphan")
	}
	if err := c.checkTable(c.Epoch, c.Peers); err != nil {
		return err
	}
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	if c.Lease < MinLease || c.Lease > MaxLease {
		return fmt.Errorf("the lease %v: want %v to %v", c.Lease, MinLease, MaxLease)
	}
	c.ClockDrift = cmp.Or(c.ClockDrift, 0.001)
	c.Patience = cmp.Or(c.Patience, lease.Patience{First: c.Lease, Step: c.Lease / 2, Most: 10 * c.Lease})
	if p := c.Patience; p.First <= 0 || p.Step < 0 || p.Most < p.First {
		return fmt.Errorf("the patience %+v: want First above 0, Step at least 0, and Most at least First", p)
	}
	if c.ClockDrift < 0 || c.ClockDrift > 0.5 {
		return fmt.Errorf("the clock drift %v must be between 0 and 0.5", c.ClockDrift)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Boot == nil {
		c.Boot = clock.Boot
	}
	c.MaxSessions = cmp.Or(c.MaxSessions, 1<<14)
	c.MaxWaiters = cmp.Or(c.MaxWaiters, 1<<22)
	c.MaxLocks = cmp.Or(c.MaxLocks, 1<<16)
	c.MaxInstances = cmp.Or(c.MaxInstances, 1<<21)
	c.MaxUnacked = cmp.Or(c.MaxUnacked, 256<<20)
	c.MaxFrames = cmp.Or(c.MaxFrames, 256<<20)
	c.MaxState = cmp.Or(c.MaxState, 256<<20)
	c.JournalCut = cmp.Or(c.JournalCut, 16<<20)
	if c.MaxState < 1 || c.MaxState > 1<<30 {
		return fmt.Errorf("MaxState is %d bytes: want 1 to %d", c.MaxState, 1<<30)
	}
	return nil
}

// incarnation is the wall clock of a member as it starts, in ns, whose last bit is Joins: later lives are known by
// larger numbers, also after a restart of the machine. That of a client is its secret.
func (c *Config) incarnation() uint64 {
	if c.member() {
		return lifeNumber(uint64(wall(time.Now())), c.Joins)
	}
	return c.Secret
}

// earlier is how many sessions with a member count as begun before this node. Where it follows another one, those are more
// than any process begins in its life.
func (c *Config) earlier() uint64 {
	if c.Follows {
		return 1 << 32
	}
	return 0
}

func (c *Config) member() bool { return c.ID < protocol.ID(len(c.Peers)) }

// NewSecret draws the secret of a client: 64 random bits, not all of them 0.
func NewSecret() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails
		if secret := binary.LittleEndian.Uint64(b[:]); secret != 0 {
			return secret
		}
	}
}

// ClientID is the id of the client that has a secret: 62 bits of its SHA-256, above every member's id. Ids are
// public. Nobody but the client can begin a session in its name, not even at a member that has
// lost its memory: to find another secret for the id takes some 2^62 attempts.
func ClientID(secret uint64) protocol.ID {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("poundlock client "), secret))
	return protocol.ID(binary.LittleEndian.Uint64(sum[:])>>2 | 1<<62)
}

// Incarnation is the number of this life of the node: at a member, its wall clock as it started.
func (n *Node) Incarnation() uint64 { return n.incarnation }

// Boot is a reading of the clock of leases.
func (n *Node) Boot() time.Duration { return n.c.Boot() }

// ID is the id of the node.
func (n *Node) ID() protocol.ID { return n.c.ID }

// Try lets u try to enter the lock called name, of a kind; with once it gives up as
// soon as somebody else seems to be first. A node has one user a name at a time: Try
// fails with ErrBusy while another one is not in its remainder section. A member that
// does not serve this name, or knows it as another kind, makes the user leave: it is
// told Rem with what the member says.
func (n *Node) Try(kind Kind, name string, u User, once bool) error {
	err := transport.CheckName(name)
	switch {
	case err != nil:
		return fmt.Errorf("node: %w", err)
	case n.c.Hosts[kind] == nil:
		return fmt.Errorf("node: lock %q: this process has no algorithm for %s", name, kind.noun())
	case (n.roles.info.Users == protocol.Members) != n.roles.member():
		return fmt.Errorf("node: %s is not a user of %s", n.roles.name(n.c.ID), n.roles.info.Name)
	}
	if err := n.c.checkObject(kind, name, u); err != nil {
		return err
	}
	own := &user{User: u, kind: kind, labelled: labelOf(u) != ""}
	switch info, ahead := n.c.Hosts[kind].Info(), own.ahead(); {
	case ahead < 0 || ahead > protocol.MaxHeadStart:
		return fmt.Errorf("node: a head start of %v: want 0 to %v", ahead, time.Duration(protocol.MaxHeadStart))
	case ahead > 0 && !info.Early:
		return fmt.Errorf("node: a head start of %v: %s knows none", ahead, info.Name)
	}
	l := n.loop(name)
	n.demand.want() // until the user leaves
	err = l.users.enter(name, own, func() { n.pacer.try(l, event{op: opTry, name: name, once: once}, own) })
	if err != nil {
		n.demand.done()
	}
	return err
}

// Cancel gives up a Try. The user is told Rem, or was told Crit before. Where
// the algorithm cannot cancel (Info.Cancels) nothing happens, and Crit follows.
func (n *Node) Cancel(name string) { n.loop(name).inbox.post(event{op: opCancel, name: name}) }

// Downgrade lets those of a group in beside the user of the lock called name, who is inside alone: see
// protocol.Downgrade. A user that is not inside, or shares already, stays as it is.
func (n *Node) Downgrade(name string, to protocol.Group) {
	n.loop(name).inbox.post(event{op: opDowngrade, name: name, msg: []byte(to)})
}

// Exit leaves the lock called name, after Crit or Ejected, with no operation open. Rem follows.
func (n *Node) Exit(name string) { n.loop(name).inbox.post(event{op: opExit, name: name}) }

func (n *Node) loop(name string) *loop {
	return n.loops[maphash.String(n.seed, name)%uint64(len(n.loops))]
}

// Failure is why the lock called name has failed here, a *FailedError, or nil. It is known before Closing is closed.
func (n *Node) Failure(name string) error {
	return n.loop(name).users.failing(name)
}

// Closing is closed when the node begins to close: because of Close, or because the process of an object has failed.
func (n *Node) Closing() <-chan struct{} { return n.sessions.closing }

// Close ends the node. What its users have left is told to the peers, within a
// second, before the sessions end; users inside are told Ejected, and those that
// try Rem. Close must not be called by a User.
func (n *Node) Close() error {
	n.mu.Lock()
	first := n.sessions.shut()
	front, frozen := n.front, n.frozen
	n.mu.Unlock()
	if !first {
		<-n.done
		return nil
	}
	n.demand.close()
	if front != nil {
		front.listener.Close()
	}
	for _, l := range n.loops {
		l.inbox.post(event{op: opClose})
	}
	if frozen != nil {
		frozen.release()
	}
	for _, l := range n.loops {
		<-l.done
	}
	if n.c.Journal == nil { // otherwise its sessions go on when it comes back
		n.sessions.flush()
	}
	n.cancel()
	if front != nil {
		front.wg.Wait()
	}
	n.wg.Wait()
	n.sessions.clear()
	close(n.done)
	return nil
}
