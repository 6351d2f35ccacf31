package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/server"
)

const (
	defaultDrain = 10 * time.Second
	adminRetry   = 100 * time.Millisecond // until the predecessor gives its admin port up
)

// lifeFlags are those of how a server begins and ends.
type lifeFlags struct {
	drain    time.Duration
	handover string
	sitOut   time.Duration
}

func (f *lifeFlags) register(s *pflag.FlagSet) {
	s.DurationVar(&f.drain, "drain-timeout", defaultDrain,
		"after SIGTERM or SIGINT, how long to wait until nobody holds a lock here; 0: not at all")
	s.StringVar(&f.handover, "handover", "",
		"take the table over at `unix:/path` from the process that serves under this name, and later hand it over there")
	s.DurationVar(&f.sitOut, "sit-out", 0,
		"stay mute for so long after a start without a hand-over: longer than all waits and holds, it is no loss of memory")
}

// configure sets what concerns the server. It goes together with everything but an API.
func (f *lifeFlags) configure(c *server.Config, api string) error {
	if f.drain < 0 {
		return cli.Usagef("--drain-timeout %v: want at least 0", f.drain)
	}
	if f.sitOut < 0 {
		return cli.Usagef("--sit-out %v: want at least 0", f.sitOut)
	}
	c.Handover, c.SitOut = f.handover, f.sitOut
	if f.handover == "" {
		return nil
	}
	if err := server.CheckHandover(f.handover); err != nil {
		return cli.Usagef("--handover: %w", err)
	}
	if api != "" {
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  errors.New("--api and --handover exclude each other: the locks of the API end with their process"),
			Hint: "serve the API from a process that is another server, and drain that one",
		}
	}
	return nil
}

// An ending is how a server is told to end.
type ending struct {
	asked context.Context // ends with the first signal
	now   context.Context // ends with the second one
	drain time.Duration
}

// awaitSignals listens for SIGTERM and SIGINT until stop is called.
func (f *lifeFlags) awaitSignals(ctx context.Context) (e ending, stop func()) {
	e.drain = f.drain
	now, atOnce := context.WithCancel(ctx)
	asked, ask := context.WithCancel(now)
	e.asked, e.now = asked, now
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for _, cancel := range []func(){ask, atOnce} {
			select {
			case <-signals:
				cancel()
			case <-now.Done():
				return
			}
		}
	}()
	return e, func() { signal.Stop(signals); atOnce() }
}

// drained has the server drain, within the time that there is. Beside an API, which has
// to end first, it does so in any case: also to tell load balancers.
func (e ending) drained(s *server.Server, api bool) {
	if e.drain == 0 && !api {
		return
	}
	ctx, cancel := context.WithTimeout(e.now, e.drain)
	defer cancel()
	s.Drain(ctx)
}

// runBoth runs the server at least as long as the API, which holds its locks there,
// and until it is drained. Whichever fails ends both. a may be nil.
func runBoth(e ending, s *server.Server, a *apiServer) error {
	ctx, failed := context.WithCancel(e.asked)
	defer failed()
	locks, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(locks)
		failed()
	}()
	served := make(chan error, 1)
	go func() {
		if a == nil {
			<-ctx.Done()
			served <- nil
			return
		}
		served <- a.run(ctx)
	}()
	<-ctx.Done()
	if e.asked.Err() != nil {
		e.drained(s, a != nil)
	}
	var err error
	select {
	case err = <-served:
	case <-e.now.Done(): // its clients' locks go with their leases
	}
	stop()
	return errors.Join(err, <-ended)
}

// portHint says what to do when an address is taken.
func portHint(err error) string {
	if inUse(err) {
		return "another process listens there: perhaps this server, which runs already; ss -lp says who"
	}
	return ""
}

// inUse reports whether an address is taken: by the predecessor, until it has ended.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EWOULDBLOCK)
}
