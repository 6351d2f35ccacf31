package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/devcluster"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server/status"
)

// holdFlags are the flags of lock and elect, which hold something while a command
// runs. The durations may be numbers of seconds.
type holdFlags struct {
	clusterFlags
	lease   seconds
	maxHold seconds
	actions []string // that --on-loss may name
	onLoss  string
	grace   seconds
	least   seconds // grace that a release may set
	audit   string
	peer    string // an address of the API of a peer; "": servers
}

func (f *holdFlags) register(s *pflag.FlagSet, actions ...supervise.Action) {
	for _, a := range actions {
		f.actions = append(f.actions, string(a))
	}
	f.lease, f.grace = seconds(slots.DefaultLease), seconds(5*time.Second)
	f.clusterFlags.register(s)
	f.registerDev(s, "use this user's development cluster, and start it if need be")
	s.Var(&f.lease, "lease", "how long the lock outlives a holder that is silent, `DURATION`, 200ms to 10m; servers may allow less")
	s.Var(&f.maxHold, "max-hold", "after this `DURATION` the lock is over as if it were lost (default never)")
	s.StringVar(&f.onLoss, "on-loss", string(supervise.Term), "`ACTION` when the lock is lost: "+alternatives(f.actions))
	s.Var(&f.grace, "grace", "`DURATION` between SIGTERM and SIGKILL")
	s.Var(&f.least, "release-grace", "shortest `DURATION` that poundlock release --grace may put in place of --grace (default as --grace)")
	s.StringVar(&f.peer, "peer", "", "go through the peer at `unix:/path` or HOST:PORT, the --api of poundlock peer, in place of servers")
	s.StringVar(&f.audit, "audit", "", "append a line of JSON for each grant, release and loss to this `FILE`")
}

// notThroughPeers are the flags that a peer does not know.
var notThroughPeers = []string{
	"servers", "epoch", "clock-bound", "no-amnesia", "max-hold", "semaphore", "head-start", "release-grace", "audit", "dev",
	"tls-cert", "tls-key", "tls-ca", "tls-server-name",
}

// fillPeer is fillDev, and refuses --peer with a flag that a peer does not know.
func (f *holdFlags) fillPeer(cmd *cobra.Command) error {
	unknown := slices.IndexFunc(notThroughPeers, cmd.Flags().Changed) // now: fillDev changes what is given
	if err := f.fillDev(cmd); err != nil {
		return err
	}
	if f.peer != "" && unknown >= 0 {
		return cli.Usagef("--peer and --%s exclude each other", notThroughPeers[unknown])
	}
	return nil
}

// dialPeer opens a session at the peer.
func (f *holdFlags) dialPeer(ctx context.Context) (*remote, error) {
	r, err := dialRemote(ctx, f.peer, time.Duration(f.lease))
	if err != nil {
		err = &toldError{poundlock.ErrNoQuorum, fmt.Sprintf("no peer at %s: %v", f.peer, err)}
		return nil, &cli.Status{Code: cli.ExitNoQuorum, Err: err, Hint: "is poundlock peer running there, with this --api?"}
	}
	return r, nil
}

// The shortest lease leaves a busy machine the time to renew it, and to end a
// command before its lease does.
const (
	minLease = seconds(200 * time.Millisecond)
	maxLease = seconds(node.MaxLease)
)

func (f *holdFlags) check(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("release-grace") {
		f.least = f.grace
	}
	switch {
	case f.maxHold < 0:
		return cli.Usagef("--max-hold %v: want more than 0, or 0 for no end", f.maxHold)
	case f.grace < 0:
		return cli.Usagef("--grace %v: want 0 or more", f.grace)
	case f.least < 0 || f.least > f.grace:
		return cli.Usagef("--release-grace %v: want 0 to %v, the --grace", f.least, f.grace)
	case !slices.Contains(f.actions, f.onLoss):
		err := fmt.Errorf("--on-loss %q: want %s", f.onLoss, alternatives(f.actions))
		return cli.Unknown(err, f.onLoss, f.actions, "see: "+cmd.CommandPath()+" --help")
	case f.audit == "-":
		return cli.Usagef("--audit -: standard output is the command's").WithHint("name a file; ./- is one that is called -")
	}
	return cli.Within("--lease", f.lease, minLease, maxLease)
}

// alternatives is "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A grant is what a command runs under: a poundlock.Grant, or one that a peer holds for this process.
type grant interface {
	Names() []string
	Tokens() []uint64
	Group() string
	Context() context.Context
	LeaseEnd() time.Time
	LeaveBy() time.Time
	Unlock() error
}

// A holder is a client of the cluster that the flags name.
type holder struct {
	*poundlock.Client
	config poundlock.Config
	dev    *devcluster.Client // nil without --dev
}

func (h *holder) close() {
	if h.Client != nil {
		h.Client.Close()
	}
	h.dev.Leave()
}

// while gives a client of the cluster to f, connected within ctx, and ends as f does, or as
// a signal did while f waited.
func (f *holdFlags) while(cmd *cobra.Command, hold func(*interruption, chan os.Signal) (supervise.Result, error)) error {
	signals := supervise.Signals()
	waiting := listen(cmd.Context(), signals)
	result, err := hold(waiting, signals)
	if s := waiting.stop(); s != 0 {
		return &cli.Status{Code: 128 + int(s)}
	}
	if result.Interrupted {
		supervise.Interrupt()
	}
	return err
}

// join finds the cluster. With --dev that may be one that it starts.
func (f *holdFlags) join(cmd *cobra.Command, ctx context.Context) (h *holder, err error) {
	h = new(holder)
	if f.dev {
		if h.dev, err = devcluster.Join(ctx, f.say); err != nil {
			return nil, err
		}
		h.config = h.dev.Config
	} else if h.config, err = f.config(cmd); err != nil {
		return nil, err
	}
	c := &h.config
	c.Label = label()
	c.Outlived = true // by COMMAND
	c.Lease = time.Duration(f.lease)
	c.MaxHold = time.Duration(f.maxHold)
	// None is another word for the default there.
	c.Grace = max(time.Duration(f.grace), 1)
	c.ReleaseGrace = max(time.Duration(f.least), 1)
	c.AwaitUnlock = f.action() != supervise.Warn // until nothing is left of the command
	if f.audit != "" {
		file, err := os.OpenFile(f.audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			h.close()
			return nil, cli.Usagef("--audit: %w", err)
		}
		c.Audit = slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{ReplaceAttr: auditAttr})) // open for the rest of this process
	}
	return h, nil
}

// auditAttr makes a record of a client's audit look like one of a server's.
func auditAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.MessageKey:
		a.Key = "event"
	case slog.LevelKey:
		return slog.Attr{} // left out: all are of one level
	}
	return a
}

// dial connects to what join found; where a development cluster is dying it finds another one.
func (f *holdFlags) dial(cmd *cobra.Command, ctx context.Context, h *holder) (err error) {
	h.Client, err = h.dev.Dial(ctx, h.config)
	if errors.Is(err, devcluster.ErrDying) {
		h.dev.Leave()
		h.dev = nil
		again, failed := f.join(cmd, ctx)
		if failed != nil {
			return failed
		}
		*h = *again
		h.Client, err = poundlock.Dial(ctx, h.config)
	}
	if err != nil {
		return f.explain(err)
	}
	return nil
}

// label is what the holder is called in the status of the cluster.
func label() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", cmp.Or(host, "localhost"), os.Getpid())
}

// explain gives an error of the client its status and a hint.
func (f *clusterFlags) explain(err error) *cli.Status {
	s := &cli.Status{Code: cli.ExitUsage, Err: trimPrefix(err)}
	if !errors.Is(err, poundlock.ErrNoQuorum) {
		return s
	}
	s.Code = cli.ExitNoQuorum
	var unreachable *node.UnreachableError
	switch {
	case f.dev:
		s.Hint = "the development cluster does not answer; its directory holds a log"
	case errors.As(err, &unreachable):
		var why []error
		for _, m := range unreachable.Members {
			why = append(why, m.Err)
		}
		s.Hint = cmp.Or(tlsHint(why), serversHint+" See: poundlock status")
	default:
		s.Hint = "poundlock status shows which servers drain or are away"
	}
	return s
}

// serversHint is what to look at when servers do not answer.
const serversHint = "are the servers up, and is --servers the same everywhere?"

func (f *holdFlags) action() supervise.Action { return supervise.Action(f.onLoss) }

// watchdog starts the watchdog of a command, unless the command may outlive its
// lock: then it is nil. Start it before the wait for the lock, so that nobody waits
// for it while the lock is held.
func (f *holdFlags) watchdog(names []string, goodbye farewell) (*supervise.Watchdog, error) {
	if f.action() == supervise.Warn {
		return nil, nil
	}
	dog, err := supervise.StartWatchdog(title(names), f.action(), time.Duration(f.grace))
	if err != nil {
		return nil, &cli.Status{Code: cli.ExitCannotRun, Err: err}
	}
	dog.SetFarewell(goodbye.encode())
	return dog, nil
}

// title is what messages call the locks.
func title(names []string) string { return strings.Join(names, ", ") }

// runUnder waits for a grant of some locks, runs a command under it and gives it up. goodbye is what the watchdog says should
// this process be killed. lost says how the grant ended if
// that was before the command; the other error that there was no grant, perhaps because a signal ended the wait, or that
// the command could not be started.
func (f *holdFlags) runUnder(
	waiting *interruption, names, command []string, signals chan os.Signal, goodbye func() farewell, acquire func() (grant, error),
) (result supervise.Result, lost, err error) {
	dog, err := f.watchdog(names, goodbye())
	if err != nil {
		waiting.stop()
		return result, nil, err
	}
	g, err := acquire()
	if s := waiting.stop(); s != 0 {
		if err == nil { // it came as the wait succeeded
			g.Unlock()
		}
		err = &cli.Status{Code: 128 + int(s)}
	}
	if err != nil {
		dog.Close()
		return result, nil, err
	}
	dog.SetFarewell(goodbye().encode()) // the session may be another one by now
	var tokens []string
	for _, token := range g.Tokens() {
		tokens = append(tokens, strconv.FormatUint(token, 10))
	}
	os.Setenv("POUNDLOCK_NAME", strings.Join(g.Names(), "\n"))
	os.Setenv("POUNDLOCK_TOKEN", strings.Join(tokens, "\n"))
	os.Setenv("POUNDLOCK_HOLDER", label())
	os.Setenv("POUNDLOCK_GROUP", g.Group())
	mark := fmt.Sprintf("UNDER_POUNDLOCK_%d=%s", os.Getpid(), label()) // which a holder in COMMAND leaves as it is
	result, err = supervise.Command{
		Args:     command,
		Env:      append(os.Environ(), mark), // and the environment of this process, which watchdogs get, is without it
		Mark:     mark,
		Name:     title(g.Names()),
		Lease:    time.Duration(f.lease),
		End:      g.LeaseEnd,
		LeaveBy:  g.LeaveBy,
		Lost:     g.Context().Done(),
		Why:      func() string { return f.ended(context.Cause(g.Context())) },
		OnLoss:   f.action(),
		Grace:    time.Duration(f.grace),
		Watchdog: dog,
		Signals:  signals,
		Log:      f.say,
	}.Run()
	cause := context.Cause(g.Context()) // before Unlock ends it
	switch over := g.Unlock(); {
	case errors.Is(over, poundlock.ErrLost):
		lost = over
	case result.Lost:
		lost = cmp.Or(cause, poundlock.ErrLost)
	}
	if lost != nil {
		lost = f.lostError(g.Names(), lost)
	}
	return result, lost, cli.Exit(cli.ExitCannotRun, err)
}

// ended says what became of a lock while its command runs.
func (f *holdFlags) ended(cause error) string {
	var revoked *poundlock.RevokedError
	switch {
	case errors.Is(cause, poundlock.ErrMaxHold):
		return fmt.Sprintf("is over after --max-hold %v", f.maxHold)
	case errors.As(cause, &revoked):
		return "is to be given up: " + status.Printable(revoked.Error())
	}
	return "is lost"
}

func (f *holdFlags) lostError(names []string, cause error) error {
	why, more := "was lost", ""
	var revoked *poundlock.RevokedError
	switch {
	case errors.Is(cause, poundlock.ErrMaxHold):
		why = fmt.Sprintf("was over after --max-hold %v", f.maxHold)
	case errors.As(cause, &revoked):
		why, more = "was given up", ": "+status.Printable(revoked.Error())
	default:
		// What a watchdog ends in time is not lost yet.
		more = ": its lease was about to end: too few servers answered"
		if f.peer != "" {
			more = ": its lease was about to end: the peer did not answer"
		}
		for _, name := range names { // the first that was lost
			if reason, ok := strings.CutPrefix(cause.Error(), fmt.Sprintf("poundlock: lock %q lost: ", name)); ok {
				more = ": " + status.Printable(reason)
			}
		}
	}
	return &cli.Status{Code: cli.ExitLost, Err: fmt.Errorf("lock %q %s while its command ran%s", title(names), why, more)}
}

// say tells the user one thing.
func (f *holdFlags) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "poundlock: "+format+"\n", args...)
}

// trimPrefix takes the package's name off: the program has the same one.
func trimPrefix(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "poundlock: "); ok {
		return errors.New(text)
	}
	return err
}
