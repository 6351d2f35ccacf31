package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// wantFlags are the alternatives of users of a group algorithm, among which each try chooses one.
type wantFlags struct {
	sets   []string
	others []protocol.Groups // of who is not named; nil: each has to be, if somebody is
	drawn  bool              // users are, so that nobody can be named
}

// read returns the alternatives of each of the users, or one list for all; nil: nobody says anything.
func (f *wantFlags) read(users []string) (each [][]protocol.Groups, err error) {
	if len(f.sets) == 0 {
		return nil, nil
	}
	own := map[string][]protocol.Groups{}
	for _, text := range f.sets {
		name, sets, one := strings.Cut(text, "=")
		switch {
		case !one:
			name, sets = "", text
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
	others, all := own[""]
	if !all {
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

// wanted is what the flags say.
func (f *wantFlags) wanted(func(flag string) bool) (wantFlags, error) { return *f, nil }

// wishFlags are what users want in a check, or a hunt.
type wishFlags struct {
	wantFlags
	alternatives int
}

func (f *wishFlags) register(s *pflag.FlagSet) {
	f.others = check.DefaultWants
	s.IntVar(&f.alternatives, "groups", 0, "`number` of groups, where users want groups: each try wants one of 1, 2, .. (default 2 there)")
	s.StringArrayVar(&f.sets, "wants", nil,
		"`[USER=]SET|..` of groups, among which each try of all users chooses, or of one, such as p1=a,b|!w; ! before a group that is exclusive")
}

// wanted is what the flags say.
func (f *wishFlags) wanted(given func(flag string) bool) (wantFlags, error) {
	switch {
	case !given("groups"):
		return f.wantFlags, nil
	case given("wants"):
		return f.wantFlags, cli.Usagef("--groups %d and --wants %q say both what users want: give one of them", f.alternatives, f.sets[0])
	case f.alternatives < 1:
		return f.wantFlags, cli.Usagef("--groups %d: want at least 1", f.alternatives)
	}
	var sets []string
	for k := range f.alternatives {
		sets = append(sets, strconv.Itoa(k+1))
	}
	return wantFlags{sets: []string{strings.Join(sets, "|")}}, nil
}
