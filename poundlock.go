// Package poundlock is the client of the lock service: exclusive locks held by
// a cluster of memory-only servers, any of which may crash and come back empty.
package poundlock

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
)

// What callers branch on. Other errors wrap one of these or are usage errors.
var (
	ErrNotAcquired = errors.New("poundlock: not acquired")
	ErrLost        = errors.New("poundlock: lock lost")
	ErrNoQuorum    = errors.New("poundlock: no quorum of servers reachable")
	ErrClosed      = errors.New("poundlock: client closed")
)

// A Server is one slot of the static slot table.
type Server struct {
	Name string
	Addr string // host:port, or unix:/path
}

// Config says how to reach a cluster. Servers is required.
type Config struct {
	Servers    []Server      // the whole slot table, in the same order everywhere
	TLS        *tls.Config   // nil: plaintext
	Lease      time.Duration // how long servers keep the locks of a silent client. Default 10s
	ClockBound time.Duration // eps: the distance of every clock from real time. Default 50ms
	Label      string        // who this is, for people. Default: host name and process id
	Epoch      uint64        // of the slot table. Default 0
	NoAmnesia  bool          // allow fewer than 4 servers
	Log        *slog.Logger  // nil: discarded
}

// A Client has one session with each server, shared by all its locks.
type Client struct{}

// Dial connects to a cluster and returns when a quorum answers. It returns
// ErrNoQuorum, wrapped with what each server said, when ctx ends first.
func Dial(ctx context.Context, c Config) (*Client, error) { panic("not implemented") }

// Close releases every lock and ends the sessions.
func (c *Client) Close() error { panic("not implemented") }

// Mutex returns the lock called name. It costs nothing until it is used.
func (c *Client) Mutex(name string) *Mutex { panic("not implemented") }

// A Mutex is an exclusive lock. Several goroutines may use it: they queue here.
type Mutex struct{}

// Lock waits for the lock. On error nothing is held: ctx's error wrapped with
// ErrNotAcquired, ErrNoQuorum or ErrClosed.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) { panic("not implemented") }

// TryLock makes one attempt. ErrNotAcquired does not prove that somebody holds
// the lock: two concurrent attempts at a free lock may both fail.
func (m *Mutex) TryLock(ctx context.Context) (*Grant, error) { panic("not implemented") }

// Do calls f under the lock with a context that is cancelled with ErrLost when
// the lock is lost, and unlocks. The error joins f's with ErrLost if it was lost.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, g Grant) error) error {
	panic("not implemented")
}

// A Grant is one critical section.
type Grant struct{}

// Token is the fencing token: larger than that of every grant of this lock that
// ended before this one began.
func (g *Grant) Token() uint64 { panic("not implemented") }

// Context is cancelled with cause ErrLost before any server can give the lock
// away, with cause context.Canceled by Unlock.
func (g *Grant) Context() context.Context { panic("not implemented") }

// LeaseEnd is the instant until which the grant is certain to be held, by this
// machine's clock. It moves as servers are heard from.
func (g *Grant) LeaseEnd() time.Time { panic("not implemented") }

// Unlock leaves the critical section. It returns ErrLost if the lock was lost
// before, and works whatever became of any context.
func (g *Grant) Unlock() error { panic("not implemented") }
