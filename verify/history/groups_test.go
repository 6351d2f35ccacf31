package history

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// A visit is what a user of groups does at a time: it tries for some, enters one, or leaves.
type visit struct {
	at   int64 // ms
	user int
	what string // try, crit, downgrade or exit
	data string
}

func visits(users int, list ...visit) *Monitor {
	m := newMonitor(users)
	for _, v := range list {
		at := v.at * 1e6
		switch v.what {
		case "try":
			m.Input(v.user, at, protocol.Input{Kind: protocol.Try, Data: v.data})
		case "crit":
			m.Act(v.user, at, protocol.Act{Do: protocol.Crit, Data: v.data})
		case "downgrade":
			m.Input(v.user, at, protocol.NewDowngrade(protocol.Group(v.data)))
		case "exit":
			m.Input(v.user, at, protocol.Input{Kind: protocol.Exit})
			m.Act(v.user, at, protocol.Act{Do: protocol.Rem})
		}
	}
	return m
}

// Users 0 and 1 are inside a together, 0 goes in again while 2 waits for b, and 2 enters 3 ms after
// the last one has left. Two exclusive entries are two sessions.
var story = []visit{
	{0, 0, "try", "a"},
	{0, 0, "crit", "a"},
	{1, 1, "try", "a,b"},
	{2, 1, "crit", "a"},
	{3, 2, "try", "b"},
	{4, 1, "exit", ""},
	{5, 0, "exit", ""},
	{6, 0, "try", "a"},
	{6, 0, "crit", "a"},
	{8, 0, "exit", ""}, // 1 ms after an exit, of the same session
	{11, 2, "crit", "b"},
	{12, 2, "exit", ""},
	{20, 0, "try", "!w"},
	{20, 1, "try", "!w"},
	{21, 0, "crit", "!w"},
	{22, 0, "exit", ""},
	{24, 1, "crit", "!w"},
	{25, 1, "exit", ""},
}

func TestSessions(t *testing.T) {
	m := visits(3, story...)
	r := m.Measures()
	if len(m.Violations()) != 0 || r.Sessions != 4 || r.Entries != 6 {
		t.Errorf("%d sessions of %d entries, %v", r.Sessions, r.Entries, m.Violations())
	}
	// Inside were 5+2+2+1+1+1 ms of users, in 5+2+1+1+1 ms.
	if r.Concurrency != (Concurrency{1.2, 2}) {
		t.Errorf("concurrency %+v", r.Concurrency)
	}
	if s := r.SyncDelay; s.Count != 2 || s.Mean != 2.5 || s.Max != 3 {
		t.Errorf("synchronization delays %+v, want 3 and 2 ms", s)
	}
}

// What goes wrong with groups is found, and only that.
func TestGroupViolations(t *testing.T) {
	for name, c := range map[string]struct {
		list []visit
		want string
	}{
		"two groups": {[]visit{{0, 0, "try", "a"}, {0, 1, "try", "b"}, {1, 0, "crit", "a"}, {2, 1, "crit", "b"}}, Exclusion},
		"two exclusive": {
			[]visit{{0, 0, "try", "!w"}, {0, 1, "try", "!w"}, {1, 0, "crit", "!w"}, {2, 1, "crit", "!w"}}, Exclusion,
		},
		"none and one": {[]visit{{0, 0, "try", ""}, {0, 1, "try", "a"}, {1, 0, "crit", ""}, {2, 1, "crit", "a"}}, Exclusion},
		"another one":  {[]visit{{0, 0, "try", "a,c"}, {1, 0, "crit", "b"}}, WellFormed},
		"a set":        {[]visit{{0, 0, "try", "a,b"}, {1, 0, "crit", "a,b"}}, WellFormed},
		"none":         {[]visit{{0, 0, "try", "a"}, {1, 0, "crit", ""}}, WellFormed},
		"unasked":      {[]visit{{0, 0, "try", ""}, {1, 0, "crit", "a"}}, WellFormed},
		"too early": {
			[]visit{{0, 0, "try", "!w"}, {0, 1, "try", "a"}, {1, 0, "crit", "!w"}, {2, 1, "crit", "a"}, {3, 0, "downgrade", "a"}}, Exclusion,
		},
		"beside one who came down": {
			[]visit{{0, 0, "try", ""}, {0, 1, "try", "!w"}, {1, 0, "crit", ""}, {2, 0, "downgrade", "a"}, {3, 1, "crit", "!w"}}, Exclusion,
		},
		"from outside": {[]visit{{0, 0, "try", "!w"}, {1, 0, "downgrade", "a"}}, WellFormed},
	} {
		m := visits(2, c.list...)
		if m.Total() != 1 || m.counts[c.want] != 1 {
			t.Errorf("%s: %v, want one of %s", name, m.Violations(), c.want)
		}
	}
}

// Whoever was alone and shares is inside once, and others of the group are in its session: before, between and after it
// the lock is not free.
func TestDowngrade(t *testing.T) {
	m := visits(3, []visit{
		{0, 0, "try", ""},
		{0, 1, "try", "a"},
		{0, 2, "try", "!w"},
		{1, 0, "crit", ""},
		{5, 0, "downgrade", "a"},
		{6, 1, "crit", "a"},
		{8, 0, "exit", ""},
		{9, 1, "exit", ""},
		{10, 2, "crit", "!w"},
		{11, 2, "exit", ""},
	}...)
	r := m.Measures()
	if len(m.Violations()) != 0 || r.Entries != 3 || r.Sessions != 2 || r.Concurrency.Max != 2 || r.SyncDelay.Count != 1 {
		t.Errorf("%d entries, %d sessions, %+v, synchronization delays %+v, %v", r.Entries, r.Sessions, r.Concurrency, r.SyncDelay, m.Violations())
	}
}

// Where there are no groups nothing is said of them.
func TestNoGroups(t *testing.T) {
	r := play(2, grant(0, 0, 1, 2, 0)...).Measures()
	if r.Sessions != 0 || r.Concurrency != (Concurrency{}) || r.Entries != 1 {
		t.Errorf("%+v", r)
	}
}

// Who enters a group that another one would share, too, is not out of order.
func TestOrderOfGroups(t *testing.T) {
	for wants, inversions := range map[string]uint64{"a": 0, "a,b": 0, "b": 1, "!w": 1} {
		m := newMonitor(2)
		m.bounds = Bounds{Order: 1}
		m.Input(0, 0, protocol.Input{Kind: protocol.Try, Data: wants})
		m.Input(1, 1e6, protocol.Input{Kind: protocol.Try, Data: "a"})
		m.Act(1, 2e6, protocol.Act{Do: protocol.Crit, Data: "a"})
		if got := m.counts[Order]; got != inversions {
			t.Errorf("who wants %s is overtaken: %d times, want %d", wants, got, inversions)
		}
	}
}

// Who tries could be inside together if there is one group for all who try and are inside.
func TestTogether(t *testing.T) {
	const rem, try, in, out = protocol.InRem, protocol.InTry, protocol.InCrit, protocol.InExit
	for _, c := range []struct {
		users Users
		names string // wanted by who tries, held by who is inside
		want  bool
	}{
		{Users{try}, "a", true},
		{Users{try}, "!a", false},
		{Users{rem, in, out}, "a a a", false},
		{Users{rem, try, in}, "b a a", true},
		{Users{rem, try, in}, "a a b", false},
		{Users{rem, out, try, try}, "a a b,c c,d", true},
		{Users{try, try, try}, "a,b b,c a,c", false},
		{Users{try, try, in}, "a,b a,b b", true},
		{Users{try, in, try}, "a,b b a", false},
		{Users{try, in, in}, "a,!b a a", true},
		{Users{try, in}, "!b !b", false},
		{Users{in, try}, "a a", true},
		{Users{out, try}, "b a", true},
	} {
		var wanted []protocol.Groups
		var granted []protocol.Group
		for _, name := range strings.Fields(c.names) {
			wanted, granted = append(wanted, protocol.Groups(name)), append(granted, protocol.Group(name))
		}
		if got := c.users.Together(wanted, granted); got != c.want {
			t.Errorf("%v, %s: %v, want %v", c.users, c.names, got, c.want)
		}
	}
}
