package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

const lockLong = `Lock waits for the lock NAME, runs COMMAND under it and releases it when COMMAND
ends. Standard input, output and error are COMMAND's, and so is the exit status.

COMMAND leads a process group of its own, in the foreground of the terminal if
there is one. Signals that are sent to poundlock go to the whole group. An interrupt
from the terminal that ends COMMAND also ends the script that it stands in. What
COMMAND leaves in the background when it ends by itself runs on without the lock;
when a signal ends COMMAND, the rest of its group is ended before the release.

When the lock is lost while COMMAND runs, --on-loss says what happens: "term" ends
the group with SIGTERM and after --grace with SIGKILL, "kill" with SIGKILL at once,
"warn" lets it run on. A watchdog process does the same if poundlock itself is
killed or stopped (also by ^Z), before the lease ends: within --grace, but at most
in what is left of the lease. With "warn" there is no watchdog.

No lease excludes that the machine pauses between a check and a write. A resource
that compares POUNDLOCK_TOKEN with the largest one it has seen is safe from that.

COMMAND finds in its environment POUNDLOCK_NAME, POUNDLOCK_TOKEN (the fencing
token, a decimal number that grows from grant to grant) and POUNDLOCK_HOLDER (as
poundlock status shows it).

--dev needs no cluster: it starts, or joins, a development cluster of this user,
four servers in one background process on unix sockets in $XDG_RUNTIME_DIR/poundlock,
or else in $TMPDIR/poundlock-UID (/tmp/poundlock-UID if TMPDIR is not set). It ends
after a minute without clients. Two of these directories are two clusters: their
locks do not exclude each other.

Exit status: that of COMMAND, or 128 + the number of the signal that ended it; 64
when called wrongly or without servers, 69 when no quorum of the servers can be
reached, 74 when the lock was lost while COMMAND ran (also with "warn"), 75 when
the lock was not acquired with --try or within --wait (or the one of -E), 126 when
COMMAND cannot be run, 127 when it is not found. A signal that ends the wait for
the lock gives 128 + its number.`

// lockFlags are the flags of lock; all durations may be numbers of seconds.
type lockFlags struct {
	clusterFlags
	try    bool
	wait   seconds
	status int
	lease  seconds
	onLoss string
	grace  seconds

	interrupted bool // the command was, at the terminal
}

func lockCommand() *cobra.Command {
	f := lockFlags{lease: seconds(slots.DefaultLease), grace: seconds(5 * time.Second)}
	cmd := &cobra.Command{
		Use:     "lock NAME [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a command under a lock",
		Long:    lockLong,
		Example: "  poundlock lock --dev hello -- echo inside\n  poundlock lock --try nightly -E 0 -- ./backup.sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash != 1 || len(args) < 2 {
				return &exitStatus{
					code: exitUsage,
					err:  errors.New("lock wants one name, two dashes and a command"),
					hint: "for example: " + cmd.CommandPath() + " --dev hello -- echo inside",
				}
			}
			return f.run(cmd, args[0], args[1:])
		},
	}
	s := cmd.Flags()
	f.register(s)
	f.registerDev(s, "use this user's development cluster, and start it if need be")
	s.BoolVarP(&f.try, "try", "n", false, "give up at once when somebody else has or wants the lock")
	s.VarP(&f.wait, "wait", "w", "give up after `DURATION` (5s, 1m30s, or a number of seconds; 0 is --try)")
	s.IntVarP(&f.status, "conflict-exit-code", "E", exitNotAcquired, "exit `STATUS` when the lock was not acquired, 0 to 255")
	s.Var(&f.lease, "lease", "how long the lock outlives a holder that is silent, `DURATION`, 200ms to 10m; servers may allow less")
	s.StringVar(&f.onLoss, "on-loss", string(supervise.Term), "`ACTION` when the lock is lost: term, kill or warn")
	s.Var(&f.grace, "grace", "`DURATION` between SIGTERM and SIGKILL")
	return cmd
}

// check fills the flags in and refuses those that make no sense. Flags of the
// command line beat contradicting ones of the environment and the file.
func (f *lockFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	try, wait := given("try"), given("wait")
	if try && wait {
		return usagef("--try and --wait exclude each other")
	}
	if err := f.fillDev(cmd); err != nil {
		return err
	}
	f.try = f.try && !wait || given("wait") && f.wait == 0
	switch {
	case f.wait < 0:
		return usagef("--wait %v: want 0 or more", f.wait)
	case f.grace < 0:
		return usagef("--grace %v: want 0 or more", f.grace)
	case f.lease < minLease || f.lease > maxLease:
		return usagef("--lease %v: want %v to %v", f.lease, minLease, maxLease)
	case f.status < 0 || f.status > 255:
		return usagef("-E %d: want 0 to 255", f.status)
	}
	switch supervise.Action(f.onLoss) {
	case supervise.Term, supervise.Kill, supervise.Warn:
		return nil
	}
	return usagef("--on-loss %q: want term, kill or warn", f.onLoss)
}

// The shortest lease leaves a busy machine the time to renew it, and to end a
// command before its lease does.
const (
	minLease = seconds(200 * time.Millisecond)
	maxLease = seconds(node.MaxLease)
)

// run returns an *exitStatus with the command's status, or what went wrong.
func (f *lockFlags) run(cmd *cobra.Command, name string, command []string) error {
	if err := transport.CheckName(name); err != nil {
		return &exitStatus{code: exitUsage, err: err}
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	signals := supervise.Signals()
	waiting := listen(cmd.Context(), signals)
	err := f.lock(cmd, waiting, signals, name, command)
	if s := waiting.stop(); s != 0 {
		return &exitStatus{code: 128 + int(s)}
	}
	if f.interrupted {
		supervise.Interrupt()
	}
	return err
}

func (f *lockFlags) lock(
	cmd *cobra.Command, waiting *interruption, signals chan os.Signal, name string, command []string,
) error {
	ctx := context.Context(waiting)
	config, dev, err := f.cluster(cmd, ctx)
	if err != nil {
		return err
	}
	defer func() { dev.leave() }()
	if f.wait > 0 && !f.try {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.wait))
		defer cancel()
	}
	client, err := dev.dial(ctx, config)
	if errors.Is(err, errDying) {
		dev.leave()
		if config, dev, err = f.cluster(cmd, ctx); err != nil {
			return err
		}
		client, err = poundlock.Dial(ctx, config)
	}
	if err != nil {
		return f.explain(name, err)
	}
	defer client.Close()
	// The watchdog starts now, so that nobody waits for it while the lock is held.
	var dog *supervise.Watchdog
	if action := supervise.Action(f.onLoss); action != supervise.Warn {
		if dog, err = supervise.StartWatchdog(name, action, time.Duration(f.grace)); err != nil {
			return &exitStatus{code: exitCannotRun, err: err}
		}
	}
	lock := client.Mutex(name).Lock
	if f.try {
		lock = client.Mutex(name).TryLock
	}
	grant, err := lock(ctx)
	if err != nil {
		dog.Close()
		return f.explain(name, err)
	}
	if waiting.stop() != 0 { // a signal ended the wait as it succeeded
		dog.Close()
		return grant.Unlock()
	}
	err = f.supervise(grant, name, config.Label, command, dog, signals)
	if errors.Is(grant.Unlock(), poundlock.ErrLost) {
		return f.lostError(name)
	}
	return err
}

// cluster says which servers to use. With --dev the caller leaves d when it is done
// with them; else d is nil.
func (f *lockFlags) cluster(cmd *cobra.Command, ctx context.Context) (c poundlock.Config, d *devClient, err error) {
	if f.dev {
		if d, err = joinDev(ctx, f.say); err != nil {
			return c, nil, err
		}
		c = d.config
	} else if c, err = f.config(cmd); err != nil {
		return c, nil, err
	}
	host, _ := os.Hostname()
	c.Label = fmt.Sprintf("%s/%d", cmp.Or(host, "localhost"), os.Getpid())
	c.Lease = time.Duration(f.lease)
	return c, d, nil
}

// explain gives an error of the client its status and a hint.
func (f *lockFlags) explain(name string, err error) error {
	s := &exitStatus{code: exitUsage, err: trimPrefix(err)}
	switch {
	case errors.Is(err, poundlock.ErrNoQuorum):
		s.code = exitNoQuorum
		s.hint = cmp.Or(tlsHint(memberErrors(err)),
			"are the servers up, and is --servers the same everywhere? See: poundlock status")
		if f.dev {
			s.hint = "the development cluster does not answer; its directory holds a log"
		}
	case errors.Is(err, poundlock.ErrNotAcquired):
		s.code = f.status
		if f.try {
			s.hint = "--wait gives it time"
		} else if errors.Is(err, context.DeadlineExceeded) {
			s.err = fmt.Errorf("not acquired: lock %q: somebody else had it for %v", name, f.wait)
		}
	}
	return s
}

// memberErrors are why each of the servers cannot be reached, where err says so.
func memberErrors(err error) (errs []error) {
	var u *node.UnreachableError
	if errors.As(err, &u) {
		for _, m := range u.Members {
			errs = append(errs, m.Err)
		}
	}
	return errs
}

func (f *lockFlags) supervise(
	g *poundlock.Grant, name, holder string, command []string, dog *supervise.Watchdog, signals chan os.Signal,
) error {
	result, err := supervise.Command{
		Args: command,
		Env: environ(map[string]string{
			"POUNDLOCK_NAME":   name,
			"POUNDLOCK_TOKEN":  strconv.FormatUint(g.Token(), 10),
			"POUNDLOCK_HOLDER": holder,
		}),
		Name:     name,
		Lease:    time.Duration(f.lease),
		End:      g.LeaseEnd,
		Lost:     g.Context().Done(),
		OnLoss:   supervise.Action(f.onLoss),
		Grace:    time.Duration(f.grace),
		Watchdog: dog,
		Signals:  signals,
		Log:      f.say,
	}.Run()
	f.interrupted = result.Interrupted
	switch {
	case err != nil:
		return &exitStatus{code: exitCannotRun, err: err}
	case result.Lost:
		return f.lostError(name)
	}
	return &exitStatus{code: result.Status}
}

func (f *lockFlags) lostError(name string) error {
	return &exitStatus{code: exitLost, err: fmt.Errorf("lock %q was lost while its command ran", name)}
}

// say tells the user one thing.
func (f *lockFlags) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "poundlock: "+format+"\n", args...)
}

// trimPrefix takes the package's name off: the program has the same one.
func trimPrefix(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "poundlock: "); ok {
		return errors.New(text)
	}
	return err
}

// environ is this process's environment with some variables replaced.
func environ(set map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := set[name]
		return replaced
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// An interruption is a context that ends with the first signal that would have
// ended this process while it waits.
type interruption struct {
	context.Context
	cancel context.CancelCauseFunc
	quit   chan struct{} // to end the listener
	ended  chan struct{} // closed when it has ended; signal is constant then
	signal syscall.Signal
	over   bool
}

func listen(ctx context.Context, signals <-chan os.Signal) *interruption {
	i := &interruption{quit: make(chan struct{}), ended: make(chan struct{})}
	i.Context, i.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(i.ended)
		for {
			select {
			case <-i.quit:
				return
			case s := <-signals:
				switch s {
				case syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGPIPE:
				default:
					i.signal = s.(syscall.Signal)
					i.cancel(fmt.Errorf("signal: %v", s))
					return
				}
			}
		}
	}()
	return i
}

// stop returns the signal that came, 0 for none, and leaves later ones alone.
func (i *interruption) stop() syscall.Signal {
	if !i.over {
		i.over = true
		close(i.quit)
	}
	<-i.ended
	return i.signal
}

// seconds is a duration that may be given as a number of seconds.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		var x float64
		if x, err = strconv.ParseFloat(text, 64); err != nil || x != x || x > 1e9 || x < -1e9 {
			return fmt.Errorf("want a duration such as 1m30s, or a number of seconds")
		}
		d = time.Duration(x * float64(time.Second))
	}
	*s = seconds(d)
	return nil
}

func (s seconds) String() string { return time.Duration(s).String() }
func (s *seconds) Type() string  { return "duration" }

// The two commands with which lock starts this program again.

func gateCommand() *cobra.Command {
	return &cobra.Command{
		Use:                supervise.GateCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code, err := supervise.Gate(args)
			return &exitStatus{code: code, err: err}
		},
	}
}

func watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use:                supervise.WatchdogCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := supervise.Watch(args, os.Stdin, os.Stdout, os.Stderr); err != nil {
				return &exitStatus{code: exitError, err: err}
			}
			return nil
		},
	}
}
