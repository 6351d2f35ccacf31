package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
// its form, its size and its options, and what its users do.
type algorithmFlags struct {
	set            *pflag.FlagSet // which has them
	variant        string
	n              int
	clients        int
	defaultClients int  // where there are clients, and nobody says how many
	unlimited      bool // entries may be
	drawn          bool // what nobody says is, and so are users, so that nobody can name them
	operations     string
	entries        string
	options        []string
	short          map[string]*string // flags that are short for an option, by its name
	down           []string
	fifo           string
	memory         string
	link           bool

	// What users of a group algorithm want: sets of groups, among which each try chooses one.
	sets         []string
	alternatives int               // in place of sets: each try wants one of so many groups
	others       []protocol.Groups // of users that sets do not name; nil: they have to name all, if any
}

func (f *algorithmFlags) given(flag string) bool { return f.set.Changed(flag) }

func (f *algorithmFlags) register(s *pflag.FlagSet, entries string) {
	f.registerSystem(s)
	s.StringVar(&f.entries, "entries", entries,
		"critical sections: one `number` for all processes or clients, or one for each: N1,N2,..")
	s.StringSliceVar(&f.down, "down", nil, "`names` of servers that are never up, such as s1")
}

// registerSystem registers those that say what runs, and not what users do there.
func (f *algorithmFlags) registerSystem(s *pflag.FlagSet) {
	f.set, f.short = s, map[string]*string{}
	s.StringVar(&f.variant, "variant", "", "`form` of the algorithm; see: poundlock-lab algorithms")
	s.IntVarP(&f.n, "n", "n", 4, "`number` of processes, or of servers")
	s.IntVar(&f.clients, "clients", 0, "`number` of clients, for client-server algorithms only")
	f.short["quorum"] = s.String("quorum", "", "two-thirds, majority or a `number` of servers (default the algorithm's)")
	f.short["fence"] = s.String("fence", "off",
		"`kind` of fencing tokens: off, on, no-floor or piggyback; the last two are unsound, to show why")
	s.StringArrayVar(&f.options, "option", nil,
		"`NAME=VALUE` of an option of the algorithm; a VALUE in ns may be a duration such as 50ms, and one that has a name that name")
	f.short["selection"] = s.String("selection", "", "which group is next: short for --option selection=`NAME`, such as fifo")
	f.short["admission"] = s.String("admission", "",
		"which users enter while another group waits: short for --option admission=`NAME`, such as strict")
	s.BoolVar(&f.link, "link", false, "acknowledge messages and send them again, over channels that may lose and repeat them")
	s.StringVar(&f.fifo, "channels", "unordered", "`order` of messages: fifo or unordered (default fifo where the algorithm needs it, otherwise unordered)")
	s.Lookup("channels").DefValue = ""
	s.StringVar(&f.memory, "registers", "", "`kind` of the shared memory, if there is one: atomic or safe (default atomic there)")
}

func (f *algorithmFlags) registerWants(s *pflag.FlagSet, groups, sets string) {
	f.others = check.DefaultWants
	s.IntVar(&f.alternatives, "groups", 0, "`number` of groups, where users want groups: each try wants one of 1, 2, .. "+groups)
	s.StringArrayVar(&f.sets, "wants", nil, sets)
}

// registerOperations registers how many operations users issue on a replicated object.
func (f *algorithmFlags) registerOperations(s *pflag.FlagSet, what string) {
	s.StringVar(&f.operations, "operations", "", "operations that a user issues in each section, on a replicated object: one `number` "+what)
}

func (f *algorithmFlags) read(i protocol.Info) (s world.System, err error) {
	if s.Config, err = f.system(i); err != nil {
		return s, err
	}
	if s.Clients = f.clients; f.given("clients") && f.clients < 1 && i.Users == protocol.Clients {
		return s, cli.AtLeast("--clients", f.clients, 1)
	}
	words := map[string]int{"0": 0}
	if f.unlimited {
		words["unlimited"] = world.Unlimited
	}
	if f.entries != "" && (f.given("entries") || i.Users != protocol.Nobody) {
		if s.Entries, err = counts("entries", f.entries, words); err != nil {
			return s, err
		}
	}
	if f.given("operations") {
		if delete(words, "unlimited"); f.drawn {
			delete(words, "0")
		}
		if !i.Weak {
			return s, cli.Usagef("--operations %s: %s has no replicated object", f.operations, i.Name)
		}
		if s.Operations, err = counts("operations", f.operations, words); err != nil {
			return s, err
		}
	}
	if s.Wants, err = f.wants(f.users(s, i)); err != nil {
		return s, err
	}
	if s.FIFO, err = f.isFIFO(i); err != nil {
		return s, err
	}
	s.Registers = protocol.Semantics(f.memory)
	s.Down, err = f.downIDs(i)
	return s, err
}

// wants returns what each of the users chooses from, or one list for all; nil: nobody says anything.
func (f *algorithmFlags) wants(users []string) (each [][]protocol.Groups, err error) {
	all := f.sets
	if f.others != nil && f.given("groups") {
		if f.given("wants") {
			return nil, cli.Usagef("--groups %d and --wants %q say both what users want: give one of them", f.alternatives, f.sets[0])
		}
		if err := cli.AtLeast("--groups", f.alternatives, 1); err != nil {
			return nil, err
		}
		var numbers []string
		for k := range f.alternatives {
			numbers = append(numbers, strconv.Itoa(k+1))
		}
		all = []string{strings.Join(numbers, "|")}
	}
	if len(all) == 0 {
		return nil, nil
	}
	own := map[string][]protocol.Groups{}
	for _, text := range all {
		name, sets, one := strings.Cut(text, "=")
		switch {
		case !one:
			name, sets = "", text
		case len(users) == 0:
			return nil, cli.Usagef("--wants %q: it is an election, and has no users", text)
		case f.drawn:
			return nil, cli.Usagef("--wants %q: users are drawn: want a SET for all, without USER=", text)
		case !slices.Contains(users, name):
			return nil, cli.Usagef("--wants %q: no user %q: users are %s to %s", text, name, users[0], users[len(users)-1])
		}
		own[name] = nil
		for set := range strings.SplitSeq(sets, "|") {
			groups, err := protocol.ParseGroups(set)
			if err != nil {
				return nil, cli.Usagef("--wants %q: %w", text, err)
			}
			own[name] = append(own[name], groups)
		}
	}
	others, rest := own[""]
	if !rest {
		others = f.others
	} else if len(own) == 1 {
		return [][]protocol.Groups{others}, nil
	}
	for _, name := range users {
		list, named := own[name]
		if !named {
			list = others
		}
		if list == nil {
			return nil, cli.Usagef("--wants: it does not say what %s wants: want a SET for all, too", name)
		}
		each = append(each, list)
	}
	return each, nil
}

// oneAlgorithm checks the arguments of a command whose only one is an algorithm.
var oneAlgorithm = oneOf("algorithm", "poundlock-lab algorithms lists them")

// oneOf checks the arguments of a command whose only one is a name of what is listed somewhere.
func oneOf(what, listed string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return cli.Usagef("%s wants the name of one %s, not %d names", cmd.Name(), what, len(args)).WithHint(listed)
	}
}

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

// system returns what all processes share. Fencing is off unless asked for, or drawn.
func (f *algorithmFlags) system(i protocol.Info) (protocol.Config, error) {
	if !f.given("n") {
		f.n = i.Fit(f.n)
	}
	c := protocol.Config{N: f.n, Options: map[string]int64{}}
	if err := cli.AtLeast("-n", f.n, 1); err != nil {
		return c, err
	}
	form := i.Name
	if i.Variant != "" {
		form += " --variant " + i.Variant
	}
	var all []cli.Option
	for _, text := range f.options {
		x, err := cli.OptionFlag(text)
		if err != nil {
			return c, err
		}
		all = append(all, x)
	}
	for _, name := range slices.Sorted(maps.Keys(f.short)) {
		if !f.given(name) {
			continue
		}
		value, err := f.ofShort(name)
		if err != nil {
			return c, err
		}
		all = append(all, cli.Option{Name: name, Value: value, Typed: fmt.Sprintf("--%s %q", name, *f.short[name])})
	}
	if !f.drawn && slices.ContainsFunc(i.Options, func(o protocol.Option) bool { return o.Name == "fence" }) {
		c.Options["fence"] = 0 // unless an option says something else
	}
	return c, cli.SetOptions(c.Options, form, i.Options, all)
}

// ofShort is the value that a flag gives to the option that it is short for.
func (f *algorithmFlags) ofShort(flag string) (string, error) {
	text := *f.short[flag]
	switch {
	case flag == "fence":
		k := slices.Index([]string{"off", "on", "no-floor", "piggyback"}, text)
		if k < 0 {
			return "", cli.Usagef("--fence %q: want off, on, no-floor or piggyback", text)
		}
		return strconv.Itoa(k), nil
	case flag == "quorum" && text == "two-thirds":
		return strconv.Itoa(quorum.TwoThirds(f.n)), nil
	case flag == "quorum" && text == "majority":
		return strconv.Itoa(quorum.Majority(f.n)), nil
	case flag == "quorum":
		if m, err := strconv.Atoi(text); err != nil || m < 1 || m > f.n {
			return "", cli.Usagef("--quorum %q: want two-thirds, majority or a number from 1 to %d", text, f.n)
		}
	}
	return text, nil
}

func (f *algorithmFlags) names(i protocol.Info) scenario.Names {
	return scenario.Names{Members: f.n, Clients: i.Users == protocol.Clients}
}

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
func (f *algorithmFlags) isFIFO(i protocol.Info) (bool, error) {
	if i.Registers != nil && f.given("channels") {
		return false, cli.Usagef("--channels %s: %s has none: %w", f.fifo, i.Name, protocol.ErrRegisters)
	}
	switch f.fifo {
	case "fifo":
		return true, nil
	case "unordered":
		if i.FIFO && f.given("channels") {
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
