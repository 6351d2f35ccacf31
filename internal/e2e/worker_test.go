package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

// work says what a client in mode work does: again and again it enters, reads the
// counter of the resource, and writes one more. A line on stdin ends its first grant
// if that one is long, and the end of stdin the client.
type work struct {
	ClockBound time.Duration // 0: the default
	Deadline   time.Duration // of each Lock
	Pause      time.Duration // at most, after each
	Try        bool          // every other time it makes one attempt only
	Group      string        // that it shares the lock with; "": it is alone
	Resource   string        // socket; "" is none
	History    string        // the event file that it writes
	Long       bool          // the first grant lasts until a line comes, or it is lost
	Deaf       bool          // broken variant: a long grant lasts, lost or not
	Apart      bool          // broken variant: the lock is its own, and its tokens what the clock shows
	Stale      bool          // broken variant: all its tokens are the first one
	NoRefresh  bool          // broken variant: a holder does not rebuild its supports
}

// A record is what one client has done, for those who wait for it. What is judged
// stands in its event file.
type record struct {
	At     int64 // by clock.Now, like the event file
	Client string
	Name   string // of the lock
	What   string // ready, entered, lost, left, refused, failed or stalled
	Token  uint64

	Try      bool  // failed: it was one attempt
	Overdue  int64 // failed: ns after its deadline; stalled: for how long
	Kind     string
	Deadline bool // the error is, or wraps, the end of the context
	Error    string
}

// The kinds of errors that a program may see.
const (
	notAcquired = "ErrNotAcquired"
	noQuorum    = "ErrNoQuorum"
	lockLost    = "ErrLost"
	unexpected  = "unexpected"
)

func kindOf(err error) string {
	switch {
	case errors.Is(err, poundlock.ErrLost):
		return lockLost
	case errors.Is(err, poundlock.ErrNoQuorum):
		return noQuorum
	case errors.Is(err, poundlock.ErrNotAcquired):
		return notAcquired
	}
	return unexpected
}

// withoutRefresh makes this process one of holders that do not ask restarted servers
// for their support again.
func withoutRefresh() {
	for i, o := range sigma.Algorithm.Options {
		if o.Name == "refresh" {
			sigma.Algorithm.Options[i].Default = func(protocol.Config) int64 { return 0 }
			return
		}
	}
	panic("e2e: sigma has no option refresh")
}

// A worker is a client in mode work.
type worker struct {
	a        clientArgs
	events   *recorder.Recorder
	resource *remote
	first    uint64        // token
	told     chan struct{} // closed by a line on stdin
	ended    chan struct{} // closed by the end of stdin

	mu  sync.Mutex
	out *json.Encoder
}

func newWorker(a clientArgs) *worker {
	return &worker{a: a, told: make(chan struct{}), ended: make(chan struct{}), out: json.NewEncoder(os.Stdout)}
}

func (w *worker) run(cl *poundlock.Client) (err error) {
	if w.a.Resource != "" {
		if w.resource, err = dialResource(w.a.Resource, w.a.Group); err != nil {
			return err
		}
	}
	if w.events, err = recorder.Create(w.a.History, recorder.Config{By: w.a.Label}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.events.Close()) }()
	go w.listen()
	go w.watch()
	w.note(record{What: "ready"})
	name := w.a.Name
	if w.a.Apart {
		name += " of " + w.a.Label
	}
	m := cl.Mutex(name).In(w.a.Group)
	long := w.a.Long
	for k := 0; ; k++ {
		select {
		case <-w.ended:
			return nil
		default:
		}
		long = !w.once(m, w.a.Try && k%2 == 1, long) && long
		if w.a.Pause > 0 {
			time.Sleep(rand.N(w.a.Pause))
		}
	}
}

func (w *worker) listen() {
	in := bufio.NewScanner(os.Stdin)
	if in.Scan() {
		close(w.told)
	}
	for in.Scan() { // until its end
	}
	close(w.ended)
}

// watch notes when this process got no processor for a while: it is late then with all
// that it does, and no lease excludes that.
func (w *worker) watch() {
	stalls(nil, func(gap time.Duration) { w.note(record{What: "stalled", Overdue: int64(gap)}) })
}

// stalls tells f how long this process got no processor, again and again, until stop is
// closed.
func stalls(stop <-chan struct{}, f func(gap time.Duration)) {
	const often, late = 10 * time.Millisecond, 20 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		now := time.Now()
		if gap := now.Sub(last) - often; gap > late {
			f(gap)
		}
		last = now
	}
}

// canary watches this process, and returns how to learn, once, for how long it stood
// still at most: its proxies and resources did so, and others may have.
func canary() (longest func() time.Duration) {
	var most time.Duration
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		stalls(stop, func(gap time.Duration) { most = max(most, gap) })
	}()
	return func() time.Duration {
		close(stop)
		<-done
		return most
	}
}

func (w *worker) note(r record) {
	r.Client, r.Name = w.a.Label, w.a.Name
	if r.At == 0 {
		r.At = clock.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (w *worker) fail(err error, r record) {
	r.What, r.Kind, r.Error = "failed", kindOf(err), err.Error()
	r.Deadline = errors.Is(err, context.DeadlineExceeded)
	w.note(r)
}

// once enters and leaves, or fails.
func (w *worker) once(m *poundlock.Mutex, try, long bool) (entered bool) {
	deadline := time.Now().Add(w.a.Deadline)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	lock := m.Lock
	if try {
		lock = m.TryLock
	}
	visit := w.events.TryGroup(w.a.Label, w.a.Name, w.a.Group)
	defer visit.Back()
	g, err := lock(ctx)
	if err != nil {
		w.fail(err, record{Try: try, Overdue: int64(time.Since(deadline))})
		time.Sleep(rand.N(20 * time.Millisecond))
		return false
	}
	token := g.Token()
	if w.a.Apart {
		token = uint64(time.Now().UnixNano())
	}
	w.first = cmp.Or(w.first, token)
	if w.a.Stale {
		token = w.first
	}
	if long && w.a.Deaf {
		visit.Entered(context.Background(), token, nil)
	} else {
		visit.Entered(g.Context(), token, g.LeaseEnd)
	}
	w.note(record{What: "entered", Token: token})
	lost := func() { w.note(record{What: "lost", Token: token}) }
	stop := context.AfterFunc(g.Context(), lost)
	w.inside(g, token, long)
	visit.Left()
	if stop() && g.Context().Err() != nil { // a context wakes those who wait for it before it calls functions
		lost()
	}
	if err := g.Unlock(); err != nil {
		w.fail(err, record{})
	}
	w.note(record{What: "left", Token: token})
	return true
}

// inside increments the counter. It does not look whether the lock is lost before it
// writes: nobody who looks can know that it still holds when the write arrives.
func (w *worker) inside(g *poundlock.Grant, token uint64, long bool) {
	value, err := w.resource.read(token)
	switch {
	case long && w.a.Deaf:
		<-w.told
	case long:
		select {
		case <-w.told:
		case <-g.Context().Done():
		}
	case w.a.Hold > 0:
		time.Sleep(rand.N(w.a.Hold))
	}
	if err == nil {
		err = w.resource.write(token, value+1)
	}
	switch {
	case errors.Is(err, errRefused):
		w.note(record{What: "refused", Token: token, Error: err.Error()})
	case err != nil:
		w.fail(err, record{})
	}
}
