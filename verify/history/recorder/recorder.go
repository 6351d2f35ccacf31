// Package recorder records what the users of one process see of locks, into an event
// file for poundlock-lab judge:
//
//	events, err := recorder.Create("history.jsonl", recorder.Config{By: "my program"})
//	...
//	visit := events.Try("worker 3", "the lock")
//	grant, err := mutex.Lock(ctx)
//	if err != nil {
//		visit.Back()
//		return err
//	}
//	visit.Entered(grant.Context(), grant.Token(), grant.LeaseEnd)
//	... // the critical section
//	visit.Left()
//	err = grant.Unlock()
//	visit.Back()
//
// A user that shares the lock begins with TryGroup, and one that shares it later calls Downgraded before Grant.Downgrade.
//
// What it records lies within the truth: the clock is read before the call that wants
// the lock, after the one that got it, and before the one that gives it up or shares it.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/verify/history"
)

// Config says what the header of the file tells.
type Config struct {
	By string // the program
	// Uncertainty is how far the wall clock of this machine may be from real time, to
	// compare the file with those of other machines. 0 uses a clock that only the
	// processes of this machine share, and reads as one.
	Uncertainty time.Duration
}

// A Recorder writes an event file. Each event is with the system when its method
// returns, so that it outlives the process. Its methods may be called from several
// goroutines at once, those of one visit in their order. nil records nothing.
type Recorder struct {
	mu   sync.Mutex // also held while the clock is read: the file is in the order of time
	now  func() int64
	file *os.File
	out  *history.Writer
}

// Create creates the file.
func Create(path string, c Config) (*Recorder, error) {
	r := &Recorder{now: clock.Now}
	h := history.Header{By: c.By, Clock: clock.Name()}
	if c.Uncertainty != 0 {
		h.Clock, h.Uncertainty = history.Wall, int64(c.Uncertainty)
		start := time.Now() // the file is in order, also when somebody sets the clock
		r.now = func() int64 { return start.UnixNano() + int64(time.Since(start)) }
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if r.out, err = history.NewWriter(f, h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// Close writes that all users have stopped. It returns the first error that there was.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.out.End(r.now()), r.file.Close()); err != nil {
		return fmt.Errorf("recorder: %s: %w", r.file.Name(), err)
	}
	return nil
}

// A Visit is one try of a user and what follows. nil is one that nobody records.
type Visit struct {
	r          *Recorder
	user, lock string

	// Guarded by r.mu.
	inside bool
	lease  func() time.Time
	until  int64
	renew  *time.Timer
	heard  func() bool // nobody wants to hear of the loss any more
}

// Try records that a user wants a lock. It comes before the call.
func (r *Recorder) Try(user, lock string) *Visit { return r.TryGroup(user, lock, "") }

// TryGroup records that a user wants to share a lock with those of group, "" for nobody.
func (r *Recorder) TryGroup(user, lock, group string) *Visit {
	if r == nil {
		return nil
	}
	v := &Visit{r: r, user: user, lock: lock}
	v.does(history.Event{Do: history.Try, Group: group})
	return v
}

func (v *Visit) does(e history.Event) {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	v.note(e)
}

// note writes an event. r.mu is held.
func (v *Visit) note(e history.Event) {
	e.At, e.User, e.Lock = v.r.now(), v.user, v.lock
	// Errors of the file are kept for Close. A lease that ends just now is not renewed.
	_ = errors.Join(v.r.out.Write(e), v.r.out.Flush())
}

// Entered records that the user is inside: it comes after the call has returned. ctx
// ends with the loss of the lock, and lease is the end of the user's own lease so far,
// zero when it is over. Who ignores both has a nil lease and a ctx without end.
func (v *Visit) Entered(ctx context.Context, token uint64, lease func() time.Time) {
	if v == nil {
		return
	}
	until := v.r.leaseEnd(lease)
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	v.note(history.Event{Do: history.Crit, Token: history.Token(token), Until: until})
	v.inside, v.lease, v.until = true, lease, until
	v.heard = context.AfterFunc(ctx, v.lost)
	if until != 0 {
		v.renew = time.AfterFunc(v.soon(), v.renewed)
	}
}

// Downgraded records that the user, who is inside alone, shares from now on with those of group: it comes before the call.
func (v *Visit) Downgraded(group string) {
	if v == nil {
		return
	}
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if v.inside {
		v.note(history.Event{Do: history.Downgrade, Group: group})
	}
}

// soon is when to look at the lease again: long before it ends.
func (v *Visit) soon() time.Duration {
	return max(5*time.Millisecond, time.Duration(v.until-v.r.now())/8)
}

// leaseEnd is not later than in truth, and 1, the beginning of time, where it is over.
func (r *Recorder) leaseEnd(lease func() time.Time) int64 {
	if lease == nil {
		return 0
	}
	now, end := r.now(), lease() // in this order: a pause in between makes it earlier
	if end.IsZero() {
		return 1
	}
	return max(1, now+int64(time.Until(end)))
}

func (v *Visit) renewed() {
	until := v.r.leaseEnd(v.lease)
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if !v.inside {
		return
	}
	// A lease gets shorter when a server forgets the holder; less than a millisecond is
	// the time between two looks at clocks. One that has ended is not renewed: this
	// process was stopped, and is about to hear of its loss.
	shorter := until < v.until-int64(time.Millisecond)
	if until > v.r.now() && (until > v.until || shorter) {
		v.until = until
		v.note(history.Event{Do: history.Renew, Until: until})
	}
	v.renew.Reset(v.soon())
}

func (v *Visit) lost() {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if v.inside {
		v.note(history.Event{Do: history.Ejected})
		v.leave()
	}
}

// leave: the user is not inside any more. r.mu is held.
func (v *Visit) leave() {
	v.inside = false
	v.heard()
	if v.renew != nil {
		v.renew.Stop()
	}
}

// Left records that the user leaves: it comes before the lock is given up.
func (v *Visit) Left() {
	if v == nil {
		return
	}
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	v.note(history.Event{Do: history.Exit})
	v.leave()
}

// Back records that the user is out: its unlock has returned, or its try has failed.
func (v *Visit) Back() {
	if v != nil {
		v.does(history.Event{Do: history.Rem})
	}
}
