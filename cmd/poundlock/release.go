package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

Where several share the lock all are asked, at once; whoever comes in later is left alone.
--holder names one client instead, by its id, its label or its request in poundlock status:
one that holds the lock, or one that waits, which gives up. A request of this command is
for one grant: a later one of the same client is left alone.

Exit status: 0 once every holder that was asked has left, 1 when there is none, or one does
not answer or does not leave, 64 when called wrongly, 69 when no quorum can be reached or no
development cluster runs, 70 when the result cannot be written.`

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
		Short:   "Ask the holders of a lock to give it up",
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
	s.StringVar(&f.holder, "holder", "", "`ID`, label or request of a client that holds the lock or waits for it (default all holders)")
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
	if f.holder == "" && cmd.Flags().Changed("holder") {
		return cli.Usagef("--holder %q: want the id, the label or the request of a client; without --holder all holders are asked", f.holder)
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
	victims, err := f.find(cmd.Context(), o, name)
	if err != nil {
		return err
	}
	room := make(chan struct{}, mostReleased)
	var all sync.WaitGroup
	for _, v := range victims {
		room <- struct{}{}
		all.Go(func() {
			f.ask(cmd.Context(), o, name, v, r)
			<-room
		})
	}
	all.Wait()
	for _, v := range victims {
		if v.told != "" {
			if err := f.say(cmd, "%s", v.told); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(victims, func(v *victim) bool { return !v.end.IsZero() }) {
		if err := f.await(cmd, o, name, victims); err != nil {
			return err
		}
	}
	return together(victims)
}

// mostReleased is how many holders are asked at once.
const mostReleased = 16

// A victim is a client that is asked to leave a lock.
type victim struct {
	status.Waiter
	told string      // what became of that, "" where err tells
	end  time.Time   // by when it must have left; zero: it is not waited for
	err  *cli.Status // why it does not leave, nil if it does
}

func (v *victim) who() string { return status.Who(v.Label, v.ID) }

// together is the error of all victims, nil if there is none.
func together(victims []*victim) error {
	const most = 3
	var texts []string
	all, failed := cli.Status{Code: cli.ExitError}, 0
	for _, v := range victims {
		if v.err == nil {
			continue
		}
		all.Hint = cmp.Or(all.Hint, v.err.Hint)
		if failed++; failed <= most {
			texts = append(texts, v.err.Error())
		}
	}
	switch {
	case failed == 0:
		return nil
	case failed > most:
		texts = append(texts, fmt.Sprintf("and %d more", failed-most))
	}
	all.Err = errors.New(strings.Join(texts, "; "))
	return &all
}

// find returns the clients that are meant: all that hold the lock, or the one that --holder names, whether it
// holds the lock or waits for it.
func (f *releaseFlags) find(ctx context.Context, o *observer, name string) ([]*victim, error) {
	l, err := one(ctx, o.Observer, name)
	if err != nil {
		return nil, err
	}
	var found []*victim
	meant := func(x status.Waiter) bool { return f.holder == x.ID || f.holder == x.Label || f.holder == x.Request }
	for _, h := range l.Holders {
		if x := (status.Waiter{ID: h.ID, Label: h.Label, Request: h.Request}); f.holder == "" || meant(x) {
			found = append(found, &victim{Waiter: x})
		}
	}
	for _, x := range l.Waiters {
		if f.holder != "" && meant(x) {
			found = append(found, &victim{Waiter: x})
		}
	}
	if f.holder == "" && len(found) > 0 {
		return found, nil
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
		return found, nil
	}
	return nil, s
}

// permits reports whether there are locks that may be the permits of a semaphore.
func permits(ctx context.Context, o *observer, name string) (found bool) {
	status.Ask(ctx, o.Observer, server.LockQuery{Prefix: name + "#", Few: 1}, func(status.Lock) bool {
		found = true
		return false
	})
	return found
}

// ask asks a client to leave.
func (f *releaseFlags) ask(ctx context.Context, o *observer, name string, v *victim, r control.Release) {
	r.Request = v.Request
	answers := o.Release(ctx, r)
	by := func(outcome string) int {
		return slices.IndexFunc(answers, func(a control.Released) bool { return a.Outcome == outcome })
	}
	silent := by(control.Silent)
	switch {
	case by(control.Told) >= 0:
	case by(control.Gone) >= 0:
		v.told = fmt.Sprintf("%s has left lock %q already", v.who(), name)
		return
	case silent >= 0:
		lease := time.Duration(0)
		for _, a := range answers {
			lease = max(lease, time.Duration(a.LeaseMS)*time.Millisecond)
		}
		v.err = &cli.Status{
			Err:  fmt.Errorf("%s does not answer: %s", v.who(), status.Printable(answers[silent].Err)),
			Hint: fmt.Sprintf("if it stays silent, its lease ends in %v at the latest, and the lock is free", lease.Round(time.Second)),
		}
		return
	default:
		v.err = &cli.Status{Err: fmt.Errorf("%s is no more in that request for lock %q", v.who(), name)}
		return
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
	v.told = fmt.Sprintf("%s was told to leave lock %q%s", v.who(), name, within)
	v.end = time.Now().Add(grace + f.timeout)
}

// await waits until the requests of those that were told are over.
func (f *releaseFlags) await(cmd *cobra.Command, o *observer, name string, victims []*victim) error {
	for {
		l, err := one(cmd.Context(), o.Observer, name)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, h := range l.Holders {
			there[h.Request] = true
		}
		for _, w := range l.Waiters {
			there[w.Request] = true
		}
		pending := 0
		for _, v := range victims {
			switch {
			case v.end.IsZero():
			case !there[v.Request]:
				v.end = time.Time{}
				if err := f.say(cmd, "%s has left lock %q", v.who(), name); err != nil {
					return err
				}
			case time.Now().After(v.end):
				v.end = time.Time{}
				v.err = &cli.Status{
					Err:  fmt.Errorf("%s has not left lock %q", v.who(), name),
					Hint: "it was told: a command that has not ended keeps the lock; see poundlock status",
				}
			default:
				pending++
			}
		}
		if pending == 0 {
			return nil
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
