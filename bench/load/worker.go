package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
)

// An order is what a worker process is told to do. Its standard input is a stream
// of them; the end of the stream ends the process.
type order struct {
	Users []User  `json:",omitempty"` // begin this load
	Stop  *window `json:",omitempty"` // end it, and return what happened in the window
}

// A window is a time of which the records count.
type window struct{ From, To int64 }

// A report is what a worker says, on its standard output.
type report struct {
	Ready    bool      `json:",omitempty"` // the first client is open
	Progress *progress `json:",omitempty"`
	Done     *results  `json:",omitempty"`
	Err      string    `json:",omitempty"` // it cannot go on
}

type progress struct {
	At     int64 // an instant before the rest was read
	Grants int64 // of all users
	Least  int64 // of the user with the fewest
}

// results are what a stopped load has done.
type results struct {
	Records [][]Record // in the window, of each user
	Grants  int64      // from its beginning to its end, of all users
	Traffic int64      // in the same time, of all clients: to ask for it often would cost what is measured
}

const (
	reportEvery = 100 * time.Millisecond // what it says costs a part of what is measured
	patience    = 5 * time.Second        // with users that shall stop
)

// Work is the life of a worker process: it opens a client, and obeys its standard
// input until that ends. It opens other clients when a load first has users of them.
func Work(ctx context.Context, open func(context.Context) (Client, error)) error {
	w := &worker{open: open, out: json.NewEncoder(os.Stdout)}
	err := w.want(ctx, 1)
	if err == nil {
		w.say(report{Ready: true})
		err = w.obey(ctx, json.NewDecoder(os.Stdin))
	}
	for _, c := range w.clients {
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		w.say(report{Err: err.Error()})
	}
	return err
}

type worker struct {
	open    func(context.Context) (Client, error)
	clients []Client

	mu  sync.Mutex
	out *json.Encoder
}

// want opens clients until there are so many.
func (w *worker) want(ctx context.Context, clients int) error {
	for len(w.clients) < clients {
		c, err := w.open(ctx)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
	}
	return nil
}

func (w *worker) say(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r) // a parent that is gone has closed the other pipe, too
}

func (w *worker) obey(ctx context.Context, in *json.Decoder) error {
	var l *load
	defer func() {
		if l != nil {
			l.stop()
		}
	}()
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: worker: %w", err)
		}
		switch {
		case o.Stop != nil && l != nil:
			l.stop()
			r := l.results(*o.Stop)
			r.Grants, r.Traffic = w.progress(l).Grants, w.traffic()-l.traffic
			l = nil
			w.say(report{Done: r})
		case l == nil:
			for _, u := range o.Users {
				if err := w.want(ctx, u.Client+1); err != nil {
					return err
				}
			}
			l = w.begin(ctx, o.Users)
		default:
			return errors.New("bench: worker: told to begin a load twice, or to end none")
		}
	}
}

// A load is some users at work.
type load struct {
	users     []*userLoop
	traffic   int64 // of all clients before it began
	stopping  atomic.Bool
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	reporting sync.WaitGroup
}

type userLoop struct {
	User
	client  Client
	draw    *rand.Rand
	grants  atomic.Int64
	records []Record
}

func (w *worker) begin(ctx context.Context, users []User) *load {
	l := &load{traffic: w.traffic()}
	ctx, l.cancel = context.WithCancel(ctx)
	for i, u := range users {
		loop := &userLoop{User: u, client: w.clients[u.Client], draw: rand.New(rand.NewPCG(uint64(u.Process), uint64(i)))}
		l.users = append(l.users, loop)
		l.wg.Go(func() {
			if err := loop.run(ctx, &l.stopping); err != nil && !l.stopping.Load() {
				w.say(report{Err: fmt.Sprintf("lock %q: %v", loop.Name, err)})
			}
		})
	}
	l.reporting.Go(func() {
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.say(report{Progress: w.progress(l)})
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

func (w *worker) progress(l *load) *progress {
	p := progress{At: clock.Now()}
	for i, u := range l.users {
		g := u.grants.Load()
		p.Grants += g
		if i == 0 || g < p.Least {
			p.Least = g
		}
	}
	return &p
}

// traffic is that of all clients so far.
func (w *worker) traffic() (sum int64) {
	for _, c := range w.clients {
		sum += c.Traffic()
	}
	return sum
}

func (u *userLoop) run(ctx context.Context, stopping *atomic.Bool) error {
	for !stopping.Load() {
		var r Record
		r.Called = clock.Now()
		held, err := u.lock(ctx)
		r.Entered = clock.Now()
		if err != nil {
			return err
		}
		r.Token, r.Group = held.Token, held.Group
		if u.Hold > 0 {
			time.Sleep(u.Hold) // nobody does anything under the lock
		}
		r.Left = clock.Now()
		if err := held.Unlock(); err != nil {
			return err
		}
		r.Back = clock.Now()
		u.records = append(u.records, r)
		u.grants.Add(1)
	}
	return nil
}

func (u *userLoop) lock(ctx context.Context) (Held, error) {
	if u.draw.IntN(100) >= u.Shared {
		return u.client.Lock(ctx, u.Name)
	}
	c, ok := u.client.(Sharer)
	if !ok {
		return Held{}, errors.New("this service has no locks that can be shared")
	}
	return c.RLock(ctx, u.Name)
}

// stop lets the users end what they have begun, if that does not take too long: to
// give up a Lock is another thing to do for a service, and leaves some of them with
// a lock that nobody has.
func (l *load) stop() {
	l.stopping.Store(true)
	limit := time.AfterFunc(patience, l.cancel)
	l.wg.Wait()
	limit.Stop()
	l.cancel()
	l.reporting.Wait()
}

// results are the records whose Lock returned in the window.
func (l *load) results(w window) *results {
	r := &results{Records: make([][]Record, len(l.users))}
	for i, u := range l.users {
		r.Records[i] = slices.DeleteFunc(u.records, func(x Record) bool { return x.Entered < w.From || x.Entered > w.To })
	}
	return r
}
