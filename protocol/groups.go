package protocol

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
)

// A Group is what the holders of a group lock have in common: those of one group share
// the critical section. The empty Group is that of plain mutual exclusion, whose holder
// shares with nobody.
//
// A group whose name begins with Alone is exclusive: it is unique to its grant, and its
// holder shares with nobody either. A writer wants one, and readers share one that is
// not.
type Group string

const (
	// Alone marks exclusive groups.
	Alone = "!"
	// Keep marks exclusive groups whose holder wants to hear that somebody waits: see Out.Wanted. Its token is the first one of
	// KeptTokens that nobody else has, so that it may pass the lock on without asking anybody, with the next token each time.
	Keep = Alone + Alone
)

// KeptTokens is how many fencing tokens, one after the other, the holder of a group marked with Keep has.
const KeptTokens = 1e6

// Groups are those of which a user wants any one: their names, each once, in order of preference, with commas between them.
// An algorithm may know no preference, and take any. No groups are the request of plain mutual exclusion.
type Groups string

const between = ","

// CritIn lets the user in, into group g, with a fencing token (0: none).
func (o *Out[M]) CritIn(g Group, token uint64) {
	e := o.effect(Crit)
	e.Arg, e.Data = token, string(g)
}

// Downgrade is the event that a user who is inside alone shares from now on with those of a group, Data. Nobody gets in
// between, and its token stays. Only where Info.Shares.
const Downgrade Kind = 15

// NewDowngrade is the event that a user comes down to group g.
func NewDowngrade(g Group) Input { return Input{Kind: Downgrade, Data: string(g)} }

// Below is the group that holders of an exclusive one come down to in checks: r for !r and for !!r, "" for others.
func (g Group) Below() Group {
	if !g.Exclusive() {
		return ""
	}
	return Group(strings.TrimLeft(string(g), Alone))
}

// Lowers reports whether a user who wants one of the set may get a group with another one below it.
func (s Groups) Lowers() bool {
	for g := range s.All() {
		if g.Below() != "" {
			return true
		}
	}
	return false
}

// Wanted is the effect that tells a user who shares or keeps, or is about to, that somebody waits who does not share with it:
// where Info.Tells.
const Wanted Do = 20

// Wanted tells the user that somebody waits who does not share with it. It may come before Crit, and more than once.
func (o *Out[M]) Wanted() { o.effect(Wanted) }

// ErrGroups is wrapped by errors that say that a text is no list of groups.
var ErrGroups = errors.New("bad groups")

// ParseGroups returns the groups that a text names. Of a name that comes again the first place counts.
func ParseGroups(text string) (Groups, error) {
	var list []string
	for name := range strings.SplitSeq(text, between) {
		bare, keeps := strings.CutPrefix(name, Keep)
		if !keeps {
			bare = strings.TrimPrefix(name, Alone)
		}
		if bare == "" || strings.HasPrefix(bare, Alone) || strings.ContainsFunc(bare, unprintable) {
			return "", fmt.Errorf("%w %q: want names of letters, digits or signs with commas between them, such as a,b; %s before an exclusive one", ErrGroups, text, Alone)
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return Groups(strings.Join(list, between)), nil
}

// Share says whether users of a run want groups, where they may choose: see Info.Shares.
func (i *Info) Share(wanted bool) {
	if i.Shares {
		i.Grouped = wanted
	}
}

// Wanted is ParseGroups of what users of the algorithm want at a time.
func (i Info) Wanted(text string) (Groups, error) {
	set, err := ParseGroups(text)
	if err == nil && set.Len() > 1 && !i.Several {
		err = fmt.Errorf("groups %q: its users want one group at a time", set)
	}
	return set, err
}

// unprintable reports whether r would break a line or a list. A bar separates sets.
func unprintable(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '|' || r == '=' || r == '#'
}

// Exclusive reports whether a holder of g shares with nobody.
func (g Group) Exclusive() bool { return g == "" || strings.HasPrefix(string(g), Alone) }

// Keeps reports whether a holder of g is marked with Keep.
func (g Group) Keeps() bool { return strings.HasPrefix(string(g), Keep) }

// Shares reports whether a holder of g may be inside together with one of h.
func (g Group) Shares(h Group) bool { return g == h && !g.Exclusive() }

// Has reports whether g is one of them.
func (s Groups) Has(g Group) bool {
	if len(s) == len(g) {
		for i := range len(g) { // names are short
			if s[i] != g[i] || g[i] == between[0] {
				return false
			}
		}
		return true
	}
	for other := range s.All() {
		if other == g {
			return true
		}
	}
	return false
}

// All yields the groups, in order; where there are none the empty group.
func (s Groups) All() iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for rest, more := string(s), true; more; {
			var name string
			if name, rest, more = strings.Cut(rest, between); !yield(Group(name)) {
				return
			}
		}
	}
}

// Len is how many groups All yields.
func (s Groups) Len() int { return 1 + strings.Count(string(s), between) }
