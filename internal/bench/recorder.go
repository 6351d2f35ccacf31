package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock/history"
)

// Header is that of an event file with instants of Now.
func Header(by string) history.Header { return history.Header{By: by, Clock: clockName()} }

// A Recorder writes what users of this process see of locks into an event file, for
// poundlock judge. Each event is with the system when its method returns, so that it
// outlives the process. Its methods may be called from several goroutines at once, those
// of one visit in their order.
type Recorder struct {
	mu   sync.Mutex // also held while the clock is read: the file is in the order of time
	file *os.File
	out  *history.Writer
}

// NewRecorder creates the file.
func NewRecorder(path, by string) (*Recorder, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := history.NewWriter(f, Header(by))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Recorder{file: f, out: w}, nil
}

// Close writes that all users have stopped. It returns the first error of all there
// were.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.out.End(Now()), r.file.Close()); err != nil {
		return fmt.Errorf("bench: %s: %w", r.file.Name(), err)
	}
	return nil
}

// note writes an event, and returns its time. r.mu is held.
func (r *Recorder) note(e history.Event) int64 {
	e.At = Now()
	if e.Until != 0 {
		e.Until = max(e.Until, e.At)
	}
	_ = errors.Join(r.out.Write(e), r.out.Flush()) // kept for Close
	return e.At
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
func (r *Recorder) Try(user, lock string) *Visit {
	if r == nil {
		return nil
	}
	v := &Visit{r: r, user: user, lock: lock}
	v.does(history.Event{Do: history.Try})
	return v
}

func (v *Visit) does(e history.Event) int64 {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	return v.note(e)
}

func (v *Visit) note(e history.Event) int64 {
	e.User, e.Lock = v.user, v.lock
	return v.r.note(e)
}

// Entered records that the user is inside: it comes after the call has returned. ctx
// ends with the loss of the lock, and lease is the end of the user's own lease so far,
// zero for none. Who ignores both has a nil lease and a ctx without end.
func (v *Visit) Entered(ctx context.Context, token uint64, lease func() time.Time) {
	if v == nil {
		return
	}
	until := leaseEnd(lease)
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	v.note(history.Event{Do: history.Crit, Token: history.Token(token), Until: until})
	v.inside, v.lease, v.until = true, lease, until
	v.heard = context.AfterFunc(ctx, v.lost)
	if until != 0 {
		v.renew = time.AfterFunc(v.soon(), v.renewed)
	}
}

// soon is when to look at the lease again: long before it ends.
func (v *Visit) soon() time.Duration { return max(5*time.Millisecond, time.Duration(v.until-Now())/8) }

func leaseEnd(lease func() time.Time) int64 {
	if lease == nil {
		return 0
	}
	now, end := Now(), lease() // in this order: a pause in between makes it earlier
	if end.IsZero() {
		return 0
	}
	return now + int64(time.Until(end))
}

func (v *Visit) renewed() {
	until := leaseEnd(v.lease)
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if !v.inside {
		return
	}
	if until > v.until {
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
