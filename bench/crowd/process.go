package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
)

// The roles in which this program is started again.
const (
	serverRole  = "crowd-server"
	clientsRole = "crowd-clients"
)

// An order is what a process is told: one line on its standard input, which it answers with one report. The end of
// the stream ends the process.
type order struct {
	Open    int           `json:",omitempty"` // clients to be opened
	Hold    int           `json:",omitempty"` // locks that each client, up to Of, is to hold from now on
	Of      int           `json:",omitempty"`
	Once    bool          `json:",omitempty"` // each client is to acquire and release something
	Read    int           `json:",omitempty"` // clients, from the first, that are to share what all read
	Look    bool          `json:",omitempty"` // at what is held
	Weigh   bool          `json:",omitempty"` // the heap, after a collection
	Profile string        `json:",omitempty"` // begin a profile; "." ends it
	Ask     time.Duration `json:",omitempty"` // for so long: as often as Rate says, or by Users that ask when they were answered
	Rate    float64       `json:",omitempty"` // a second
	Users   int           `json:",omitempty"`
	Within  time.Duration `json:",omitempty"` // an acquire is given up after that
	Visit   time.Duration `json:",omitempty"` // for so long: each client acquires now and then what belongs to Few shards
	Few     int           `json:",omitempty"`
}

// A report is what a process answers.
type report struct {
	Err     string        `json:",omitempty"` // it cannot go on
	CPU     time.Duration // its processor time so far
	Heap    int64         `json:",omitempty"` // bytes that are reachable
	Held    int           `json:",omitempty"`
	Lost    int           `json:",omitempty"` // of those that were held
	Why     string        `json:",omitempty"` // the first of these was lost
	Asked   int           `json:",omitempty"`
	Granted int           `json:",omitempty"` // in time
	Failed  string        `json:",omitempty"` // why one of the others was not
	// How long the acquires took that were the first ones of their client in their shard, and the others.
	First, Later []time.Duration `json:",omitempty"`
}

// playRole returns if role is none.
func playRole(role string, args []string) {
	switch role {
	case serverRole:
		end(runServers(args))
	case clientsRole:
		end(runClients(args))
	}
}

// obey answers the orders on the standard input.
func obey(do func(order) (report, error)) error {
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var o order
		err := json.Unmarshal(in.Bytes(), &o)
		var r report
		if err == nil {
			r, err = do(o)
		}
		if err == nil && o.Profile != "" {
			err = profile(o.Profile)
		}
		if err != nil {
			r.Err = err.Error()
		}
		if o.Weigh {
			r.Heap = heap()
		}
		r.CPU = processorTime()
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what is reachable: what is left by that of some collections which leaves least, since each keeps what is allocated meanwhile.
func heap() int64 {
	least := int64(math.MaxInt64)
	for range 5 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

func profile(path string) error {
	if path == "." {
		pprof.StopCPUProfile()
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}

// runServers is the life of a process of servers.
func runServers(args []string) error {
	f := flag.NewFlagSet(serverRole, flag.ExitOnError)
	names, table := f.String("names", "", ""), f.String("servers", "", "")
	sessions := f.Int("sessions", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	servers, err := slots.Parse(*table)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, len(servers))
	for name := range strings.SplitSeq(*names, ",") {
		s, err := server.New(server.Config{Name: name, Servers: servers, MaxSessions: 2 * *sessions, MaxSessionsOfOne: *sessions})
		if err != nil {
			return err
		}
		go func() { ended <- s.Run(ctx) }()
	}
	return obey(func(order) (report, error) {
		select {
		case err := <-ended:
			return report{}, err
		default:
			return report{}, nil
		}
	})
}

// clients are those of one process.
type clients struct {
	config poundlock.Config
	prefix string // of the names of their locks
	all    []*poundlock.Client
	held   [][]*poundlock.Grant // by client
	names  string               // to be asked for, one behind the other: see name
	asked  atomic.Int64         // so far
}

// runClients is the life of a process of clients.
func runClients(args []string) error {
	f := flag.NewFlagSet(clientsRole, flag.ExitOnError)
	name, table, lease := f.String("name", "", ""), f.String("servers", "", ""), f.Duration("lease", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	servers, err := slots.Parse(*table)
	if err != nil {
		return err
	}
	c := &clients{config: poundlock.Config{Servers: servers, Lease: *lease, QuorumWait: time.Minute, Label: crowdLabel}, prefix: *name}
	var names strings.Builder
	for k := range manyNames {
		fmt.Fprintf(&names, nameForm, k, c.prefix)
	}
	c.names = names.String()
	return obey(c.do)
}

// manyNames are so many that servers have forgotten a lock before it is asked for again, whatever they are asked for meanwhile: so a
// lock costs them the same in each load. They are made before, and are one string: to make one takes as long as a call that
// is refused, and very many strings would keep the collector busy.
const manyNames = 1 << 20

// nameForm has names of one length.
const nameForm = "asked/%07d/%s"

// name is one that is to be asked for.
func (c *clients) name(k int) string {
	long := len(c.names) / manyNames
	at := k % manyNames * long
	return c.names[at : at+long]
}

func (c *clients) do(o order) (report, error) {
	switch {
	case o.Open > 0:
		return report{}, c.open(o.Open)
	case o.Hold > 0:
		return report{}, c.hold(o.Hold, min(o.Of, len(c.all)))
	case o.Once:
		return report{}, c.once()
	case o.Read > 0:
		return report{}, c.read(o.Read)
	case o.Ask > 0 && o.Users > 0:
		return c.ask(o.Ask, func(end time.Time, one func(context.Context)) { users(o.Users, o.Within, end, one) }), nil
	case o.Ask > 0:
		return c.ask(o.Ask, func(end time.Time, one func(context.Context)) { arrive(o.Rate, o.Within, end, one) }), nil
	case o.Visit > 0:
		return c.visit(o.Visit, o.Few), nil
	case o.Look:
		return c.look(), nil
	}
	return report{}, nil
}

// atOnce is how many clients a process opens, and how many locks it asks for, at a time.
const atOnce = 32

func (c *clients) open(count int) error {
	c.all, c.held = make([]*poundlock.Client, count), make([][]*poundlock.Grant, count)
	return load.Each(count, atOnce, func(k int) (err error) {
		c.all[k], err = poundlock.Dial(context.Background(), c.config)
		return err
	})
}

// hold has the first of the clients hold count locks each.
func (c *clients) hold(count, of int) error {
	for k := range of {
		c.held[k] = make([]*poundlock.Grant, count)
	}
	return load.Each(of*count, atOnce, func(k int) (err error) {
		client, i := k%of, k/of
		c.held[client][i], err = c.all[client].Mutex(fmt.Sprintf("held/%s/%d/%d", c.prefix, client, i)).Lock(context.Background())
		return err
	})
}

// look counts the locks that are held, and those that are lost. It asks for the context of the latter alone: a grant that nobody has asked
// for its context has none, as one whose user looks at LeaseEnd.
func (c *clients) look() (r report) {
	for _, grants := range c.held {
		for _, g := range grants {
			r.Held++
			if g.LeaseEnd().IsZero() {
				r.Lost++
				r.Why = context.Cause(g.Context()).Error()
			}
		}
	}
	return r
}

// ask acquires and releases as begin has it, and counts what was granted in time, and before the end.
func (c *clients) ask(length time.Duration, begin func(end time.Time, one func(context.Context))) (r report) {
	var granted, asked atomic.Int64
	var failed atomic.Pointer[error]
	end := time.Now().Add(length)
	begin(end, func(ctx context.Context) {
		asked.Add(1)
		k := int(c.asked.Add(1))
		g, err := c.all[k%len(c.all)].Mutex(c.name(k)).Lock(ctx)
		if err == nil {
			if time.Now().Before(end) {
				granted.Add(1)
			}
			err = g.Unlock()
		}
		if err != nil && failed.Load() == nil {
			why := err // of its own, so that nothing is allocated where all is well
			failed.Store(&why)
		}
	})
	r.Asked, r.Granted = int(asked.Load()), int(granted.Load())
	if err := failed.Load(); err != nil {
		r.Failed = (*err).Error()
	}
	return r
}

// users ask one after the other, each when it was answered.
func users(count int, within time.Duration, end time.Time, one func(context.Context)) {
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(within))
	defer cancel()
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for time.Now().Before(end) {
				one(ctx)
			}
		})
	}
	all.Wait()
}

// arrive has one asked so often in a second, whatever becomes of the others, and waits for all. Those who come in the same moment have
// one context, and a goroutine that was answered has the next one that is due ask: a new one each time would cost more than a lock that is refused.
func arrive(rate float64, within time.Duration, end time.Time, one func(context.Context)) {
	var all sync.WaitGroup
	var came, due, begin atomic.Int64
	var now atomic.Pointer[context.Context]
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ; time.Now().Before(end); <-tick.C {
		late := due.Load() - came.Load() // those who came before wait
		ctx, cancel := context.WithTimeout(context.Background(), within)
		time.AfterFunc(within, cancel)
		now.Store(&ctx)
		due.Store(int64(time.Since(began).Seconds() * rate))
		for begin.Load() <= late/16 {
			begin.Add(1)
			all.Go(func() {
				begin.Add(-1)
				for {
					k := came.Load()
					if k >= due.Load() {
						return
					}
					if came.CompareAndSwap(k, k+1) {
						one(*now.Load())
					}
				}
			})
		}
	}
	all.Wait()
}
