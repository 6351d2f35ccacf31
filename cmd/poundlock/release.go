package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
	"github.com/poundlock/poundlock/transport"
)

const releaseLong = `Release asks the holder of lock NAME to give it up, for a reason that it and the
servers' logs are told. The holder's library ends the grant as if the lock were lost,
and leaves the lock when its user has let go, or after the grace, which is not shorter
than the holder allows: poundlock lock --release-grace. Nothing is taken away
behind the holder's back: one that does not answer keeps the lock until its lease ends.

--holder names another client instead, by its id or label in poundlock status: a
waiting one gives up. A request of this command is for one grant: a later one of the
same client is left alone.

Exit status: 0 once the holder has left, 1 when there is none, or it does not answer or
does not leave, 64 when called wrongly, 69 when no quorum can be reached or no development
cluster runs, 70 when the result cannot be written.`

// releaseFlags are the flags of release.
type releaseFlags struct {
	observerFlags
	reason string
	holder string
	grace  time.Duration
}

func releaseCommand() *cobra.Command {
	var f releaseFlags
	cmd := &cobra.Command{
		Use:     "release NAME --reason TEXT",
		Short:   "Ask the holder of a lock to give it up",
		Long:    releaseLong,
		Example: "  poundlock release nightly --reason 'hangs since Monday, see the ticket'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("release wants one name, not %d arguments", len(args))
			}
			return f.run(cmd, args[0])
		},
	}
	s := cmd.Flags()
	cmd.ValidArgsFunction = f.lockNames
	f.register(s, "a lock of this user's development cluster, if there is one")
	s.StringVar(&f.reason, "reason", "", "why: `TEXT` for the holder and the logs, at most 200 bytes")
	s.StringVar(&f.holder, "holder", "", "`ID` or label of a client that holds the lock or waits for it (default the holder)")
	_ = cmd.RegisterFlagCompletionFunc("holder", f.clientNames) // only an unknown flag fails
	s.DurationVar(&f.grace, "grace", 0, "`DURATION` until the holder leaves the lock whatever its user does, at most 1h, and not shorter than it allows (default its own)")
	return cmd
}

func (f *releaseFlags) run(cmd *cobra.Command, name string) error {
	if err := transport.CheckName(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	r := control.Release{Ask: control.ForcedRelease, Name: []byte(name), Reason: f.reason}
	if err := control.CheckReason(f.reason); err != nil {
		return &cli.Status{Code: cli.ExitUsage, Err: err, Hint: "say with --reason why: the holder and the servers' logs are told"}
	}
	if cmd.Flags().Changed("grace") {
		if err := cli.Within("--grace", f.grace, 0, time.Hour); err != nil {
			return err
		}
		ms := f.grace.Milliseconds()
		r.GraceMS = &ms
	}
	o, err := f.observe(cmd)
	if err != nil {
		return err
	}
	defer o.close()
	victim, err := f.find(cmd.Context(), o, name)
	if err != nil {
		return err
	}
	r.Request = victim.Request
	return f.release(cmd, o, name, victim, r)
}

// find returns the client that is meant, whether it holds the lock or waits for it.
func (f *releaseFlags) find(ctx context.Context, o *observer, name string) (status.Waiter, error) {
	l, err := one(ctx, o.Observer, name)
	if err != nil {
		return status.Waiter{}, err
	}
	all := l.Waiters
	for _, h := range l.Holders {
		x := status.Waiter{ID: h.ID, Label: h.Label, Request: h.Request}
		if f.holder == "" {
			return x, nil
		}
		all = append(all, x)
	}
	var found []status.Waiter
	for _, x := range all {
		if f.holder == x.ID || f.holder == x.Label {
			found = append(found, x)
		}
	}
	s := &cli.Status{Code: cli.ExitError}
	switch {
	case f.holder == "":
		s.Err = fmt.Errorf("nobody holds lock %q", name)
		if len(l.Waiters) > 0 {
			s.Hint = "clients wait for it: --holder ID names one of them"
		} else if permits(ctx, o, name) {
			s.Hint = fmt.Sprintf("the permits of a semaphore are locks of their own: poundlock locks '%s#' lists them", status.Printable(name))
		}
	case len(found) == 0:
		s.Err = fmt.Errorf("%q neither holds lock %q nor waits for it", f.holder, name)
		s.Hint = "poundlock status shows who does"
	case len(found) > 1:
		s.Err = fmt.Errorf("%d clients of lock %q are called %q", len(found), name, f.holder)
		s.Hint = "name one by its id, which poundlock status --json shows"
	default:
		return found[0], nil
	}
	return status.Waiter{}, s
}

// permits reports whether there are locks that may be the permits of a semaphore.
func permits(ctx context.Context, o *observer, name string) (found bool) {
	status.Ask(ctx, o.Observer, server.LockQuery{Prefix: name + "#", Few: 1}, func(status.Lock) bool {
		found = true
		return false
	})
	return found
}

// release asks, and waits until the client has left.
func (f *releaseFlags) release(
	cmd *cobra.Command, o *observer, name string, victim status.Waiter, r control.Release,
) error {
	answers := o.Release(cmd.Context(), r)
	by := func(outcome string) int {
		return slices.IndexFunc(answers, func(a control.Released) bool { return a.Outcome == outcome })
	}
	whom := status.Who(victim.Label, victim.ID)
	silent := by(control.Silent)
	switch {
	case by(control.Told) >= 0:
	case by(control.Gone) >= 0:
		return f.say(cmd, "%s has left lock %q already", whom, name)
	case silent >= 0:
		lease := time.Duration(0)
		for _, a := range answers {
			lease = max(lease, time.Duration(a.LeaseMS)*time.Millisecond)
		}
		return &cli.Status{
			Code: cli.ExitError,
			Err:  fmt.Errorf("%s does not answer: %s", whom, status.Printable(answers[silent].Err)),
			Hint: fmt.Sprintf("if it stays silent, its lease ends in %v at the latest, and the lock is free", lease.Round(time.Second)),
		}
	default:
		return &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("%s is no more in that request for lock %q", whom, name)}
	}
	var grace time.Duration // as the first to pass it on has heard: the others hear what is left
	for _, a := range answers {
		grace = max(grace, time.Duration(a.GraceMS)*time.Millisecond)
	}
	within := ""
	switch {
	case grace > time.Millisecond:
		within = fmt.Sprintf(", within %v", grace)
	case grace > 0: // no grace is rounded up on its way
		within = " at once"
	}
	if err := f.say(cmd, "%s was told to leave lock %q%s", whom, name, within); err != nil {
		return err
	}
	return f.await(cmd, o, name, victim, grace)
}

// await waits until a request is over.
func (f *releaseFlags) await(cmd *cobra.Command, o *observer, name string, victim status.Waiter, grace time.Duration) error {
	for end := time.Now().Add(grace + f.timeout); ; {
		l, err := one(cmd.Context(), o.Observer, name)
		if err != nil {
			return err
		}
		left := !slices.ContainsFunc(l.Holders, func(h status.Holder) bool { return h.Request == victim.Request }) &&
			!slices.ContainsFunc(l.Waiters, func(w status.Waiter) bool { return w.Request == victim.Request })
		switch {
		case left:
			return f.say(cmd, "%s has left lock %q", status.Who(victim.Label, victim.ID), name)
		case time.Now().After(end):
			return &cli.Status{
				Code: cli.ExitError,
				Err:  fmt.Errorf("%s has not left lock %q", status.Who(victim.Label, victim.ID), name),
				Hint: "it was told: a command that has not ended keeps the lock; see poundlock status",
			}
		}
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (f *releaseFlags) say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return cli.Exit(cli.ExitInternal, err)
}
