package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/internal/supervise"
)

const lockLong = `Lock waits for the lock NAME, runs COMMAND under it and releases it when COMMAND
ends. Standard input, output and error are COMMAND's, and so is the exit status.

With several names it holds all of them or none. It acquires them in bytewise order
whatever the order here, so that two that name the same locks never wait for each
other.

With --shared any number of holders have the lock together, and exclude those without
it. With --group G those of one group share it, and exclude all others; with
--group G,G2,G3 any one of the groups will do, the first one where nobody has the lock.
With --semaphore N up to N holders of NAME are inside at a time.

Those who wait are served in the order of their requests. With --head-start D this one
counts as made D earlier.

COMMAND leads a process group of its own, in the foreground of the terminal if
there is one. Signals that are sent to poundlock go to the whole group. An interrupt
from the terminal that ends COMMAND also ends the script that it stands in. What
COMMAND leaves in the background when it ends by itself runs on without the lock;
when a signal ends COMMAND, the rest of its group is ended before the release.

When the lock is lost while COMMAND runs, or --max-hold is over, --on-loss says what
happens: "term" ends the group with SIGTERM and after --grace with SIGKILL, "kill" with SIGKILL at once,
"warn" lets it run on. A watchdog process does the same if poundlock itself is
killed or stopped (also by ^Z), before the lease ends: within --grace, but at most
in what is left of the lease. If poundlock was killed the lock is then free at once.
With "warn" there is no watchdog. The group is that of
COMMAND's process, or a control group where poundlock may make one: then children
that called setsid and set-uid programs are ended too. Without one poundlock says so
when COMMAND has a process that it has no right to end.

No lease excludes that the machine pauses between a check and a write. A resource
that compares POUNDLOCK_TOKEN with the largest one it has seen is safe from that.

COMMAND finds in its environment POUNDLOCK_NAME, POUNDLOCK_TOKEN (the fencing
token, a decimal number that grows from grant to grant, except among holders that
share the lock), POUNDLOCK_HOLDER (as poundlock status shows it) and POUNDLOCK_GROUP
("shared", the G, or empty). Of several locks there is one name and one token a line.

--dev needs no cluster: it starts, or joins, a development cluster of this user,
four servers in one background process on unix sockets in $XDG_RUNTIME_DIR/poundlock,
or else in $TMPDIR/poundlock-UID (/tmp/poundlock-UID if TMPDIR is not set). It ends
after a minute without clients. Two of these directories are two clusters: their
locks do not exclude each other.

With --peer it locks through a peer of this host, and there are no servers: see
poundlock peer.

Exit status: that of COMMAND, or 128 + the number of the signal that ended it; 64
when called wrongly or without servers, 69 when no quorum of the servers can be
reached or gives locks, 74 when the lock was lost while COMMAND ran (also with "warn"), 75 when
the lock was not acquired with --try or within --wait (or the one of -E), 126 when
COMMAND cannot be run, 127 when it is not found. A signal that ends the wait for
the lock gives 128 + its number.`

// lockFlags are the flags of lock.
type lockFlags struct {
	holdFlags
	try       bool
	wait      seconds
	headStart seconds
	status    int
	shared    bool
	exclusive bool   // or none of the others
	group     string // that shares the locks, or any of these; of shared ones poundlock.Shared
	semaphore int    // permits; 0: locks
}

func lockCommand() *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "lock NAME... [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command under a lock",
		Long:  lockLong,
		Example: "  poundlock lock --dev hello -- echo inside\n" +
			"  poundlock lock --try nightly -E 0 -- ./backup.sh\n" +
			"  poundlock lock from to -- ./transfer.sh\n" +
			"  poundlock lock --shared book -- ./read.sh\n" +
			"  poundlock lock --semaphore 3 build -- make",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 1 || len(args) == dash {
				return cli.Usagef("lock wants a name or several, two dashes and a command").
					WithHint("for example: " + cmd.CommandPath() + " --dev hello -- echo inside")
			}
			return f.run(cmd, slices.Sorted(slices.Values(args[:dash])), args[dash:])
		},
	}
	s := cmd.Flags()
	f.register(s, supervise.Term, supervise.Kill, supervise.Warn)
	s.BoolVarP(&f.try, "try", "n", false, "give up at once when somebody else has or wants the lock")
	s.VarP(&f.wait, "wait", "w", "give up after `DURATION`, such as 5s or a number of seconds; 0 is --try (default never)")
	s.Var(&f.headStart, "head-start", "count as having asked `DURATION` earlier, up to 1m: before those that asked later than that")
	s.IntVarP(&f.status, "conflict-exit-code", "E", cli.ExitNotAcquired, "exit `STATUS` when the lock was not acquired, 0 to 255")
	s.BoolVarP(&f.shared, "shared", "s", false, "share the lock with all others who do")
	s.BoolVarP(&f.exclusive, "exclusive", "x", false, "share it with nobody, which is the default")
	s.StringVar(&f.group, "group", "", "share the lock with the holders of this `GROUP[,GROUP..]`, or of the first that can be had")
	s.IntVar(&f.semaphore, "semaphore", 0, "let up to `N` holders in, 1 to 100: NAME is a semaphore")
	return cmd
}

// check fills the flags in and refuses those that make no sense.
func (f *lockFlags) check(cmd *cobra.Command, names []string) error {
	given := cmd.Flags().Changed
	if err := cmp.Or(f.fillPeer(cmd), checkRivals(cmd)); err != nil {
		return err
	}
	f.try = f.try || given("wait") && f.wait == 0
	switch {
	case f.wait < 0:
		return cli.Usagef("--wait %v: want 0 or more", f.wait)
	case f.headStart < 0 || f.headStart > seconds(time.Minute):
		return cli.Usagef("--head-start %v: want 0 to 1m", f.headStart)
	case given("semaphore") && len(names) > 1:
		return cli.Usagef("--semaphore wants one name, not %d", len(names))
	case given("semaphore"):
		if _, err := slots.Permits(names[0], f.semaphore); err != nil {
			return cli.Usagef("--semaphore: %w", err)
		}
	case f.shared:
		f.group = poundlock.Shared
	case given("group"):
		if err := slots.CheckGroups(f.groups()); err != nil {
			return cli.Usagef("--group: %w", err)
		}
	}
	return cmp.Or(cli.Within("-E", f.status, 0, 255), f.holdFlags.check(cmd))
}

// run returns an *cli.Status with the command's status, or what went wrong.
func (f *lockFlags) run(cmd *cobra.Command, names, command []string) error {
	if err := slots.CheckNames(names); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := f.check(cmd, names); err != nil {
		return err
	}
	return f.while(cmd, func(waiting *interruption, signals chan os.Signal) (supervise.Result, error) {
		return f.lock(cmd, waiting, signals, names, command)
	})
}

func (f *lockFlags) lock(
	cmd *cobra.Command, waiting *interruption, signals chan os.Signal, names, command []string,
) (result supervise.Result, err error) {
	ctx := context.Context(waiting)
	if f.wait > 0 && !f.try {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.wait))
		defer cancel()
	}
	if f.peer != "" {
		return f.lockThrough(ctx, waiting, signals, names, command)
	}
	h, err := f.join(cmd, waiting)
	if err != nil {
		return result, err
	}
	defer h.close()
	if err := f.dial(cmd, ctx, h); err != nil {
		return result, err
	}
	goodbye := func() farewell { return f.farewell(h) }
	result, lost, err := f.runUnder(waiting, names, command, signals, goodbye, func() (grant, error) {
		stop := func() {}
		if !f.try {
			stop = f.sayWhy(ctx, "for "+f.wanted(names), func(ctx context.Context) string { return f.inside(ctx, h.config, names) })
		}
		grant, err := f.acquire(h.Client, names)(ctx)
		stop()
		if err != nil {
			return nil, f.notAcquired(waiting, h.config, names, err)
		}
		return grant, nil
	})
	return result, cmp.Or(lost, err, error(&cli.Status{Code: result.Status}))
}

// lockThrough is lock at the API of a peer.
func (f *lockFlags) lockThrough(
	ctx context.Context, waiting *interruption, signals chan os.Signal, names, command []string,
) (result supervise.Result, err error) {
	r, err := f.dialPeer(ctx)
	if err != nil {
		return result, err
	}
	defer r.close()
	result, lost, err := f.runUnder(waiting, names, command, signals, r.farewell, func() (grant, error) {
		var groups []string
		if f.group != "" {
			groups = f.groups()
		}
		g, err := r.lock(ctx, names, groups, f.try)
		if err != nil {
			s := &cli.Status{Code: f.status, Err: trimPrefix(err)}
			if errors.Is(err, poundlock.ErrNoQuorum) {
				s.Code = cli.ExitNoQuorum
			}
			if errors.Is(err, context.DeadlineExceeded) {
				s.Err = fmt.Errorf("%s not acquired: not within %v", f.wanted(names), f.wait)
			}
			return nil, s
		}
		return g, nil
	})
	return result, cmp.Or(lost, err, error(&cli.Status{Code: result.Status}))
}

// acquire is how to get what the flags ask for.
func (f *lockFlags) acquire(c *poundlock.Client, names []string) func(context.Context) (*poundlock.Grant, error) {
	switch {
	case f.semaphore > 0 && f.try:
		return c.Semaphore(names[0], f.semaphore).TryAcquire
	case f.semaphore > 0:
		return c.Semaphore(names[0], f.semaphore).Acquire
	case f.try:
		return f.locks(c, names).TryLock
	}
	return f.locks(c, names).Lock
}

func (f *lockFlags) locks(c *poundlock.Client, names []string) *poundlock.Mutex {
	groups := f.groups()
	return c.Locks(names...).In(groups[0], groups[1:]...).HeadStart(time.Duration(f.headStart))
}

// groups are any of which will do; "": the holder is alone.
func (f *lockFlags) groups() []string { return strings.Split(f.group, ",") }

// notAcquired gives an error of acquire its status, and says who is inside.
func (f *lockFlags) notAcquired(ctx context.Context, config poundlock.Config, names []string, err error) error {
	s := f.explain(err)
	if !errors.Is(err, poundlock.ErrNotAcquired) {
		return s
	}
	s.Code = f.status
	late := !f.try && errors.Is(err, context.DeadlineExceeded)
	if !f.try && !late {
		return s // an operator has ended the wait
	}
	why := f.inside(ctx, config, names)
	switch {
	case f.try && why != "":
		s.Err = fmt.Errorf("%s not acquired: %s", f.wanted(names), why)
	case late && why != "":
		s.Err = fmt.Errorf("%s not acquired: not within %v: %s", f.wanted(names), f.wait, why)
	case late:
		s.Err = fmt.Errorf("%s not acquired: not within %v", f.wanted(names), f.wait)
		s.Hint = "poundlock status shows who has it"
	}
	if f.try {
		s.Hint = "--wait gives it time"
	}
	return s
}
