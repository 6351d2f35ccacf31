package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// answer is what server name says: who it supports and who waits, as id:age.
func answer(name, holder string, waiters ...string) server.Answer {
	a := server.Answer{Server: node.Peer{Name: name, Addr: "h:1"}}
	a.Status = server.Status{Server: name, Incarnation: "1", Started: time.Now().Add(-time.Hour)}
	request := func(text string) server.Request {
		id, age, _ := strings.Cut(text, ":")
		d, err := time.ParseDuration(age)
		if err != nil {
			panic(err)
		}
		a.Status.Sessions = append(a.Status.Sessions, server.Session{ID: id, Label: "label " + id})
		return server.Request{ID: id, Label: "label " + id, AgeMS: d.Milliseconds()}
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

func TestMerge(t *testing.T) {
	down := server.Answer{Server: node.Peer{Name: "s4", Addr: "h:4"}, Err: errors.New("no route\x07")}
	s := merge([]server.Answer{
		answer("s1", "x:90s", "y:20s", "z:30s"),
		answer("s2", "x:91s", "z:30s", "y:20s"),
		answer("s3", "y:20s", "z:30s"), // it has restarted since x entered
		down,
	}, time.Now())
	if s.Quorum != 3 || s.Reachable != 3 || len(s.Clients) != 3 || s.Clients[1].Servers != 3 {
		t.Errorf("%+v", s)
	}
	l := s.Locks[0]
	if len(s.Locks) != 1 || l.Holder == nil || l.Holder.ID != "x" || l.Holder.Supports != 2 || l.Holder.AgeMS != 91_000 {
		t.Errorf("locks %+v, holder %+v", s.Locks, l.Holder)
	}
	if len(l.Waiters) != 2 || l.Waiters[0].ID != "z" || l.Waiters[1].ID != "y" || l.Waiters[1].Supports != 1 {
		t.Errorf("waiters %+v: want z, which asked first, and y", l.Waiters)
	}
	var out bytes.Buffer
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"s1      h:1      up           1h0m0s",
		"s4      h:4      unreachable  -",
		`"a\x1b[2J"  mutex  label x  2 of 4   1m31s  label z (30s), label y (20s)`,
		`s4: "no route\a"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("names reach the terminal unquoted: %q", &out)
	}
}

// TestStandingUnknown: a lock that a server cannot inspect is shown all the same.
func TestStandingUnknown(t *testing.T) {
	a := answer("s1", "")
	a.Status.Locks[0].Error = "broken\x07"
	s := merge([]server.Answer{a, answer("s2", "x:1s"), answer("s3", "x:1s"), answer("s4", "")}, time.Now())
	if len(s.Locks) != 1 || s.Locks[0].Holder == nil || len(s.Locks[0].Errors) != 1 {
		t.Errorf("%+v", s.Locks)
	}
	s = merge([]server.Answer{a}, time.Now())
	if len(s.Locks) != 1 || s.Locks[0].Holder != nil {
		t.Errorf("%+v", s.Locks)
	}
	var out bytes.Buffer
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	if want := `"a\x1b[2J": "s1: broken\a"`; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, &out)
	}
}

// TestNobodyIsInside: too few supports for anybody to be inside.
func TestNobodyIsInside(t *testing.T) {
	l := merge([]server.Answer{
		answer("s1", "x:3s", "y:4s"), answer("s2", "y:4s"), answer("s3", "z:1s"), answer("s4", "u:5s", "v:6s", "x:3s"),
	}, time.Now()).Locks[0]
	if l.Holder != nil || len(l.Waiters) != 5 || l.Waiters[0].ID != "v" {
		t.Errorf("holder %+v, waiters %+v", l.Holder, l.Waiters)
	}
	if text := waiters(l.Waiters); text != "label v (6s), label u (5s), label y (4s), and 2 more" {
		t.Errorf("waiters %q", text)
	}
}
