package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/kvapi"
	"github.com/poundlock/poundlock/metrics"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

const kvLong = `Kv has values by key at a few processes, without servers: each has a copy, and all
copies are changed alike, by one user at a time. One process on each host serves them:

  poundlock kv serve --config kv.yaml --name p1 --api unix:/run/kv.sock

and commands of that host read and write there, with --at or POUNDLOCK_AT:

  poundlock kv put KEY VALUE        poundlock kv delete KEY
  poundlock kv get KEY              poundlock kv cas KEY OLD NEW
  poundlock kv txn --if KEY=VALUE --put KEY=VALUE --delete KEY
  poundlock kv with -- COMMAND      nobody comes between what COMMAND does there

With --object there are others, up to 16: users of one do not wait for those of another.

Values are in memory: they survive while a majority of the processes does. A command is told
what became of its operation, also when its process was suspected by mistake.

Exit status: 0 executed, once; 1 executed, and KEY has no value, or OLD or what --if says was not
so and nothing has changed; 64 called wrongly, 69 when no member can be reached, or no majority by
it within --wait, 74 when the section was lost, 75 when it was not entered within --wait:
with each of these four nothing was executed, and never will be. 76: nobody here knows, for
the member has gone with the answer, or --wait was over while the operation was under way.
70 when output cannot be written. With "with" that of COMMAND, or 128 + the number of the signal that
ended it, 126 when it cannot be run, 127 when it is not found, and 74 when the section was
lost while it ran: what it was told of each operation is true.`

func kvCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kv",
		Short:   "Values by key that a few processes replicate, without servers",
		Long:    kvLong,
		Example: "  poundlock kv cas --at unix:/run/kv.sock leader '' a",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return cli.Usagef("kv has no command %q", args[0])
		},
	}
	cmd.AddCommand(kvServeCommand(), kvGetCommand(), kvPutCommand(), kvDeleteCommand(), kvCasCommand(), kvTxnCommand(), kvWithCommand())
	return cmd
}

// kvObject is the object that kv serve has from the start.
const kvObject = "kv"

// kvServeFlags are those of kv serve.
type kvServeFlags struct {
	peerFlags
	dir       string
	syncEvery time.Duration
}

func kvServeCommand() *cobra.Command {
	f := &kvServeFlags{}
	cmd := &cobra.Command{
		Use:   "serve --name NAME --peers NAME=ADDR,... --api unix:/path",
		Short: "Run one of the processes that have the values",
		Long: `Serve is one of the processes that have the values. The first time all of them are started with
--bootstrap, and begin when all have met. Later each one that was restarted joins the
others, without it, and gets the values from them. As long as a majority is up
and connected it goes on. With --dir it keeps the values on disk, too, and goes on from
there, also where all of them were killed.

It logs to stderr and ends with status 0 on SIGTERM or SIGINT. Other statuses: 1 when it
cannot serve, 64 when it was called wrongly.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	s := cmd.Flags()
	f.register(s, "serve the values to this host at `unix:/path`, or HOST:PORT on loopback")
	s.StringVar(&f.dir, "dir", "", "keep the values in a `DIRECTORY` of this process alone (default in memory)")
	s.DurationVar(&f.syncEvery, "sync-every", 0, "with --dir, sync so often, and lose that much where the power goes (default before anything is told)")
	return cmd
}

func (f *kvServeFlags) serve(cmd *cobra.Command) error {
	if err := f.open(cmd); err != nil {
		return err
	}
	if f.syncEvery < 0 || f.syncEvery > 0 && f.dir == "" {
		return errors.Join(cli.Usagef("--sync-every %v: want more than 0, and a --dir", f.syncEvery), f.c.Listener.Close())
	}
	defer f.watchFiles(cmd.Context())()
	end, stop := awaitSignals(cmd.Context())
	defer stop()
	l, err := f.listenAPI(end.asked)
	if err != nil {
		return errors.Join(cannotServe("--api", err), f.c.Listener.Close())
	}
	waiting := joining{f: &f.peerFlags}
	defer onHangup(waiting.reload)()
	stopAdmin, err := f.runAdmin(&waiting)
	if err != nil {
		return errors.Join(err, l.Close(), f.c.Listener.Close())
	}
	defer stopAdmin()
	f.log.Info("waiting for the other members", "member", f.c.Name, "addr", f.c.Listener.Addr().String())
	ctx, cancel := context.WithCancel(end.asked)
	api, served := kvapi.NewServer(), make(chan error, 1)
	go func() { served <- api.Serve(ctx, l, f.c.Lease) }()
	m, err := sections.Open(ctx, sections.Config{
		Name: f.c.Name, Members: f.c.Members, Epoch: f.c.Epoch, Bootstrap: f.c.Bootstrap, Lease: f.c.Lease, Listener: f.c.Listener, TLS: f.c.TLS, Log: f.log,
		Dir: f.dir, SyncEvery: f.syncEvery,
		Objects: map[string]sections.Object{kvObject: &kv.Store{}}, More: func(string) sections.Object { return &kv.Store{} },
	})
	if err != nil {
		cancel()
		<-served
		if end.asked.Err() != nil {
			return nil
		}
		return f.cannot(err)
	}
	waiting.joined(metrics.Sections(m), m.Healthy, m.SetTable)
	api.Ready(m)
	f.log.Info("serving", "member", f.c.Name, "api", l.Addr().String())
	err = <-served
	cancel()
	return errors.Join(err, m.Close())
}

// kvFlags are those of the commands that read and write.
type kvFlags struct {
	r    kvapi.Request
	at   string
	wait seconds
}

func (f *kvFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.at, "at", "", "the process to ask: `unix:/path` or HOST:PORT, its --api")
	s.StringVar(&f.r.Object, "object", kvObject, "`NAME` of the object that has the values: what somebody writes to is made")
	s.VarP(&f.wait, "wait", "w", "give up after `DURATION`, such as 5s or a number of seconds (default never)")
}

// command is one that asks for an operation, which operation makes of its arguments.
func (f *kvFlags) command(use, short string, args int, operation func(args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " --at unix:/path",
		Short: short,
		Long:  short + ".\n\nExit status: see poundlock kv --help.",
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) != args {
				return cli.Usagef("%s wants %d arguments, not %d", cmd.Name(), args, len(given))
			}
			if err := f.fill(cmd); err != nil {
				return err
			}
			if err := operation(given); err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			return f.operate(cmd)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&f.r.Section, "section", "", "within the section of this `ID`, which poundlock kv with gives")
	return cmd
}

// fill sets the flags that were not given from the environment.
func (f *kvFlags) fill(cmd *cobra.Command) error {
	if err := fillFrom(cmd, settings(cmd.Root()), environment(), "environment variable "); err != nil {
		return err
	}
	switch {
	case f.at == "":
		return cli.Usagef("no --at given").WithHint("name the --api of poundlock kv serve on this host: --at unix:/path, or POUNDLOCK_AT")
	case f.wait < 0:
		return cli.Usagef("--wait %v: want 0 or more", f.wait)
	}
	if f.r.Section != "" && !cmd.Flags().Changed("object") {
		f.r.Object = "" // that of the section
	}
	f.r.Wait = time.Duration(f.wait)
	for flag, name := range map[string]string{"object": f.r.Object, "section": f.r.Section} {
		if !utf8.ValidString(name) {
			return cli.Usagef("--%s %q: want UTF-8", flag, name)
		}
	}
	return nil
}

// operate asks for the operation, and ends as it did.
func (f *kvFlags) operate(cmd *cobra.Command) error {
	a := kvapi.Operate(cmd.Context(), f.at, f.r)
	switch {
	case a.Fate != kvapi.Executed || a.Error != "":
		return kvFailed(a)
	case !a.Done:
		return &cli.Status{Code: cli.ExitNot}
	case f.r.Get != nil:
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", a.Value)
		return cli.Exit(cli.ExitInternal, err)
	}
	return nil
}

// kvFailed gives an answer its status.
func kvFailed(a kvapi.Answer) error {
	s := &cli.Status{Code: map[kvapi.Fate]int{
		kvapi.Executed: cli.ExitInternal, kvapi.Lost: cli.ExitLost, kvapi.NotEntered: cli.ExitNotAcquired, kvapi.Refused: cli.ExitUsage,
		kvapi.Unavailable: cli.ExitNoQuorum, kvapi.Unknown: cli.ExitUnknown,
	}[a.Fate], Err: errors.New(a.Error)}
	if s.Code == 0 {
		return &cli.Status{Code: cli.ExitUnknown, Err: fmt.Errorf("the member says %q, which this version does not know", a.Fate)}
	}
	switch a.Fate {
	case kvapi.Unavailable:
		s.Hint = "is poundlock kv serve running there, with this --api, and a majority with it? Nothing was executed"
	case kvapi.Unknown:
		s.Hint = "the operation may have been executed, once: look"
	case kvapi.Lost, kvapi.NotEntered:
		s.Hint = "nothing was executed, so it may be tried again"
	}
	return s
}

func kvGetCommand() *cobra.Command {
	f := &kvFlags{}
	return f.command("get KEY", "Print the value of a key, and a line break", 1, func(args []string) error {
		f.r.Get = &args[0]
		return checkKeys(args[0])
	})
}

func kvPutCommand() *cobra.Command {
	f := &kvFlags{}
	return f.command("put KEY VALUE", "Give a key a value; - is standard input", 2, func(args []string) error {
		value, err := valueOf(args[1])
		f.r.Then = []kv.Pair{{Key: args[0], Value: value}}
		return errors.Join(err, checkKeys(args[0]))
	})
}

func kvDeleteCommand() *cobra.Command {
	f := &kvFlags{}
	return f.command("delete KEY", "Take the value of a key away, if it has one", 1, func(args []string) error {
		f.r.Then = []kv.Pair{{Key: args[0]}}
		return checkKeys(args[0])
	})
}

func kvCasCommand() *cobra.Command {
	f := &kvFlags{}
	var absent bool
	cmd := f.command("cas KEY OLD NEW", "Give a key the value NEW if it has OLD", 3, func(args []string) error {
		value, err := valueOf(args[2])
		old := []byte(args[1])
		if absent {
			if args[1] != "" {
				return fmt.Errorf("--absent and OLD %q exclude each other: want ''", args[1])
			}
			old = nil
		}
		f.r.If, f.r.Then = []kv.Pair{{Key: args[0], Value: old}}, []kv.Pair{{Key: args[0], Value: value}}
		return errors.Join(err, checkKeys(args[0]))
	})
	cmd.Flags().BoolVar(&absent, "absent", false, "if it has none: OLD is ''")
	return cmd
}

func kvTxnCommand() *cobra.Command {
	f := &kvFlags{}
	var where, put, absent, gone []string
	cmd := f.command("txn", "Change several keys at once, if others have these values", 0, func([]string) error {
		var errs []error
		pairs := func(flag string, all []string) (pairs []kv.Pair) {
			for _, text := range all {
				key, value, found := strings.Cut(text, "=")
				if !found {
					errs = append(errs, fmt.Errorf("--%s %q: want KEY=VALUE", flag, text))
				}
				pairs = append(pairs, kv.Pair{Key: key, Value: []byte(value)})
				errs = append(errs, checkKeys(key))
			}
			return pairs
		}
		keys := func(all []string) (pairs []kv.Pair) {
			for _, key := range all {
				pairs = append(pairs, kv.Pair{Key: key})
				errs = append(errs, checkKeys(key))
			}
			return pairs
		}
		f.r.If = append(pairs("if", where), keys(absent)...)
		f.r.Then = append(pairs("put", put), keys(gone)...)
		return errors.Join(errs...)
	})
	s := cmd.Flags()
	s.StringArrayVar(&where, "if", nil, "only if this is so: `KEY=VALUE`; may be given several times, as all of these")
	s.StringArrayVar(&absent, "if-absent", nil, "only if `KEY` has no value")
	s.StringArrayVar(&put, "put", nil, "then this becomes so: `KEY=VALUE`")
	s.StringArrayVar(&gone, "delete", nil, "then `KEY` has no value")
	return cmd
}

// checkKeys refuses what JSON would change.
func checkKeys(key string) error {
	if !utf8.ValidString(key) {
		return fmt.Errorf("key %q: want UTF-8", key)
	}
	return nil
}

// valueOf is the value that an argument says: itself, or for - what standard input has.
func valueOf(arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	value, err := io.ReadAll(io.LimitReader(os.Stdin, sections.MaxOperation+1))
	if err == nil && value == nil {
		value = []byte{}
	}
	return value, err
}

func kvWithCommand() *cobra.Command {
	f := &kvFlags{}
	cmd := &cobra.Command{
		Use:   "with --at unix:/path -- COMMAND [ARG..]",
		Short: "Run COMMAND with the values for itself alone",
		Long: `With enters a section and runs COMMAND, whose poundlock kv get, put, delete, cas and txn are operations
of that section: it has POUNDLOCK_AT and POUNDLOCK_SECTION in its environment. Others wait
meanwhile. Nothing is undone when COMMAND fails or is killed: the section ends, and what was executed
stays.

Exit status: see poundlock kv --help.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 0 || len(args) == 0 {
				return cli.Usagef("with wants two dashes and a command").WithHint("for example: " + cmd.CommandPath() + " -- ./move-shard 7 b")
			}
			if err := f.fill(cmd); err != nil {
				return err
			}
			return f.with(cmd.Context(), args)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *kvFlags) with(ctx context.Context, args []string) error {
	s, a := kvapi.Enter(ctx, f.at, f.r)
	if s == nil {
		return kvFailed(a)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "POUNDLOCK_AT="+f.at, "POUNDLOCK_SECTION="+s.ID)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	err := c.Start()
	if err != nil {
		s.Close()
		code := cli.ExitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code++
		}
		return &cli.Status{Code: code, Err: err}
	}
	go func() {
		for sig := range signals {
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP { // the others come from the terminal, to both
				_ = c.Process.Signal(sig)
			}
		}
	}()
	err = c.Wait()
	signal.Stop(signals)
	close(signals)
	if why, lost := s.Close(); lost {
		return &cli.Status{Code: cli.ExitLost, Err: fmt.Errorf("the section was lost while its command ran: %s", why)}
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			return &cli.Status{Code: 128 + int(w.Signal())}
		}
		return &cli.Status{Code: exit.ExitCode()}
	case err != nil:
		return cli.Exit(cli.ExitError, err)
	}
	return nil
}
