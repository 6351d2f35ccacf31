package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	for text, want := range map[string]Groups{"a": "a", "b,a": "b,a", "b,a,b": "b,a", "!w": "!w", "r,!w": "r,!w", "10,9": "10,9"} {
		s, err := ParseGroups(text)
		if err != nil || s != want {
			t.Errorf("%q: %q, %v; want %q", text, s, err, want)
		}
		all := slices.Collect(s.All())
		if len(all) != s.Len() {
			t.Errorf("%q: %d groups, of %q", text, s.Len(), all)
		}
		for _, g := range all {
			if !s.Has(g) {
				t.Errorf("%q has no %q", s, g)
			}
		}
		if s.Has("") || s.Has("a,b") || s.Has("c") {
			t.Errorf("%q has what it has not", s)
		}
	}
	for _, text := range []string{"", ",", "a,", "a b", "!", "!!", "!!!a", "a|b", "a\n", "a,,b", "#1", "p1=a"} {
		if s, err := ParseGroups(text); !errors.Is(err, ErrGroups) {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
	if one := slices.Collect(Groups("").All()); !slices.Equal(one, []Group{""}) || !Groups("").Has("") {
		t.Errorf("no group: %q", one)
	}
}

func TestShares(t *testing.T) {
	for _, x := range []struct {
		g, h Group
		want bool
	}{{"a", "a", true}, {"a", "b", false}, {"!a", "!a", false}, {"", "", false}, {"a", "!a", false}} {
		if got := x.g.Shares(x.h); got != x.want {
			t.Errorf("%q and %q share: %v", x.g, x.h, got)
		}
	}
}

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		several bool
		text    string
		want    Groups
		err     string
	}{
		{false, "a", "a", ""},
		{false, "a,a", "a", ""},
		{true, "b,a", "b,a", ""},
		{false, "b,a", "b,a", `groups "b,a": its users want one group at a time`},
		{true, "a,", "", `bad groups "a,"`},
	} {
		got, err := Info{Several: c.several}.Wanted(c.text)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("several %v, %q: %q, %v; want %q, %s", c.several, c.text, got, err, c.want, c.err)
		}
	}
}
