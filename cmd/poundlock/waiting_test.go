package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/proctest"
)

// Who waits on a terminal hears after a while who is inside; elsewhere nothing is said, and
// nothing where nobody answers.
func TestWaitingOnTerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	g, err := s.client.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{os.Args[0], "lock", "b", "a"}, s.flags...)
	c := proctest.Open(t, terminalEnv(), append(args, "--", "echo", "got it")...)
	c.See(`waiting for lock "a, b": `)
	c.See(` has "a", and asked for it `)
	args = append([]string{os.Args[0], "elect", "a"}, s.flags...)
	stands := proctest.Open(t, terminalEnv(), append(args, "--", "echo", "leading")...)
	stands.See(`waiting to lead "a": `)
	stands.See(` leads, and asked for it `)
	if err := g.Unlock(); err != nil {
		t.Fatal(err)
	}
	c.See("got it")
	c.Want(0)
	stands.See("leading")
	stands.Want(0)
}

func TestInside(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	config := poundlock.Config{ClockBound: time.Millisecond}
	for _, p := range s.local.Servers() {
		config.Servers = append(config.Servers, poundlock.Server(p))
	}
	mutex, err := s.client.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer mutex.Unlock()
	permit, err := s.client.Semaphore("s", 2).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Unlock()
	one, two := &lockFlags{}, &lockFlags{semaphore: 2}
	ours := fmt.Sprintf("/%d", os.Getpid())
	for _, test := range []struct {
		f     *lockFlags
		names []string
		want  string // how it begins; "" for nothing
	}{
		{one, []string{"a"}, " has it, and asked for it "},
		{one, []string{"0", "a"}, ` has "a", and asked for it `},
		{one, []string{"free"}, ""},
		{two, []string{"s"}, " has its permits"},
		{two, []string{"a"}, ""},
	} {
		got := test.f.inside(t.Context(), config, test.names)
		if !strings.Contains(got, test.want) || (test.want == "") != (got == "") || got != "" && !strings.Contains(got, ours) {
			t.Errorf("%v: %q, want ..%q", test.names, got, test.want)
		}
	}
	config.Label = label() // its own
	if got := one.inside(t.Context(), config, []string{"a"}); got != "" {
		t.Errorf("its own: %q", got)
	}
	s.local.Close()
	if got := one.inside(t.Context(), config, []string{"a"}); got != "" {
		t.Errorf("without servers: %q", got)
	}
}
