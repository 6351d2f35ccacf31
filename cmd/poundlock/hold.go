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
	onLoss  string
	grace   seconds
	least   seconds // grace that a release may set
	audit   string
}

func (f *holdFlags) register(s *pflag.FlagSet, actions string) {
	f.lease, f.grace = seconds(slots.DefaultLease), seconds(5*time.Second)
	f.clusterFlags.register(s)
	f.registerDev(s, "use this user's development cluster, and start it if need be")
	s.Var(&f.lease, "lease", "how long the lock outlives a holder that is silent, `DURATION`, 200ms to 10m; servers may allow less")
	s.Var(&f.maxHold, "max-hold", "after this `DURATION` the lock is over as if it were lost (default never)")
	s.StringVar(&f.onLoss, "on-loss", string(supervise.Term), "`ACTION` when the lock is lost: "+actions)
	s.Var(&f.grace, "grace", "`DURATION` between SIGTERM and SIGKILL")
	s.Var(&f.least, "release-grace", "shortest `DURATION` that poundlock release --grace may put in place of --grace (default as --grace)")
	s.StringVar(&f.audit, "audit", "", "append a line of JSON for each grant, release and loss to this `FILE`")
}

// The shortest lease leaves a busy machine the time to renew it, and to end a
// command before its lease does.
const (
	minLease = seconds(200 * time.Millisecond)
	maxLease = seconds(node.MaxLease)
)

func (f *holdFlags) check(cmd *cobra.Command, actions ...supervise.Action) error {
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
	case f.lease < minLease || f.lease > maxLease:
		return cli.Usagef("--lease %v: want %v to %v", f.lease, minLease, maxLease)
	case !slices.Contains(actions, supervise.Action(f.onLoss)):
		return cli.Usagef("--on-loss %q: want %s", f.onLoss, alternatives(actions))
	case f.audit == "-":
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  errors.New("--audit -: standard output is the command's"),
			Hint: "name a file; ./- is one that is called -",
		}
	}
	return nil
}

// alternatives is "a, b or c".
func alternatives(actions []supervise.Action) string {
	var b strings.Builder
	for i, a := range actions {
		switch {
		case i > 0 && i == len(actions)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(a))
	}
	return b.String()
}

// cluster says which servers to use. With --dev the caller leaves d when it is done
// with them; else d is nil.
func (f *holdFlags) cluster(cmd *cobra.Command, ctx context.Context) (c poundlock.Config, d *devClient, err error) {
	if f.dev {
		if d, err = joinDev(ctx, f.say); err != nil {
			return c, nil, err
		}
		c = d.config
	} else if c, err = f.config(cmd); err != nil {
		return c, nil, err
	}
	c.Label = label()
	c.Lease = time.Duration(f.lease)
	c.MaxHold = time.Duration(f.maxHold)
	// None is another word for the default there.
	c.Grace = max(time.Duration(f.grace), 1)
	c.ReleaseGrace = max(time.Duration(f.least), 1)
	c.AwaitUnlock = f.action() != supervise.Warn // until nothing is left of the command
	if f.audit != "" {
		file, err := os.OpenFile(f.audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			d.leave()
			return c, nil, &cli.Status{Code: cli.ExitUsage, Err: fmt.Errorf("--audit: %w", err)}
		}
		c.Audit = slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{ReplaceAttr: auditAttr})) // open for the rest of this process
	}
	return c, d, nil
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

// dial connects to what cluster found; where a development cluster is dying it finds
// another one.
func (f *holdFlags) dial(
	cmd *cobra.Command, ctx context.Context, config poundlock.Config, dev **devClient,
) (*poundlock.Client, error) {
	client, err := (*dev).dial(ctx, config)
	if errors.Is(err, errDying) {
		(*dev).leave()
		if config, *dev, err = f.cluster(cmd, ctx); err != nil {
			return nil, err
		}
		client, err = poundlock.Dial(ctx, config)
	}
	if err != nil {
		return nil, f.explain(err)
	}
	return client, nil
}

// label is what the holder is called in the status of the cluster.
func label() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", cmp.Or(host, "localhost"), os.Getpid())
}

// explain gives an error of the client its status and a hint.
func (f *holdFlags) explain(err error) *cli.Status {
	s := explain(err)
	if s.Code == cli.ExitNoQuorum && f.dev {
		s.Hint = "the development cluster does not answer; its directory holds a log"
	}
	return s
}

// explain is that of clients of any cluster.
func explain(err error) *cli.Status {
	s := &cli.Status{Code: cli.ExitUsage, Err: trimPrefix(err)}
	if errors.Is(err, poundlock.ErrNoQuorum) {
		s.Code = cli.ExitNoQuorum
		why := memberErrors(err)
		s.Hint = cmp.Or(tlsHint(why), serversHint+" See: poundlock status")
		if why == nil {
			s.Hint = "poundlock status shows which servers drain or are away"
		}
	}
	return s
}

// serversHint is what to look at when servers do not answer.
const serversHint = "are the servers up, and is --servers the same everywhere?"

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

func (f *holdFlags) action() supervise.Action { return supervise.Action(f.onLoss) }

// watchdog starts the watchdog of a command, unless the command may outlive its
// lock: then it is nil. Start it before the wait for the lock, so that nobody waits
// for it while the lock is held.
func (f *holdFlags) watchdog(names []string) (*supervise.Watchdog, error) {
	if f.action() == supervise.Warn {
		return nil, nil
	}
	dog, err := supervise.StartWatchdog(title(names), f.action(), time.Duration(f.grace))
	if err != nil {
		return nil, &cli.Status{Code: cli.ExitCannotRun, Err: err}
	}
	return dog, nil
}

// title is what messages call the locks.
func title(names []string) string { return strings.Join(names, ", ") }

// A tenure is what a command runs under: a grant, or a leadership.
type tenure struct {
	names  []string
	tokens []uint64
	ctx    context.Context
	end    func() time.Time // of the lease
	by     func() time.Time // the end of the grace
	leave  func() error
}

// runUnder runs a command under t and leaves it. lost says how t ended if that was before
// the command; the other error that the command could not be started.
func (f *holdFlags) runUnder(
	t tenure, command []string, dog *supervise.Watchdog, signals chan os.Signal,
) (result supervise.Result, lost, err error) {
	tokens := make([]string, len(t.tokens))
	for i, token := range t.tokens {
		tokens[i] = strconv.FormatUint(token, 10)
	}
	result, err = supervise.Command{
		Args: command,
		Env: environ(map[string]string{
			"POUNDLOCK_NAME":   strings.Join(t.names, "\n"),
			"POUNDLOCK_TOKEN":  strings.Join(tokens, "\n"),
			"POUNDLOCK_HOLDER": label(),
		}),
		Name:     title(t.names),
		Lease:    time.Duration(f.lease),
		End:      t.end,
		LeaveBy:  t.by,
		Lost:     t.ctx.Done(),
		Why:      func() string { return f.ended(context.Cause(t.ctx)) },
		OnLoss:   f.action(),
		Grace:    time.Duration(f.grace),
		Watchdog: dog,
		Signals:  signals,
		Log:      f.say,
	}.Run()
	cause := context.Cause(t.ctx) // before leave ends it
	switch over := t.leave(); {
	case errors.Is(over, poundlock.ErrLost):
		lost = over
	case result.Lost:
		lost = cmp.Or(cause, poundlock.ErrLost)
	}
	if lost != nil {
		lost = f.lostError(t.names, lost)
	}
	if err != nil {
		err = &cli.Status{Code: cli.ExitCannotRun, Err: err}
	}
	return result, lost, err
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
