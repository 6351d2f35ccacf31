package status

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// answer is what server name says: who it supports and who waits, as id:age.
func answer(name, holder string, waiters ...string) server.Answer {
	a := server.Answer{Server: node.Peer{Name: name, Addr: "h:1"}}
	a.Status = server.Status{Server: name, Incarnation: "1", Started: time.Now().Add(-time.Hour), UptimeMS: 3_600_000, LeaseMS: 10_000}
	request := func(text string) server.Request {
		id, age, _ := strings.Cut(text, ":")
		d, err := time.ParseDuration(age)
		if err != nil {
			panic(err)
		}
		a.Status.Sessions = append(a.Status.Sessions, server.Session{ID: id, Label: "label " + id})
		return server.Request{ID: id, Label: "label " + id, Live: true, AgeMS: d.Milliseconds()}
	}
	l := server.Lock{Name: "a\x1b[2J", Kind: "mutex"}
	if holder != "" {
		x := request(holder)
		l.Holder = &x
	}
	for _, w := range waiters {
		l.Waiters = append(l.Waiters, request(w))
	}
	a.Status.Locks = []server.Lock{l}
	return a
}

// merge is the status that the answers make, and that of its first lock.
func merge(answers ...server.Answer) (*Cluster, Lock) {
	s := begin(answers)
	names := map[string][]*server.Lock{}
	for i := range answers {
		for k := range answers[i].Status.Locks {
			l := &answers[i].Status.Locks[k]
			if names[l.Name] == nil {
				names[l.Name] = make([]*server.Lock, len(answers))
			}
			names[l.Name][i] = l
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s.Locks = append(s.Locks, s.add(names[name])...)
	}
	s.conclude(answers)
	return s, s.Locks[0]
}

func TestMerge(t *testing.T) {
	down := server.Answer{Server: node.Peer{Name: "s4", Addr: "h:4"}, Err: errors.New("no route\x07")}
	s, l := merge(
		answer("s1", "x:90s", "y:20s", "z:30s"),
		answer("s2", "x:91s", "z:30s", "y:20s"),
		answer("s3", "y:20s", "z:30s"), // it has restarted since x entered
		down,
	)
	if s.Quorum != 3 || s.Reachable != 3 || len(s.Clients) != 3 || s.Clients[1].Servers != 3 {
		t.Errorf("%+v", s)
	}
	if len(s.Locks) != 1 || len(l.Holders) != 1 {
		t.Fatalf("locks %+v", s.Locks)
	}
	want := Holder{ID: "x", Label: "label x", AgeMS: 91_000, SupportsLive: 2, SupportsNeeded: 2, LossBudget: 0, Servers: 4}
	if l.Holders[0] != want {
		t.Errorf("holder %+v, want %+v", l.Holders[0], want)
	}
	if s.RestartSafe || s.LossBudget != 0 || s.LockCount != 1 || s.HeldCount != 1 || s.Unsafe != "s4 does not answer" {
		t.Errorf("%+v", s)
	}
	if len(l.Waiters) != 2 || l.Waiters[0].ID != "z" || l.Waiters[1].ID != "y" || l.Waiters[1].Supports != 1 {
		t.Errorf("waiters %+v: want z, which asked first, and y", l.Waiters)
	}
	var out bytes.Buffer
	if err := s.Text(&out, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"s1      h:1      up           1h0m0s",
		"s4      h:4      unreachable  -",
		`"a\x1b[2J"  mutex  label x  2 of 4   0       1m31s  label z (30s), label y (20s)`,
		`s4: "no route\a"`,
		"1 lock, 1 held; loss budget 0: no server may be restarted: s4 does not answer",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("names reach the terminal unquoted: %q", &out)
	}
}

// TestUserLabel: the user of a client is shown beside it, whoever knows less.
func TestUserLabel(t *testing.T) {
	full := func(name, label string, live bool) server.Answer {
		a := answer(name, "x:9s", "y:1s")
		h := a.Status.Locks[0].Holder
		h.Label, h.Live = label, live
		return a
	}
	_, l := merge(
		full("s1", "label x", true), // it has forgotten the user
		full("s2", "label x: nightly backup of ann", true),
		full("s3", "the user alone, as said by whoever has no session with its client", false),
		full("s4", "label x: nightly backup of ann", true),
	)
	if len(l.Holders) != 1 || l.Holders[0].Label != "label x: nightly backup of ann" || l.Waiters[0].Label != "label y" {
		t.Errorf("%+v", l)
	}
}

// TestStandingUnknown: a lock that a server cannot inspect is shown all the same.
func TestStandingUnknown(t *testing.T) {
	a := answer("s1", "")
	a.Status.Locks[0].Error = "broken\x07"
	s, l := merge(a, answer("s2", "x:1s"), answer("s3", "x:1s"), answer("s4", ""))
	if len(l.Holders) != 1 || len(l.Errors) != 1 || s.RestartSafe {
		t.Errorf("%+v", s)
	}
	s, l = merge(a)
	if len(l.Holders) != 0 {
		t.Errorf("%+v", l)
	}
	var out bytes.Buffer
	if err := s.Text(&out, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	if want := `"a\x1b[2J": "s1: broken\a"`; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, &out)
	}
}

// TestNobodyIsInside: too few supports for anybody to be inside.
func TestNobodyIsInside(t *testing.T) {
	_, l := merge(
		answer("s1", "x:3s", "y:4s"), answer("s2", "y:4s"), answer("s3", "z:1s"), answer("s4", "u:5s", "v:6s", "x:3s"),
	)
	if len(l.Holders) != 0 || len(l.Waiters) != 5 || l.Waiters[0].ID != "v" {
		t.Errorf("holders %+v, waiters %+v", l.Holders, l.Waiters)
	}
	if text := waiters(l.Waiters, 7); text != "label v (6s), label u (5s), label y (4s), and 4 more" {
		t.Errorf("waiters %q", text)
	}
}

// TestRestartSafe: the operator is told to restart a server only when no holder
// would lose its lock for it.
func TestRestartSafe(t *testing.T) {
	silent := answer("s4", "x:9s")
	silent.Status.Locks[0].Holder.Live = false // it remembers x, which it has no session with
	forgetful := answer("s4", "")
	for _, x := range []struct {
		name    string
		answers []server.Answer
		safe    bool
		settled bool
		live    int
		budget  int
	}{
		{"all support it", []server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), answer("s4", "x:9s")}, true, true, 4, 2},
		{"one has forgotten", []server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), forgetful}, true, false, 3, 1},
		{"one supports who waits", []server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), answer("s4", "y:1s")}, true, true, 3, 1},
		{"one has yet to answer", []server.Answer{answer("s1", "x:900ms"), answer("s2", "x:900ms"), answer("s3", "x:900ms"), forgetful}, true, true, 3, 1},
		{"one has no session", []server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), silent}, true, false, 3, 1},
		{"two are left", []server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "y:1s"), silent}, false, false, 2, 0},
	} {
		s, l := merge(x.answers...)
		if s.RestartSafe != x.safe || s.Settled != x.settled || s.LossBudget != x.budget || len(l.Holders) != 1 {
			t.Errorf("%s: %+v", x.name, s)
			continue
		}
		if h := l.Holders[0]; h.ID != "x" || h.SupportsLive != x.live || h.SupportsNeeded != 2 || h.LossBudget != x.budget {
			t.Errorf("%s: holder %+v", x.name, h)
		}
	}
	// One support less than are needed: nobody is shown as a holder.
	if _, l := merge(answer("s1", "x:9s"), answer("s2", "y:1s"), answer("s3", "z:1s"), silent); len(l.Holders) != 0 {
		t.Errorf("holders %+v", l.Holders)
	}
}

// TestShared: holders that share are as many holds, each with supports and a budget of its own: a server may be restarted
// if none of them would lose the lock, and a lock counts once as held.
func TestShared(t *testing.T) {
	shared := func(name string, ids ...string) server.Answer { // a server that supports these, and w waits alone
		a := answer(name, "")
		l := &a.Status.Locks[0]
		for k, id := range ids {
			r := server.Request{ID: id, Label: "label " + id, Live: true, AgeMS: 9000 - int64(k), Group: "readers"}
			if a.Status.Sessions = append(a.Status.Sessions, server.Session{ID: id, Label: r.Label}); k == 0 {
				l.Holder = &r
			} else {
				l.Sharers = append(l.Sharers, r)
			}
		}
		l.Waiters = []server.Request{{ID: "w", Live: true, AgeMS: 100}, {ID: "z", Live: true, AgeMS: 50, Group: "tea"}}
		return a
	}
	for _, x := range []struct {
		name    string
		s4      server.Answer
		s3      server.Answer
		safe    bool
		settled bool
		budget  int
		holders []string
		columns string
	}{
		{
			"all support both", shared("s4", "a", "b"), shared("s3", "a", "b"), true, true, 2,
			[]string{"a", "b"},
			"label a, label b in readers\t4 of 4\t2\t9s",
		},
		{
			"one has forgotten one of them", shared("s4", "a"), shared("s3", "a", "b"), true, false, 1,
			[]string{"a", "b"},
			"label a, label b in readers\t3 of 4\t1\t9s",
		},
		{
			"one supports who waits alone", answer("s4", "w:100ms"), shared("s3", "a", "b"), true, true, 1,
			[]string{"a", "b"},
			"label a, label b in readers\t3 of 4\t1\t9s",
		},
		{
			"one of them has two left", shared("s4", "a"), shared("s3", "a"), false, false, 0,
			[]string{"a", "b"},
			"label a, label b in readers\t2 of 4\t0\t9s",
		},
		{
			"one comes in", shared("s4", "a"), shared("s3", "a", "b", "c"), true, false, 1,
			[]string{"a", "b"},
			"label a, label b in readers\t3 of 4\t1\t9s",
		},
	} {
		s, l := merge(shared("s1", "a", "b"), shared("s2", "a", "b"), x.s3, x.s4)
		var holders []string
		for _, h := range l.Holders {
			holders = append(holders, h.ID)
		}
		if s.RestartSafe != x.safe || s.Settled != x.settled || s.LossBudget != x.budget || s.LockCount != 1 || s.HeldCount != 1 {
			t.Errorf("%s: %+v", x.name, s)
		}
		if !slices.Equal(holders, x.holders) || l.Group != "readers" {
			t.Errorf("%s: holders %v in group %q", x.name, holders, l.Group)
		}
		if columns := l.Columns(); !strings.HasSuffix(columns, x.columns) {
			t.Errorf("%s: shown as %q, want %q", x.name, columns, x.columns)
		}
	}
	_, l := merge(shared("s1", "a", "b", "c", "d", "e"), shared("s2", "a", "b", "c", "d", "e"))
	if who := l.Who(); who != "label a, label b, label c, 2 more in readers" {
		t.Errorf("many are %q", who)
	}
	if text := waiters(l.Waiters, l.Waiting); text != "w (100ms), z in tea (100ms)" {
		t.Errorf("waiters %q", text)
	}
	// A server where one of them waits for any of two groups does not know which one it has.
	late := answer("s3", "w:100ms")
	late.Status.Locks[0].Waiters = []server.Request{{ID: "a", Live: true, AgeMS: 9000, Group: "tea,readers"}}
	for _, order := range [][]server.Answer{
		{shared("s1", "a", "b"), shared("s2", "a", "b"), shared("s4", "a", "b"), late},
		{late, shared("s1", "a", "b"), shared("s2", "a", "b"), shared("s4", "a", "b")},
	} {
		if _, l := merge(order...); l.Group != "readers" || len(l.Holders) != 2 {
			t.Errorf("holders %+v in group %q", l.Holders, l.Group)
		}
	}
	// Whoever does not share with the first one is none of them.
	_, l = merge(shared("s1", "a", "b"), shared("s2", "a", "b"), answer("s3", "w:20s"), answer("s4", "w:20s"))
	if l.Group != "" || len(l.Holders) != 1 || l.Holders[0].ID != "w" {
		t.Errorf("holders %+v in group %q", l.Holders, l.Group)
	}
}

// TestDraining: while a server drains no other one may be restarted, and it is none for
// a lock that is granted now.
func TestDraining(t *testing.T) {
	drains := func(name, holder string) server.Answer {
		a := answer(name, holder)
		a.Status.Draining = true
		return a
	}
	for _, x := range []struct {
		answers []server.Answer
		unsafe  string
		budget  int
	}{
		{[]server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), drains("s4", "x:9s")}, "s4 drains", 1},
		{[]server.Answer{answer("s1", "x:9s"), answer("s2", "x:9s"), drains("s3", "x:9s"), drains("s4", "x:9s")}, "s3, s4 drain", 0},
	} {
		s, _ := merge(x.answers...)
		if s.RestartSafe || s.Settled || s.Unsafe != x.unsafe || s.LossBudget != x.budget || s.Reachable != 4 {
			t.Errorf("want %q and budget %d: %+v", x.unsafe, x.budget, s)
		}
	}
}

// TestSummary: one line says it all, and without locks nothing follows it.
func TestSummary(t *testing.T) {
	s, _ := merge(answer("s1", "x:9s"), answer("s2", "x:9s"), answer("s3", "x:9s"), answer("s4", ""))
	const want = "1 lock, 1 held; loss budget 1: a server may be restarted, but 1 holder has not all supports back"
	if got := s.summary(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var out bytes.Buffer
	s = begin([]server.Answer{{Server: node.Peer{Name: "s1"}}})
	s.conclude([]server.Answer{{Server: node.Peer{Name: "s1"}}})
	if err := s.Text(&out, strings.TrimSpace); err != nil || strings.Contains(out.String(), "LOCK") {
		t.Errorf("%v, a table without locks:\n%s", err, &out)
	}
}
