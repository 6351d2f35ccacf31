package poundlock

import (
	"context"
	"sync"
	"time"
)

// Shared is the group of RWMutex.RLock, and of poundlock lock --shared.
const Shared = "shared"

// An RWMutex is a lock for one writer or any number of readers, of any processes. It is the lock of Client.Mutex with
// the same name: a Mutex there excludes readers here. Whoever waits is served in the order of the requests, except
// that readers that wait come in together: nobody waits for ever.
//
// Goroutines of one client share what it holds: while one of them reads, another one joins it without a message to a
// server, and the last one that unlocks gives the lock up. Once a writer waits, here or elsewhere, nobody of this client joins
// any more: readers that come later come in after it. So each writer gets in, also among readers that overlap for ever.
// Servers hear of a writer when the readers of its own client have left: its place among other clients counts from then.
// A reader that calls RLock again may therefore wait for a writer that waits for it: a goroutine needs one RLock.
//
// Each RLock has a grant of its own: with its context, Config.MaxHold and Unlock. Those that share have one token
// and one lease, and a loss of the lock tells them all.
//
// A writer may go on as a reader: Grant.Downgrade lets readers in beside it, and no writer in between. There is no
// upgrade: two readers that wait for each other to leave would do so for ever. Unlock, Lock, and look
// again whether what was read still holds.
//
// The zero RWMutex is of no client, and its methods panic.
type RWMutex struct{ m *Mutex }

// RWMutex returns the lock called name for readers and writers: see Mutex.
func (c *Client) RWMutex(name string) *RWMutex { return &RWMutex{c.Mutex(name)} }

// Name is the name of the lock.
func (m *RWMutex) Name() string { return m.m.Name() }

// Lock waits for the lock, alone: see Mutex.Lock.
func (m *RWMutex) Lock(ctx context.Context) (*Grant, error) { return m.m.Lock(ctx) }

// TryLock makes one attempt to be alone: see Mutex.TryLock.
func (m *RWMutex) TryLock(ctx context.Context) (*Grant, error) { return m.m.TryLock(ctx) }

// Do calls f alone under the lock: see Mutex.Do.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context, g *Grant) error) error {
	return m.m.Do(ctx, f)
}

// RLock waits for the lock, and shares it with other readers: see Mutex.Lock. While this client reads and no writer
// waits it returns at once.
func (m *RWMutex) RLock(ctx context.Context) (*Grant, error) { return m.readers().Lock(ctx) }

// TryRLock makes one attempt to share the lock with other readers: see Mutex.TryLock. It joins those of this client,
// and fails where a writer waits for them.
func (m *RWMutex) TryRLock(ctx context.Context) (*Grant, error) { return m.readers().TryLock(ctx) }

// RDo calls f under the lock, which it shares with other readers: see Mutex.Do.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, g *Grant) error) error {
	return m.readers().Do(ctx, f)
}

// Locker is that of Mutex: alone.
func (m *RWMutex) Locker(ctx context.Context) sync.Locker { return m.m.Locker(ctx) }

// RLocker is a Locker that shares the lock with other readers, also with those that use the same one.
func (m *RWMutex) RLocker(ctx context.Context) sync.Locker { return m.readers().Locker(ctx) }

// Keep returns m for a client that keeps the lock for d after the last Unlock, of writers and of readers: see Mutex.Keep.
func (m *RWMutex) Keep(d time.Duration) *RWMutex { return &RWMutex{m.m.Keep(d)} }

// HeadStart returns m for requests that count as made d earlier, of writers and of readers: see Mutex.HeadStart.
func (m *RWMutex) HeadStart(d time.Duration) *RWMutex { return &RWMutex{m.m.HeadStart(d)} }

func (m *RWMutex) readers() *Mutex { return m.m.In(Shared) }

// A GroupMutex is a lock that holders of one group share: any number of one group are inside, or one that is alone.
// Rooms that only one team uses at a time are an example. It is the lock of Client.Mutex with the same name. Goroutines of
// one client that want one group share what it holds, as readers do: see RWMutex, where a group that waits is
// like a writer.
//
// The zero GroupMutex is of no client, and its methods panic.
type GroupMutex struct{ m *Mutex }

// Groups returns the lock called name for groups: see Mutex.
func (c *Client) Groups(name string) *GroupMutex { return &GroupMutex{c.Mutex(name)} }

// Name is the name of the lock.
func (m *GroupMutex) Name() string { return m.m.Name() }

// Keep returns m for a client that keeps the lock, and its group, for d after the last Unlock: see Mutex.Keep.
func (m *GroupMutex) Keep(d time.Duration) *GroupMutex { return &GroupMutex{m.m.Keep(d)} }

// HeadStart returns m for requests that count as made d earlier: see Mutex.HeadStart.
func (m *GroupMutex) HeadStart(d time.Duration) *GroupMutex { return &GroupMutex{m.m.HeadStart(d)} }

// Lock waits for the lock, and shares it with those of group. With others it does so with those of any one of the groups, three
// at most, in order of preference: Grant.Group tells which one. It is group where nobody holds the lock, and another one
// where that has it already: its room is open, and there is no need to wait for one's own.
func (m *GroupMutex) Lock(ctx context.Context, group string, others ...string) (*Grant, error) {
	return m.m.among(group, others).Lock(ctx)
}

// TryLock makes one attempt to share the lock with those of group, or of one of the others.
func (m *GroupMutex) TryLock(ctx context.Context, group string, others ...string) (*Grant, error) {
	return m.m.among(group, others).TryLock(ctx)
}

// Do calls f under the lock, which it shares with those of group.
func (m *GroupMutex) Do(ctx context.Context, group string, f func(ctx context.Context, g *Grant) error) error {
	return m.m.among(group, nil).Do(ctx, f)
}
