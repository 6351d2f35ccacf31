package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// algorithmFlags are the flags by which commands that drive an algorithm choose
// its form, its size and its options.
type algorithmFlags struct {
	variant        string
	n              int
	clients        int
	defaultClients int  // where there are clients, and nobody says how many
	unlimited      bool // entries may be
	operations     string
	entries        string
	quorum         string
	fence          string
	options        []string
	// short is what flags say that are short for an option, by its name.
	short  map[string]*string
	down   []string
	fifo   string
	memory string
	link   bool
}

func (f *algorithmFlags) register(s *pflag.FlagSet, entries string) {
	f.registerSystem(s)
	s.StringVar(&f.entries, "entries", entries,
		"critical sections: one `number` for all processes or clients, or one for each: N1,N2,..")
	s.StringSliceVar(&f.down, "down", nil, "`names` of servers that are never up, such as s1")
}

// registerSystem registers those that say what runs, and not what users do there.
func (f *algorithmFlags) registerSystem(s *pflag.FlagSet) {
	s.StringVar(&f.variant, "variant", "", "`form` of the algorithm; see: poundlock-lab algorithms")
	s.IntVarP(&f.n, "n", "n", 4, "`number` of processes, or of servers")
	s.IntVar(&f.clients, "clients", 0, "`number` of clients, for client-server algorithms only")
	s.StringVar(&f.quorum, "quorum", "", "two-thirds, majority or a `number` of servers (default the algorithm's)")
	s.StringVar(&f.fence, "fence", "off",
		"`kind` of fencing tokens: off, on, no-floor or piggyback; the last two are unsound, to show why")
	s.StringArrayVar(&f.options, "option", nil,
		"`NAME=VALUE` of an option of the algorithm; a VALUE in ns may be a duration such as 50ms, and one that has a name that name")
	f.short = map[string]*string{}
	f.short["selection"] = s.String("selection", "", "which group is next: short for --option selection=`NAME`, such as fifo")
	f.short["admission"] = s.String("admission", "",
		"which users enter while another group waits: short for --option admission=`NAME`, such as strict")
	s.BoolVar(&f.link, "link", false, "acknowledge messages and send them again, over channels that may lose and repeat them")
	s.StringVar(&f.fifo, "channels", "unordered", "`order` of messages: fifo or unordered (default fifo where the algorithm needs it, otherwise unordered)")
	s.Lookup("channels").DefValue = ""
	s.StringVar(&f.memory, "registers", "", "`kind` of the shared memory, if there is one: atomic or safe (default atomic there)")
}

// registerOperations registers how many operations users issue on a replicated object.
func (f *algorithmFlags) registerOperations(s *pflag.FlagSet, what string) {
	s.StringVar(&f.operations, "operations", "", "operations that a user issues in each section, on a replicated object: one `number` "+what)
}

// read returns the system that the flags say. Numbers of operations may be 0 if least is, and wanted says what
// users want.
func (f *algorithmFlags) read(
	i protocol.Info, given func(flag string) bool, least int, wanted func(func(flag string) bool) (wantFlags, error),
) (s world.System, err error) {
	if s.Config, err = f.system(i, given); err != nil {
		return s, err
	}
	if s.Clients = f.clients; given("clients") && f.clients < 1 && i.Users == protocol.Clients {
		return s, cli.Usagef("--clients %d: want at least 1", f.clients)
	}
	words := map[string]int{"0": 0}
	if f.unlimited {
		words["unlimited"] = world.Unlimited
	}
	if f.entries != "" && (given("entries") || i.Users != protocol.Nobody) {
		if s.Entries, err = counts("entries", f.entries, words); err != nil {
			return s, err
		}
	}
	if given("operations") {
		if delete(words, "unlimited"); least > 0 {
			delete(words, "0")
		}
		if !i.Weak {
			return s, cli.Usagef("--operations %s: %s has no replicated object", f.operations, i.Name)
		}
		if s.Operations, err = counts("operations", f.operations, words); err != nil {
			return s, err
		}
	}
	wants, err := wanted(given)
	if err != nil {
		return s, err
	}
	if s.Wants, err = wants.read(f.users(s, i)); err != nil {
		return s, err
	}
	if s.FIFO, err = f.isFIFO(i, given); err != nil {
		return s, err
	}
	s.Registers = protocol.Semantics(f.memory)
	s.Down, err = f.downIDs(i)
	return s, err
}

// oneAlgorithm checks the arguments of a command whose only one is an algorithm.
func oneAlgorithm(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &cli.Status{
		Code: cli.ExitUsage,
		Err:  fmt.Errorf("%s wants the name of one algorithm, not %d names", cmd.Name(), len(args)),
		Hint: "poundlock-lab algorithms lists them",
	}
}

// find returns the form of the algorithm called name.
func (f *algorithmFlags) find(name string) (catalog.Entry, error) {
	if e := catalog.Find(name, f.variant); e != nil && f.link {
		if err := catalog.Linkable(e); err != nil {
			return nil, cli.Usagef("--link: %s: %w", name, err)
		}
		return e.Link(), nil
	} else if e != nil {
		return e, nil
	}
	var names, variants []string
	for _, e := range catalog.All {
		i := e.Info()
		if i.Variant == "" {
			names = append(names, i.Name)
		} else if i.Name == name {
			variants = append(variants, i.Variant)
		}
	}
	if catalog.Find(name, "") == nil {
		return nil, cli.Unknown(fmt.Errorf("there is no algorithm %q", name), name, names, "poundlock-lab algorithms lists them")
	}
	if len(variants) == 0 {
		return nil, cli.Usagef("%s has no variant %q: it has one form only", name, f.variant)
	}
	err := fmt.Errorf("%s has no variant %q; it has %s", name, f.variant, strings.Join(variants, ", "))
	return nil, cli.Unknown(err, f.variant, variants, "poundlock-lab algorithms says what each is")
}

// system returns what all processes share. Fencing is off unless asked for.
func (f *algorithmFlags) system(i protocol.Info, given func(flag string) bool) (protocol.Config, error) {
	if !given("n") {
		f.n = i.Fit(f.n)
	}
	c := protocol.Config{N: f.n, Options: map[string]int64{}}
	if f.n < 1 {
		return c, cli.Usagef("-n %d: want at least 1", f.n)
	}
	option := func(name string) (protocol.Option, error) {
		var have []string
		for _, o := range i.Options {
			if o.Name == name {
				return o, nil
			}
			have = append(have, o.Name)
		}
		form := i.Name
		if i.Variant != "" {
			form += " --variant " + i.Variant
		}
		if len(have) == 0 {
			return protocol.Option{}, cli.Usagef("%s has no option %s, nor any other", form, name)
		}
		err := fmt.Errorf("%s has no option %s; it has %s", form, name, strings.Join(have, ", "))
		return protocol.Option{}, cli.Unknown(err, name, have, "docs/algorithms.md says what each is")
	}
	type choice struct{ name, value, typed string }
	var all []choice
	for _, text := range f.options {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return c, cli.Usagef("--option %q: want NAME=VALUE with a number or a duration", text)
		}
		all = append(all, choice{name, value, fmt.Sprintf("--option %q", text)})
	}
	for _, name := range slices.Sorted(maps.Keys(f.short)) {
		if value := *f.short[name]; given(name) {
			all = append(all, choice{name, value, fmt.Sprintf("--%s %q", name, value)})
		}
	}
	if given("quorum") {
		size, err := f.quorumSize()
		if err != nil {
			return c, err
		}
		all = append(all, choice{"quorum", strconv.FormatInt(size, 10), fmt.Sprintf("--quorum %q", f.quorum)})
	}
	fence := slices.Index([]string{"off", "on", "no-floor", "piggyback"}, f.fence)
	if fence < 0 {
		return c, cli.Usagef("--fence %q: want off, on, no-floor or piggyback", f.fence)
	}
	if given("fence") {
		all = append(all, choice{"fence", strconv.Itoa(fence), fmt.Sprintf("--fence %q", f.fence)})
	} else if slices.ContainsFunc(i.Options, func(o protocol.Option) bool { return o.Name == "fence" }) {
		c.Options["fence"] = int64(fence) // unless an option says something else
	}
	for k, x := range all {
		o, err := option(x.name)
		if err != nil {
			return c, err
		}
		if before := slices.IndexFunc(all[:k], func(y choice) bool { return y.name == x.name }); before >= 0 {
			return c, cli.Usagef("%s and %s are about one option; give it once", all[before].typed, x.typed)
		}
		if c.Options[x.name], err = optionValue(o, x.value, x.typed); err != nil {
			return c, err
		}
	}
	return c, nil
}

// optionValue reads a value of an option. flag is what was typed.
func optionValue(o protocol.Option, text, flag string) (int64, error) {
	if k := slices.Index(o.Values, text); k >= 0 {
		return int64(k), nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return v, nil
	case o.Values != nil:
		return 0, cli.Usagef("%s: want one of %s", flag, strings.Join(o.Values, ", "))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, cli.Usagef("%s: want NAME=VALUE with a number or a duration", flag)
	}
	return d.Nanoseconds(), nil
}

func (f *algorithmFlags) quorumSize() (int64, error) {
	switch f.quorum {
	case "two-thirds":
		return int64(quorum.TwoThirds(f.n)), nil
	case "majority":
		return int64(quorum.Majority(f.n)), nil
	}
	m, err := strconv.Atoi(f.quorum)
	if err != nil || m < 1 || m > f.n {
		return 0, cli.Usagef("--quorum %q: want two-thirds, majority or a number from 1 to %d", f.quorum, f.n)
	}
	return int64(m), nil
}

// names names the processes of an algorithm of that size.
func (f *algorithmFlags) names(i protocol.Info) scenario.Names {
	return scenario.Names{Members: f.n, Clients: i.Users == protocol.Clients}
}

// users are the names of those who try.
func (f *algorithmFlags) users(s world.System, i protocol.Info) (list []string) {
	if s.Clients == 0 {
		s.Clients = f.defaultClients
	}
	first, k := s.Users(i)
	for u := range k {
		list = append(list, s.Names(i).Of(protocol.ID(first+u)))
	}
	return list
}

// downIDs returns the members that are never up.
func (f *algorithmFlags) downIDs(i protocol.Info) ([]protocol.ID, error) {
	var ids []protocol.ID
	for _, name := range f.down {
		id, err := f.names(i).ID(name)
		if err != nil {
			return nil, cli.Usagef("--down: %w", err)
		}
		if id >= protocol.ID(f.n) {
			return nil, cli.Usagef("--down %s: only a server can be down", name)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// isFIFO says whether channels are FIFO: as chosen, and where nothing was
// chosen as the algorithm needs.
func (f *algorithmFlags) isFIFO(i protocol.Info, given func(flag string) bool) (bool, error) {
	if i.Registers != nil && given("channels") {
		return false, cli.Usagef("--channels %s: %s has none: %w", f.fifo, i.Name, protocol.ErrRegisters)
	}
	switch f.fifo {
	case "fifo":
		return true, nil
	case "unordered":
		if i.FIFO && given("channels") {
			return false, cli.Usagef("--channels unordered: %s needs fifo", i.Name)
		}
		return i.FIFO, nil
	}
	return false, cli.Usagef("--channels %q: want fifo or unordered", f.fifo)
}

// counts reads N or N1,N2,..; special gives the value of a word, as unlimited.
func counts(flag, text string, special map[string]int) ([]int, error) {
	var ns []int
	for _, part := range strings.Split(text, ",") {
		if v, ok := special[part]; ok {
			ns = append(ns, v)
			continue
		}
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			what := "a number of at least 1"
			for _, word := range slices.Sorted(maps.Keys(special)) {
				what += ", or " + word
			}
			return nil, cli.Usagef("--%s %q: %q is not %s", flag, text, part, what)
		}
		ns = append(ns, v)
	}
	return ns, nil
}

// modelHint is the way out where channels are to lose or repeat messages of an algorithm
// that cannot bear it, or where there is no property of some name, and "" elsewhere.
func modelHint(err error) string {
	var property *check.PropertyError
	switch {
	case errors.Is(err, protocol.ErrReliable):
		return "--link runs it over such channels, with acknowledgements"
	case errors.Is(err, protocol.ErrRegisters):
		return "leave out what is about messages; --registers atomic or safe says how its memory behaves"
	case errors.Is(err, causal.ErrMemory):
		return "--property bypass counts how often others enter first; bakery-messages is the bakery over messages, and has an order"
	case errors.As(err, &property):
		return cli.Meant(property.Name, property.Known, "docs/verification.md, Properties, says what each means")
	}
	return ""
}
