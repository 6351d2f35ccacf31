// Package node runs the processes of one algorithm on a network: one process
// for each lock name, created on first use and dropped when it is idle. It gives
// them what the contract promises: reliable channels, a clock, timers, and a
// failure detector made of leases.
package node

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Host makes the processes of one algorithm, message type erased. HostOf
// returns one; the catalog exports one for each algorithm.
type Host interface {
	Info() protocol.Info
	// New makes process id of one lock, before its Start.
	New(id protocol.ID, c protocol.Config) Instance
}

// An Instance is one process of one lock.
type Instance interface {
	// Step gives the event to the process; msg is the encoded message of a
	// Receive. Effects reach the sink in order. An error says that msg is
	// malformed or that the process panicked: the instance must not be used again.
	Step(in protocol.Input, msg []byte, sink Sink) error
	// Fresh reports whether the state equals that of New and Start.
	Fresh() bool
	// Standing is what a member knows about holders and waiters.
	Standing() protocol.Standing
}

// A Sink receives the effects of a step. The bytes of a message are valid during
// the call only.
type Sink interface {
	Effect(a protocol.Act, msg []byte)
}

// Kind is the kind of a lock name, part of its identity on the wire.
type Kind uint8

// Mutex is the kind of exclusive locks.
const Mutex Kind = 1

// A Peer is a member: the static slot table is a list of them, in the order of
// their ids.
type Peer struct {
	Name string // virtual server name
	Addr string // host:port, or unix:/path
}

// Config describes a node. The zero values of optional fields are the defaults.
type Config struct {
	ID     protocol.ID // a member if below len(Peers), else a client: NewClientID
	System protocol.Config
	Kind   Kind
	Host   Host
	Peers  []Peer // every member
	Epoch  uint64 // of the slot table, in every frame; another epoch is refused

	Listener net.Listener // where a member accepts; nil at a client
	TLS      *tls.Config  // for dialing; nil: plaintext. A TLS listener is the caller's

	Lease      time.Duration // L: a server suspects a client that it has not heard of for L; a client asks for it. Default 10s
	ClockDrift float64       // rho: two clocks' rates differ by less. Default 0.001
	Label      string        // who this is, for people: shown by status as the holder
	Log        *slog.Logger  // nil: discarded

	// Call answers a control request of a connected process, such as status.
	Call func(from protocol.ID, request []byte) []byte
}

// A User is told what the process of its lock does. Calls come from the node's
// own goroutines, one at a time for one lock, and must not block.
type User interface {
	Crit(token uint64)
	Rem(reason string)
	Ejected()
}

// A Node hosts processes until it is closed.
type Node struct{}

// Start starts a node.
func Start(c Config) (*Node, error) { panic("not implemented") }

// Close ends the node: its sessions end, its users are told Ejected or Rem.
func (n *Node) Close() error { panic("not implemented") }

// NewClientID draws the id of a client.
func NewClientID() protocol.ID { panic("not implemented") }

// Incarnation is the number of this life of the node: its boot clock.
func (n *Node) Incarnation() uint64 { panic("not implemented") }

// Try lets u try to enter the lock called name. A node has one user a lock at a
// time: Try fails while another one is not in its remainder section.
func (n *Node) Try(name string, u User, once bool) error { panic("not implemented") }

// Cancel gives up a Try. The user is told Rem, or was told Crit before.
func (n *Node) Cancel(name string) { panic("not implemented") }

// Exit leaves the lock called name. Rem follows.
func (n *Node) Exit(name string) { panic("not implemented") }

// Alive returns how many members this node has a live session with.
func (n *Node) Alive() int { panic("not implemented") }

// WaitAlive waits for k live sessions, and returns what stands in the way, by
// member, when ctx ends first.
func (n *Node) WaitAlive(ctx context.Context, k int) error { panic("not implemented") }

// LeaseEnd is when the sessions of at least k members are certain to be alive
// until, by this node's clock: the k-th latest lease end.
func (n *Node) LeaseEnd(k int) time.Time { panic("not implemented") }

// Call sends a control request to a member and waits for the answer.
func (n *Node) Call(ctx context.Context, to protocol.ID, request []byte) ([]byte, error) {
	panic("not implemented")
}

// A Lock is what a node knows about one lock.
type Lock struct {
	Name     string
	Kind     Kind
	Standing protocol.Standing
}

// Locks returns the instances that are not idle, by name.
func (n *Node) Locks() []Lock { panic("not implemented") }

// A Session is what a node knows about one connected process.
type Session struct {
	Peer        protocol.ID
	Label       string
	Incarnation uint64
	LeaseEnd    time.Time
}

// Sessions returns the live sessions, by peer.
func (n *Node) Sessions() []Session { panic("not implemented") }
