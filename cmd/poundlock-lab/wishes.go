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

// wishFlags are the alternatives of users of a group algorithm, among which each try
// chooses one, in a check.
type wishFlags struct {
	alternatives int
	sets         []string
}

func (f *wishFlags) register(s *pflag.FlagSet) {
	s.IntVar(&f.alternatives, "groups", 0, "`number` of groups, where users want groups: each try wants one of 1, 2, .. (default 2 there)")
	s.StringArrayVar(&f.sets, "wants", nil,
		"`[USER=]SET|..` of groups, among which each try of all users chooses, or of one, such as p1=a,b|!w; ! before a group that is exclusive")
}

// everybody are the alternatives that the flags name for all users, nil: they do not.
func (f *wishFlags) everybody(given func(flag string) bool) (list []protocol.Groups, err error) {
	switch {
	case given("groups") && given("wants"):
		return nil, cli.Usagef("--groups %d and --wants %q say both what users want: give one of them", f.alternatives, f.sets[0])
	case given("groups") && f.alternatives < 1:
		return nil, cli.Usagef("--groups %d: want at least 1", f.alternatives)
	}
	for k := range f.alternatives {
		list = append(list, protocol.Groups(strconv.Itoa(k+1)))
	}
	for _, text := range f.sets {
		if strings.Contains(text, "=") {
			continue
		}
		if list, err = alternativeSets(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// shared are the alternatives that the flags name for all users, where users are drawn.
func (f *wishFlags) shared(given func(flag string) bool) ([]protocol.Groups, error) {
	for _, text := range f.sets {
		if strings.Contains(text, "=") {
			return nil, cli.Usagef("--wants %q: users are drawn: want a SET for all, without USER=", text)
		}
	}
	return f.everybody(given)
}

func alternativeSets(text string) (list []protocol.Groups, err error) {
	for one := range strings.SplitSeq(text, "|") {
		set, err := protocol.ParseGroups(one)
		if err != nil {
			return nil, cli.Usagef("--wants %q: %w", text, err)
		}
		list = append(list, set)
	}
	return list, nil
}

// wishes are the alternatives of each of the users, or one list for all.
func (f *wishFlags) wishes(users []string, given func(flag string) bool) ([][]protocol.Groups, error) {
	all, err := f.everybody(given)
	if err != nil || all == nil && len(f.sets) == 0 {
		return nil, err
	}
	if all == nil {
		all = check.DefaultWants
	}
	each, own := slices.Repeat([][]protocol.Groups{all}, len(users)), false
	for _, text := range f.sets {
		name, sets, one := strings.Cut(text, "=")
		if !one {
			continue
		}
		u := slices.Index(users, name)
		if u < 0 {
			return nil, cli.Usagef("--wants %q: no user %q: users are %s to %s", text, name, users[0], users[len(users)-1])
		}
		if each[u], err = alternativeSets(sets); err != nil {
			return nil, err
		}
		own = true
	}
	if own {
		return each, nil
	}
	return each[:1], nil
}
