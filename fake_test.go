package poundlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A fakeNode is a runtime whose process does what a test says: it grants every
// Try at once unless held back, and answers Cancel and Exit with Rem.
type fakeNode struct {
	backlog node.Backlog
	t       *testing.T

	mu              sync.Mutex
	hold            bool            // Try waits for an explicit grant
	holdNames       map[string]bool // the same for some names
	busy            bool            // somebody else has every lock: Try gives up if it is to try once
	beforeTry       func()          // without f.mu
	beforeCancel    func()          // the same
	beforeDowngrade func()          // the same
	atCancel        func(u node.User)
	atExit          func(u node.User)
	users           map[string]node.User
	inside          map[string]bool
	token           uint64
	group           protocol.Group // whoever wants any of several groups gets this one
	alive           int
	rest            node.Rest
	awaited         bool // somebody has waited until servers are there
	sessions        []node.Session
	known           []node.Session // at entry; nil: sessions
	answer          func(server protocol.ID) *control.Page
	log             []string
	heads           []time.Duration // head starts of those who tried
	calls           chan func()     // run one after another, as a node's goroutine does
	closeOnce       sync.Once
}

func newFake(t *testing.T) (*Client, *fakeNode) {
	t.Helper()
	c, f := newFakes(t, servers(4))
	return c, f[0]
}

// newFakes has one fakeNode for each shard of servers.
func newFakes(t *testing.T, servers []Server) (*Client, []*fakeNode) {
	t.Helper()
	c, err := newClient(Config{Servers: servers, Label: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var fakes []*fakeNode
	for _, g := range c.shards {
		f := startFake(t)
		g.node = f
		fakes = append(fakes, f)
	}
	c.audit.start(c.id, c.config)
	t.Cleanup(func() { c.Close() })
	return c, fakes
}

func startFake(t *testing.T) *fakeNode {
	f := &fakeNode{t: t, alive: 4, users: map[string]node.User{}, inside: map[string]bool{}, calls: make(chan func(), 100)}
	for i := range 4 {
		f.sessions = append(f.sessions, node.Session{
			Peer: protocol.ID(i), Number: 1, LeaseEnd: time.Now().Add(time.Hour),
		})
	}
	go func() {
		for call := range f.calls {
			call()
		}
	}()
	return f
}

func servers(n int) []Server {
	var s []Server
	for i := range n {
		s = append(s, Server{Name: fmt.Sprintf("s%d", i), Addr: fmt.Sprintf("127.0.0.1:%d", 7000+i)})
	}
	return s
}

func (f *fakeNode) Try(_ node.Kind, name string, u node.User, once bool) error {
	if f.beforeTry != nil {
		f.beforeTry()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == nil {
		return errors.New("closed")
	}
	if err := transport.CheckName(name); err != nil {
		f.t.Errorf("Try(%q): %v", name, err)
	}
	if f.users[name] != nil {
		f.t.Errorf("Try(%s) while another user is not in its remainder", name)
		return errors.New("busy")
	}
	f.users[name] = u
	f.log = append(f.log, "try "+name)
	f.heads = append(f.heads, u.(node.Early).HeadStart())
	switch {
	case f.busy && once:
		f.rem(name, nil)
	case !f.hold && !f.holdNames[name]:
		f.grant(name)
	}
	return nil
}

// grant lets the user in; f.mu is held.
func (f *fakeNode) grant(name string) {
	u := f.users[name]
	f.calls <- func() {
		f.mu.Lock()
		if f.users[name] != u {
			f.mu.Unlock()
			return
		}
		f.token++
		token := f.token
		f.inside[name] = true
		known := f.known
		if known == nil {
			known = f.sessions
		}
		numbers := map[protocol.ID]uint64{}
		for _, s := range known {
			numbers[s.Peer] = s.Number
		}
		f.mu.Unlock()
		u.Crit(node.Entry{Token: token, Group: f.group, Request: token, Sessions: numbers})
	}
}

// rem ends what u does with the lock; f.mu is held.
func (f *fakeNode) rem(name string, why error) {
	u := f.users[name]
	f.calls <- func() {
		f.mu.Lock()
		if f.users[name] != u {
			f.mu.Unlock()
			return
		}
		delete(f.users, name)
		delete(f.inside, name)
		f.mu.Unlock()
		u.Rem(why)
	}
}

func (f *fakeNode) Cancel(name string) {
	if f.beforeCancel != nil {
		f.beforeCancel()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, "cancel "+name)
	u := f.users[name]
	if u == nil || f.inside[name] {
		return
	}
	if f.atCancel != nil {
		f.atCancel(u)
		return
	}
	f.rem(name, nil)
}

func (f *fakeNode) Downgrade(name string, to protocol.Group) {
	if f.beforeDowngrade != nil {
		f.beforeDowngrade()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf("downgrade %s to %s", name, to))
	if !f.inside[name] {
		f.t.Errorf("Downgrade(%s) outside the critical section", name)
	}
}

func (f *fakeNode) Exit(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, "exit "+name)
	u := f.users[name]
	if u == nil {
		return
	}
	if !f.inside[name] {
		f.t.Errorf("Exit(%s) outside the critical section", name)
	}
	if f.atExit != nil {
		go f.atExit(u)
		return
	}
	f.rem(name, nil)
}

// supported tells the user that all sessions support it.
func (f *fakeNode) supported(name string) {
	f.mu.Lock()
	u, numbers := f.users[name], map[protocol.ID]uint64{}
	for _, s := range f.sessions {
		numbers[s.Peer] = s.Number
	}
	f.mu.Unlock()
	u.Supported(numbers)
}

func (f *fakeNode) eject(name string) {
	f.mu.Lock()
	u := f.users[name]
	f.mu.Unlock()
	f.calls <- u.Ejected
}

func (f *fakeNode) ID() protocol.ID { return 1 << 62 }
func (f *fakeNode) Gathering() bool { return false }

func (f *fakeNode) Rest() node.Rest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest
}

func (f *fakeNode) Want() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, "want")
}

// rests has it have no sessions, because nothing is wanted.
func (f *fakeNode) rests(rest node.Rest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest, f.alive = rest, 0
}

func (f *fakeNode) Backlog() node.Backlog { return f.backlog }
func (f *fakeNode) Failure(string) error  { return nil }

func (f *fakeNode) setAlive(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = k
}

// down makes the servers silent, and up makes them answer again.
func (f *fakeNode) down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive, f.hold = 1, true
}

func (f *fakeNode) up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive, f.hold = 4, false
	for name := range f.users {
		if !f.inside[name] {
			f.grant(name)
		}
	}
}

func (f *fakeNode) Clock() (now time.Time, off time.Duration, steps uint64) {
	return time.Now(), 0, 0
}

func (f *fakeNode) PeerStats() []node.PeerStats {
	return []node.PeerStats{{Name: "s0", Connected: true, LastRoundTrip: time.Millisecond}}
}

func (f *fakeNode) Alive() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alive
}

func (f *fakeNode) Ended(protocol.ID, uint64) node.Cause { return node.CauseLapsed }

func (f *fakeNode) Leased(sessions map[protocol.ID]uint64, k int) bool {
	return !f.LeaseEnd(sessions, k).IsZero()
}

func (f *fakeNode) LeaseEnd(sessions map[protocol.ID]uint64, k int) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ends []time.Time
	for _, s := range f.sessions {
		if number, ok := sessions[s.Peer]; ok && number == s.Number && s.LeaseEnd.After(time.Now()) {
			ends = append(ends, s.LeaseEnd)
		}
	}
	if k > len(ends) {
		return time.Time{}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[k-1]
}

func (f *fakeNode) Sessions() []node.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]node.Session(nil), f.sessions...)
}

func (f *fakeNode) Call(ctx context.Context, to protocol.ID, _ []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answer != nil {
		if p := f.answer(to); p != nil {
			return json.Marshal(p)
		}
	}
	return nil, errors.New("no route to host")
}

func (f *fakeNode) WaitAlive(ctx context.Context, k int) error {
	f.mu.Lock()
	f.awaited = f.awaited || ctx.Err() == nil
	f.mu.Unlock()
	for f.Alive() < k {
		select {
		case <-ctx.Done():
			return errors.New("s3: no route to host")
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (f *fakeNode) Close() error {
	f.closeOnce.Do(func() {
		f.mu.Lock()
		users := f.users
		f.users = nil
		f.mu.Unlock()
		f.calls <- func() {
			for name, u := range users {
				if f.inside[name] {
					u.Ejected()
				}
				u.Rem(node.ErrClosed)
			}
		}
		close(f.calls)
	})
	return nil
}

func (f *fakeNode) logged() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}
