package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
)

// clusterFlags are the flags of the commands that talk to a cluster. Each can
// also stand in the environment (POUNDLOCK_CLOCK_BOUND for --clock-bound) and in
// the file of --config (clock-bound: 50ms); a flag beats the environment, which
// beats the file.
type clusterFlags struct {
	file       string
	servers    string
	epoch      uint64
	clockBound time.Duration
	noAmnesia  bool
	tlsCert    string
	tlsKey     string
	tlsCA      string
	tlsName    string
	log        *slog.Logger // of what happens to certificates; nil: errors, to stderr
	store      *certs.Store // once TLS is configured
	dev        bool         // of some commands: this user's development cluster instead
}

func (f *clusterFlags) register(s *pflag.FlagSet) {
	f.registerFile(s)
	s.StringVar(&f.servers, "servers", "", "all servers of the cluster: `NAME=HOST:PORT,...` or NAME=unix:/path")
	s.Uint64Var(&f.epoch, "epoch", 0, "`number` of the slot table, which grows with each change of an address; servers refuse older ones")
	s.DurationVar(&f.clockBound, "clock-bound", slots.DefaultClockBound, "distance of every clock from real time, at most 1s")
	s.BoolVar(&f.noAmnesia, "no-amnesia", false, "allow fewer than 4 servers: no server may lose its memory")
	f.registerTLS(s)
}

func (f *clusterFlags) registerFile(s *pflag.FlagSet) {
	s.StringVar(&f.file, "config", "", "YAML `file` with the names of flags as keys")
}

func (f *clusterFlags) registerTLS(s *pflag.FlagSet) {
	s.StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` with the certificate of this process")
	s.StringVar(&f.tlsKey, "tls-key", "", "PEM `file` with its private key")
	s.StringVar(&f.tlsCA, "tls-ca", "", "PEM `file` with the authorities that sign the other side's certificates")
	s.StringVar(&f.tlsName, "tls-server-name", "",
		"`name` in the servers' certificates (default the host of each address; of a unix socket, the server's name)")
}

func (f *clusterFlags) registerDev(s *pflag.FlagSet, usage string) {
	s.BoolVar(&f.dev, "dev", false, usage)
}

// notForDev are the flags that do not concern the development cluster.
var notForDev = []string{
	"servers", "epoch", "clock-bound", "no-amnesia", "tls-cert", "tls-key", "tls-ca", "tls-server-name",
}

// fillDev fills f, and refuses --dev with a flag of the command line that it would
// ignore. --servers there beats a --dev of the environment or the file.
func (f *clusterFlags) fillDev(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	dev, servers := given("dev"), given("servers")
	ignored := slices.IndexFunc(notForDev, given) // now: fill changes what is given
	if err := f.fill(cmd); err != nil {
		return err
	}
	f.dev = f.dev && (dev || !servers)
	if f.dev && ignored >= 0 {
		return cli.Usagef("--dev and --%s exclude each other: the development cluster has settings of its own", notForDev[ignored])
	}
	return nil
}

// fill sets the flags that were not given from the environment and the file. It
// may be called again.
func (f *clusterFlags) fill(cmd *cobra.Command) error {
	known := settings(cmd.Root())
	if err := fillFrom(cmd, known, environment(), "environment variable "); err != nil {
		return err
	}
	if f.file == "" {
		return nil
	}
	values, err := readConfigFile(f.file)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	return fillFrom(cmd, known, values, f.file+": ")
}

// config fills f and returns how to reach the cluster.
func (f *clusterFlags) config(cmd *cobra.Command) (poundlock.Config, error) {
	if err := f.fill(cmd); err != nil {
		return poundlock.Config{}, err
	}
	if f.servers == "" { // a hint, and never a lock that nobody shares
		hint := "name a cluster with --servers NAME=HOST:PORT,... or POUNDLOCK_SERVERS"
		if cmd.Flags().Lookup("dev") != nil {
			hint += ", or use --dev for a cluster of your own on this machine"
		}
		return poundlock.Config{}, cli.Usagef("no servers given").WithHint(hint)
	}
	table, err := slots.Parse(f.servers)
	if err == nil {
		table, err = slots.Check(table, f.noAmnesia)
	}
	if err != nil {
		s := cli.Usagef("--servers: %w", err)
		if errors.Is(err, slots.ErrTooFew) {
			s.Hint = "with --no-amnesia the operator promises that no server ever loses its memory"
		}
		return poundlock.Config{}, s
	}
	if f.clockBound <= 0 || f.clockBound > slots.MaxClockBound {
		return poundlock.Config{}, cli.Usagef("--clock-bound %v: want more than 0 and at most %v", f.clockBound, slots.MaxClockBound)
	}
	c := poundlock.Config{Servers: table, Epoch: f.epoch, ClockBound: f.clockBound, NoAmnesia: f.noAmnesia}
	if c.TLS, err = f.clientTLS(); err != nil {
		return poundlock.Config{}, cli.Exit(cli.ExitUsage, err)
	}
	return c, nil
}

const envPrefix = "POUNDLOCK_"

// environment returns the POUNDLOCK_* variables by the name of their flag. Not
// among them are what lock gives to its child (a flag --name or --token of a
// process inside a lock is not meant) and the variables of tests.
func environment() map[string]string {
	values := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		k, ok := strings.CutPrefix(k, envPrefix)
		if !ok || k == "FULL" || strings.HasPrefix(k, "TEST_") {
			continue
		}
		values[strings.ReplaceAll(strings.ToLower(k), "_", "-")] = v
	}
	if _, inside := values["holder"]; inside {
		for _, name := range []string{"name", "token", "holder", "group"} {
			delete(values, name)
		}
	}
	return values
}

// readConfigFile reads a mapping of scalars; a list of scalars is joined by
// commas, so that servers can stand one in a line.
func readConfigFile(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(text, &nodes); err != nil {
		return nil, fmt.Errorf("--config: %s: %w", path, err)
	}
	values := map[string]string{}
	for key, n := range nodes {
		scalars := []*yaml.Node{&n}
		if n.Kind == yaml.SequenceNode {
			scalars = n.Content
		}
		var parts []string
		for _, s := range scalars {
			if s.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("--config: %s:%d: %s: want a value or a list of values", path, n.Line, key)
			}
			parts = append(parts, s.Value)
		}
		values[key] = strings.Join(parts, ",")
	}
	return values, nil
}

// settings are the names of the flags of all commands that take --config:
// one file and one environment serve them all.
func settings(root *cobra.Command) map[string]bool {
	known := map[string]bool{}
	cli.EachCommand(root, func(c *cobra.Command) {
		if !c.Hidden && c.Flags().Lookup("config") != nil {
			c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
	})
	known["at"], known["section"] = true, true // of poundlock kv: the command of kv with finds them in its environment
	delete(known, "help")
	return known
}

// rivals are flags that exclude each other. One source beats another for all of them, as for one flag: with --shared
// a --group of the environment does not count.
var rivals = [][]string{{"try", "wait"}, {"shared", "exclusive", "group", "semaphore"}, {"semaphore", "head-start"}}

// given are those of some flags of cmd that were set, and not to false.
func given(cmd *cobra.Command, names []string) (set []*pflag.Flag) {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "false" {
			set = append(set, f)
		}
	}
	return set
}

// checkRivals refuses flags that exclude each other.
func checkRivals(cmd *cobra.Command) error {
	for _, names := range rivals {
		if set := given(cmd, names); len(set) > 1 {
			return cli.Usagef("%s and %s exclude each other", asGiven(set[0]), asGiven(set[1]))
		}
	}
	return nil
}

// asGiven is a flag with its value.
func asGiven(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "--" + f.Name
	case "string":
		return fmt.Sprintf("--%s %q", f.Name, f.Value)
	}
	return fmt.Sprintf("--%s %v", f.Name, f.Value)
}

// fillFrom sets the flags of cmd that values names, unless they or rivals of them were set before. A
// name that is no setting is an error: a misspelt one must not be ignored.
func fillFrom(cmd *cobra.Command, known map[string]bool, values map[string]string, source string) error {
	show := func(key string) string { return key }
	if strings.HasPrefix(source, "environment") {
		show = func(key string) string { return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_")) }
	}
	beaten := map[string]bool{}
	for _, names := range rivals {
		for _, name := range names {
			beaten[name] = len(given(cmd, names)) > 0
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		shown := show(key)
		if !known[key] {
			return cli.Usagef("%s%s: no flag has this name", source, shown).WithHint(meantSetting(cmd, known, key, show))
		}
		flag := cmd.Flags().Lookup(key)
		if flag == nil || flag.Changed || beaten[key] {
			continue
		}
		if err := cmd.Flags().Set(key, values[key]); err != nil {
			return cli.Usagef("%s%s: %w", source, shown, cli.FlagError(err))
		}
	}
	return nil
}

// meantSetting is a hint about a key that is no setting: one of the flags of cmd may be
// meant, or else one of another command.
func meantSetting(cmd *cobra.Command, known map[string]bool, key string, show func(string) string) string {
	found := cli.Nearest(key, slices.DeleteFunc(cli.FlagNames(cmd), func(name string) bool { return !known[name] }))
	if len(found) == 0 {
		found = cli.Nearest(key, slices.Sorted(maps.Keys(known)))
	}
	if len(found) == 0 {
		return "the names are those of flags: " + cmd.CommandPath() + " --help lists them"
	}
	for i, name := range found {
		found[i] = show(name)
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(found, " or "))
}
