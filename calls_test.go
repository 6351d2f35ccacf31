package poundlock_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/server"
)

// A trouble is what a call meets: a client with a grant and a leadership whose
// servers, context or client are not as they should be.
type trouble struct {
	ctx    context.Context
	config poundlock.Config
	client *poundlock.Client
	grants map[string]*poundlock.Grant
	led    *poundlock.Leadership
}

// calls are all public functions and methods of this package that have to do with
// a client. Each name is a lock of its own, so that they do not wait for each other.
var calls = map[string]func(x *trouble) error{
	"Dial": func(x *trouble) error {
		c, err := poundlock.Dial(x.ctx, x.config)
		if err == nil {
			err = c.Close()
		}
		return err
	},
	"Connect": func(x *trouble) error {
		c, err := poundlock.Connect(x.config)
		if err != nil {
			return err
		}
		return c.Close()
	},
	"Client.Available":       func(x *trouble) error { return x.client.Available() },
	"Client.Close":           func(*trouble) error { return nil }, // the last one of each trouble
	"Client.EndsWithProcess": func(x *trouble) error { x.client.EndsWithProcess(); return nil },
	"Client.Election":        func(x *trouble) error { x.client.Election("e"); return nil },
	"Client.Groups":          func(x *trouble) error { x.client.Groups("a"); return nil },
	"Client.Healthy":         func(x *trouble) error { return x.client.Healthy() },
	"Client.Holder":          func(x *trouble) error { _, err := x.client.Holder(x.ctx, "led"); return err },
	"Client.Secret":          func(x *trouble) error { x.client.Secret(); return nil },
	"Client.Holders":         func(x *trouble) error { _, err := x.client.Holders(x.ctx, "led"); return err },
	"Client.ID":              func(x *trouble) error { x.client.ID(); return nil },
	"Client.Locks":           func(x *trouble) error { x.client.Locks("a", "b"); return nil },
	"Client.Mutex":           func(x *trouble) error { x.client.Mutex("a"); return nil },
	"Client.RWMutex":         func(x *trouble) error { x.client.RWMutex("a"); return nil },
	"Client.Semaphore":       func(x *trouble) error { x.client.Semaphore("a", 3); return nil },
	"Client.Stats":           func(x *trouble) error { x.client.Stats(); return nil },

	"Mutex.As":   func(x *trouble) error { x.client.Mutex("a").As("user"); return nil },
	"Mutex.In":   func(x *trouble) error { return unlock(x.client.Mutex("in").In("group").Lock(x.ctx)) },
	"Mutex.Keep": func(x *trouble) error { return unlock(x.client.Mutex("keep").Keep(time.Second).Lock(x.ctx)) },
	"Mutex.HeadStart": func(x *trouble) error {
		return unlock(x.client.Mutex("ahead").HeadStart(time.Second).Lock(x.ctx))
	},
	"Mutex.Name": func(x *trouble) error { x.client.Mutex("a").Name(); return nil },
	"Mutex.Lock": func(x *trouble) error { return unlock(x.client.Mutex("lock").Lock(x.ctx)) },
	"Mutex.Lock of several": func(x *trouble) error {
		return unlock(x.client.Locks("lock 1", "lock 2", "lock 3").Lock(x.ctx))
	},
	"Mutex.Lock of a held one": func(x *trouble) error {
		ctx, cancel := context.WithTimeout(x.ctx, 200*time.Millisecond)
		defer cancel()
		return unlock(x.client.Mutex("held").Lock(ctx))
	},
	"Mutex.TryLock": func(x *trouble) error { return unlock(x.client.Mutex("try").TryLock(x.ctx)) },
	"Mutex.Do": func(x *trouble) error {
		return x.client.Mutex("do").Do(x.ctx, func(context.Context, *poundlock.Grant) error { return nil })
	},
	"Mutex.Locker": func(x *trouble) error { return locked(x, x.client.Mutex("locker").Locker) },

	"RWMutex.Name": func(x *trouble) error { x.client.RWMutex("a").Name(); return nil },
	"RWMutex.Keep": func(x *trouble) error { return unlock(x.client.RWMutex("kept").Keep(time.Second).RLock(x.ctx)) },
	"RWMutex.HeadStart": func(x *trouble) error {
		return unlock(x.client.RWMutex("ahead").HeadStart(time.Second).RLock(x.ctx))
	},
	"RWMutex.Lock":     func(x *trouble) error { return unlock(x.client.RWMutex("write").Lock(x.ctx)) },
	"RWMutex.TryLock":  func(x *trouble) error { return unlock(x.client.RWMutex("try write").TryLock(x.ctx)) },
	"RWMutex.RLock":    func(x *trouble) error { return unlock(x.client.RWMutex("read").RLock(x.ctx)) },
	"RWMutex.TryRLock": func(x *trouble) error { return unlock(x.client.RWMutex("try read").TryRLock(x.ctx)) },
	"RWMutex.RLock of one that readers hold": func(x *trouble) error {
		return unlock(x.client.RWMutex("shared").RLock(x.ctx))
	},
	"RWMutex.TryRLock of one that readers hold": func(x *trouble) error {
		return unlock(x.client.RWMutex("shared").TryRLock(x.ctx))
	},
	"RWMutex.Do": func(x *trouble) error {
		return x.client.RWMutex("do write").Do(x.ctx, func(context.Context, *poundlock.Grant) error { return nil })
	},
	"RWMutex.RDo": func(x *trouble) error {
		return x.client.RWMutex("do read").RDo(x.ctx, func(context.Context, *poundlock.Grant) error { return nil })
	},
	"RWMutex.Locker":  func(x *trouble) error { return locked(x, x.client.RWMutex("writer").Locker) },
	"RWMutex.RLocker": func(x *trouble) error { return locked(x, x.client.RWMutex("reader").RLocker) },

	"GroupMutex.Name": func(x *trouble) error { x.client.Groups("a").Name(); return nil },
	"GroupMutex.Keep": func(x *trouble) error {
		return unlock(x.client.Groups("kept group").Keep(time.Second).Lock(x.ctx, "a"))
	},
	"GroupMutex.HeadStart": func(x *trouble) error {
		return unlock(x.client.Groups("ahead group").HeadStart(time.Second).Lock(x.ctx, "a"))
	},
	"GroupMutex.Lock":    func(x *trouble) error { return unlock(x.client.Groups("group").Lock(x.ctx, "a", "b")) },
	"GroupMutex.TryLock": func(x *trouble) error { return unlock(x.client.Groups("try group").TryLock(x.ctx, "a")) },
	"GroupMutex.Do": func(x *trouble) error {
		return x.client.Groups("do group").Do(x.ctx, "a", func(context.Context, *poundlock.Grant) error { return nil })
	},

	"Grant.Context":   func(x *trouble) error { x.grants["held"].Context(); return nil },
	"Grant.Group":     func(x *trouble) error { x.grants["held"].Group(); return nil },
	"Grant.LeaseEnd":  func(x *trouble) error { x.grants["held"].LeaseEnd(); return nil },
	"Grant.LeaveBy":   func(x *trouble) error { x.grants["held"].LeaveBy(); return nil },
	"Grant.Names":     func(x *trouble) error { x.grants["held"].Names(); return nil },
	"Grant.Token":     func(x *trouble) error { x.grants["held"].Token(); return nil },
	"Grant.Tokens":    func(x *trouble) error { x.grants["held"].Tokens(); return nil },
	"Grant.Downgrade": func(x *trouble) error { return x.grants["downgrade"].Downgrade("group") },
	"Grant.Unlock":    func(x *trouble) error { return x.grants["unlock"].Unlock() },

	"Semaphore.Acquire":    func(x *trouble) error { return unlock(x.client.Semaphore("acquire", 3).Acquire(x.ctx)) },
	"Semaphore.TryAcquire": func(x *trouble) error { return unlock(x.client.Semaphore("try acquire", 3).TryAcquire(x.ctx)) },

	"Election.Campaign": func(x *trouble) error {
		l, err := x.client.Election("campaign").Campaign(x.ctx)
		if err == nil {
			err = l.Resign()
		}
		return err
	},
	"Election.Leader": func(x *trouble) error { _, err := x.client.Election("led").Leader(x.ctx); return err },
	"Election.Observe": func(x *trouble) error {
		ctx, cancel := context.WithTimeout(x.ctx, time.Second)
		defer cancel()
		for _, err := range x.client.Election("led").Observe(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	},

	"Leadership.Context":  func(x *trouble) error { x.led.Context(); return nil },
	"Leadership.LeaseEnd": func(x *trouble) error { x.led.LeaseEnd(); return nil },
	"Leadership.LeaveBy":  func(x *trouble) error { x.led.LeaveBy(); return nil },
	"Leadership.Token":    func(x *trouble) error { x.led.Token(); return nil },
	"Leadership.Resign":   func(x *trouble) error { return x.led.Resign() },
}

func unlock(g *poundlock.Grant, err error) error {
	if err == nil {
		err = g.Unlock()
	}
	return err
}

func locked(x *trouble, locker func(context.Context) sync.Locker) (err error) {
	ctx, cancel := context.WithTimeout(x.ctx, time.Second)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	l := locker(ctx)
	l.Lock()
	defer l.Unlock()
	return nil
}

// TestCallsAreAll: a method that nobody thought of here may wait for ever.
func TestCallsAreAll(t *testing.T) {
	for _, x := range []any{
		&poundlock.Client{}, &poundlock.Mutex{}, &poundlock.RWMutex{}, &poundlock.GroupMutex{}, &poundlock.Grant{},
		&poundlock.Semaphore{}, &poundlock.Election{}, &poundlock.Leadership{},
	} {
		for m := range reflect.TypeOf(x).Methods() {
			name := reflect.TypeOf(x).Elem().Name() + "." + m.Name
			if calls[name] == nil {
				t.Errorf("%s is not among the calls", name)
			}
		}
	}
}

// hang is when a call counts as one that waits for ever: all bounds of the calls
// are far below.
const hang = 30 * time.Second

// TestCallsReturn: whatever the trouble, every call returns, with an error that says
// what it is, and no goroutine is left (TestMain looks).
func TestCallsReturn(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		start func(x *trouble, l *server.Local, net *faultnet.Net, cancel func()) error
		// What each call that fails returns one of. All of mustFail fail.
		errs     []error
		mustFail []string
		outage   bool // of the servers: leases end
	}{
		"no trouble": {
			start: func(*trouble, *server.Local, *faultnet.Net, func()) error { return nil },
			errs:  []error{poundlock.ErrNotAcquired}, mustFail: []string{"Mutex.Lock of a held one"},
		},
		"the servers end": {
			outage: true,
			start: func(x *trouble, l *server.Local, _ *faultnet.Net, _ func()) error {
				err := l.Close()
				for end := time.Now().Add(hang); x.client.Healthy() == nil && time.Now().Before(end); {
					time.Sleep(time.Millisecond) // what they said last is on its way
				}
				return err
			},
			errs:     []error{poundlock.ErrNoQuorum, poundlock.ErrNotAcquired, poundlock.ErrLost},
			mustFail: []string{"Dial", "Client.Healthy", "Mutex.Lock", "Mutex.Do", "Semaphore.Acquire", "Election.Campaign", "Election.Leader"},
		},
		"the servers say nothing": {
			outage: true,
			start: func(_ *trouble, _ *server.Local, net *faultnet.Net, _ func()) error {
				net.Cut(faultnet.Both, nil, nil)
				return nil
			},
			errs:     []error{poundlock.ErrNoQuorum, poundlock.ErrNotAcquired, poundlock.ErrLost},
			mustFail: []string{"Dial", "Mutex.Lock", "Mutex.TryLock", "Mutex.Do", "Semaphore.Acquire", "Semaphore.TryAcquire", "Election.Campaign", "Election.Leader"},
		},
		"the client closes": {
			start:    func(x *trouble, _ *server.Local, _ *faultnet.Net, _ func()) error { return x.client.Close() },
			errs:     []error{poundlock.ErrClosed, poundlock.ErrNoQuorum},
			mustFail: []string{"Mutex.Lock", "Mutex.TryLock", "Mutex.Do", "Mutex.Locker", "RWMutex.RLock of one that readers hold", "Grant.Downgrade", "Grant.Unlock", "Semaphore.Acquire", "Semaphore.TryAcquire", "Election.Campaign", "Election.Leader", "Election.Observe", "Leadership.Resign"},
		},
		"the context has ended": {
			start: func(_ *trouble, _ *server.Local, _ *faultnet.Net, cancel func()) error {
				cancel()
				return nil
			},
			errs:     []error{poundlock.ErrNotAcquired, poundlock.ErrNoQuorum},
			mustFail: []string{"Dial", "Mutex.Lock", "Mutex.TryLock", "Mutex.Do", "Mutex.Locker", "RWMutex.RLock of one that readers hold", "Semaphore.Acquire", "Semaphore.TryAcquire", "Election.Campaign", "Election.Leader"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, config := startLocal(t)
			var table []faultnet.Server
			for _, s := range config.Servers {
				table = append(table, faultnet.Server(s))
			}
			net, err := faultnet.NewNet([]string{"client"}, table)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { net.Close() })
			for i, s := range net.Servers("client") {
				config.Servers[i] = poundlock.Server(s)
			}
			if x.outage { // else a busy machine would be a trouble of its own
				config.Lease, config.QuorumWait = 2*time.Second, time.Second
			}
			m := &trouble{config: config, grants: map[string]*poundlock.Grant{}}
			if m.client, err = poundlock.Connect(config); err != nil {
				t.Fatal(err)
			}
			defer m.client.Close()
			for end := time.Now().Add(hang); m.client.Healthy() != nil; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal(m.client.Healthy())
				}
			}
			var cancel func()
			m.ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			for _, name := range []string{"held", "unlock", "downgrade"} {
				if m.grants[name], err = m.client.Mutex(name).Lock(m.ctx); err != nil {
					t.Fatal(err)
				}
			}
			if m.grants["shared"], err = m.client.RWMutex("shared").RLock(m.ctx); err != nil {
				t.Fatal(err)
			}
			if m.led, err = m.client.Election("led").Campaign(m.ctx); err != nil {
				t.Fatal(err)
			}
			if err := x.start(m, l, net, cancel); err != nil {
				t.Fatal(err)
			}
			results := m.callAll(t)
			for call, err := range results {
				if err != nil && !slices.ContainsFunc(x.errs, func(e error) bool { return errors.Is(err, e) }) {
					t.Errorf("%s: %v", call, err)
				}
			}
			for _, call := range x.mustFail {
				if results[call] == nil {
					t.Errorf("%s does not fail", call)
				}
			}
			closed := make(chan error, 1)
			go func() { closed <- m.client.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(hang):
				t.Fatal("Close does not return")
			}
		})
	}
}

// callAll makes all calls at once.
func (x *trouble) callAll(t *testing.T) map[string]error {
	t.Helper()
	var mu sync.Mutex
	results, open := map[string]error{}, map[string]bool{}
	for name := range calls {
		open[name] = true
	}
	done := make(chan struct{}, len(calls))
	for name, call := range calls {
		go func() {
			err := call(x)
			mu.Lock()
			defer mu.Unlock()
			results[name] = err
			delete(open, name)
			done <- struct{}{}
		}()
	}
	limit := time.After(hang)
	for range calls {
		select {
		case <-done:
		case <-limit:
			mu.Lock()
			defer mu.Unlock()
			t.Fatalf("after %v these have not returned: %v", hang, open)
		}
	}
	return results
}
