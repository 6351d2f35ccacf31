package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

// reader holds the lock called name in a group as a client with a label, until it is told to leave.
func (s *stage) reader(ctx context.Context, label, name string) (left chan error) {
	s.t.Helper()
	config := poundlock.Config{ClockBound: time.Millisecond, Label: label}
	for _, p := range s.local.Servers() {
		config.Servers = append(config.Servers, poundlock.Server(p))
	}
	c, err := poundlock.Dial(ctx, config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	g, err := c.RWMutex(name).RLock(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	left = make(chan error, 1)
	go func() {
		<-g.Context().Done()
		left <- context.Cause(g.Context())
		_ = g.Unlock() // it is lost
	}()
	return left
}

// call runs poundlock and returns its status and what it prints.
func (s *stage) call(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	c := exec.Command(os.Args[0], append(args, s.flags...)...)
	c.Env = append(os.Environ(), clitest.RunAsProgram+"=1")
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), err.String()
}

func (s *stage) known(name string) status.Lock {
	s.t.Helper()
	o, err := server.Observe(server.AskConfig{Servers: s.local.Servers(), ClockBound: time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	defer o.Close()
	l, err := one(s.t.Context(), o, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// Operators see all who share a lock, and ask one of them, or all, to leave it.
func TestHoldersSeenAndReleased(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	left := map[string]chan error{}
	for _, label := range []string{"r1", "r2", "r3", "r4"} {
		left[label] = s.reader(ctx, label, "book")
	}
	written := make(chan error, 1)
	go func() {
		g, err := s.client.RWMutex("book").Lock(ctx)
		if err == nil {
			err = g.Unlock()
		}
		written <- err
	}()
	writer := label()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		l := s.known("book")
		lacks := func(h status.Holder) bool { return h.SupportsLive < 4 }
		if len(l.Holders) == 4 && !slices.ContainsFunc(l.Holders, lacks) && len(l.Waiters) == 1 && l.Waiters[0].Label == writer {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not four readers and a writer: %+v", l)
		}
	}
	see := func(text, pattern string) {
		t.Helper()
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(text) {
			t.Errorf("no %q in\n%s", pattern, text)
		}
	}
	code, out, _ := s.call("status")
	see(out, `^book  mutex  r1, r2, r3, 1 more in shared  4 of 4   2       [0-9.]+m?s +`+regexp.QuoteMeta(writer)+` \(`)
	see(out, `^1 lock, 1 held; loss budget 2: a server may be restarted`)
	_, out, _ = s.call("locks")
	see(out, `^book  mutex  r1, r2, r3, 1 more in shared  4 of 4   2       [0-9.]+m?s +1$`)
	_, out, _ = s.call("locks", "--json")
	see(out, `^{"name":"book","kind":"mutex","group":"shared","holders":\[{"id":"[0-9a-f]{16}","label":"r1",.*"label":"r4"`)
	if code != 0 {
		t.Errorf("status %d", code)
	}

	config := poundlock.Config{ClockBound: time.Millisecond}
	for _, p := range s.local.Servers() {
		config.Servers = append(config.Servers, poundlock.Server(p))
	}
	see((&lockFlags{}).inside(ctx, config, []string{"book"}), `^r1, r2, r3, 1 more in shared have it, and the first asked for it [0-9.]+m?s ago$`)

	code, _, err := s.call("release", "book", "--reason", "x", "--holder", "r5")
	if code != 1 {
		t.Errorf("status %d", code)
	}
	see(err, `"r5" neither holds lock "book" nor waits for it$`)
	code, out, _ = s.call("release", "book", "--reason", "you alone", "--holder", "r2")
	if code != 0 {
		t.Errorf("status %d", code)
	}
	see(out, `\Ar2 was told to leave lock "book", within 5s\nr2 has left lock "book"\n\z`)
	see((<-left["r2"]).Error(), `: you alone$`)
	third := ""
	for _, h := range s.known("book").Holders {
		if h.Label == "r3" {
			third = h.Request
		}
	}
	if code, out, _ = s.call("release", "book", "--reason", "and you", "--holder", third); code != 0 {
		t.Errorf("status %d: %s", code, out)
	}
	see((<-left["r3"]).Error(), `: and you$`)
	if len(left["r1"])+len(left["r4"]) > 0 {
		t.Error("others were told to leave")
	}
	code, out, _ = s.call("release", "book", "--reason", "all of you")
	if code != 0 {
		t.Errorf("status %d", code)
	}
	see(out, `\Ar1 was told to leave lock "book", within 5s\nr4 was told to leave lock "book", within 5s\nr[14] has left lock "book"\nr[14] has left lock "book"\n\z`)
	for _, r := range []string{"r1", "r4"} {
		see((<-left[r]).Error(), `: all of you$`)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// A user hears who keeps it waiting: holders, or where it shares with them whoever came before it.
func TestBefore(t *testing.T) {
	l := status.Lock{
		Group:   "shared",
		Holders: []status.Holder{{Label: "a", AgeMS: 3000}, {Label: "b", AgeMS: 2000}},
		Waiters: []status.Waiter{
			{Label: "mate", Group: "shared", AgeMS: 1500},
			{Label: "w", AgeMS: 1000},
			{Label: "me", Group: "shared", AgeMS: 500},
			{Label: "tea", Group: "tea", AgeMS: 400},
			{Label: "any", Group: "tea,shared", AgeMS: 300},
		},
	}
	for label, want := range map[string]string{
		"me":   "w asked for it 1s ago, and is next",
		"any":  "w asked for it 1s ago, and is next",
		"tea":  "a, b in shared have it, and the first asked for it 3s ago",
		"w":    "a, b in shared have it, and the first asked for it 3s ago",
		"mate": "a, b in shared have it, and the first asked for it 3s ago", // it is about to come in
		"new":  "a, b in shared have it, and the first asked for it 3s ago",
	} {
		if got := before(&l, label, "has it"); got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
	one := l
	one.Holders = l.Holders[:1]
	if got := before(&one, "w", "leads"); got != "a in shared leads, and asked for it 3s ago" {
		t.Errorf("one: %q", got)
	}
	if got := before(&l, "w", `has "book"`); !strings.HasPrefix(got, `a, b in shared have "book", `) {
		t.Errorf("of two locks: %q", got)
	}
	if got := before(&l, "w", "leads"); !strings.HasPrefix(got, "a, b in shared lead, ") {
		t.Errorf("leaders: %q", got)
	}
	if got := before(&status.Lock{}, "w", "has it"); got != "" {
		t.Errorf("nobody: %q", got)
	}
}

// The error of a release names those that failed, of many the first ones.
func TestTogether(t *testing.T) {
	var victims []*victim
	if err := together(victims); err != nil {
		t.Error(err)
	}
	for k := range 5 {
		v := &victim{}
		if k != 1 {
			v.err = unanswered(k)
		}
		victims = append(victims, v)
	}
	if err := together(victims[:2]); err == nil || err.Error() != "0 does not answer" {
		t.Error(err)
	}
	if err := together(victims); err == nil || err.Error() != "0 does not answer; 2 does not answer; 3 does not answer; and 1 more" {
		t.Error(err)
	}
}

func unanswered(k int) *cli.Status {
	return &cli.Status{Err: fmt.Errorf("%d does not answer", k), Hint: "wait"}
}
