package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// terminalEnv is the environment in which this binary is poundlock: "$POUNDLOCK".
func terminalEnv() []string {
	return []string{clitest.RunAsProgram + "=1", "TEST_POUNDLOCK=" + os.Args[0]}
}

// line is what to type for poundlock with these arguments and the flags of s.
func (s *stage) line(args, script string) string {
	return fmt.Sprintf("\"$TEST_POUNDLOCK\" %s %s -- sh -c '%s'", args, strings.Join(s.flags, " "), script)
}

// free fails unless nobody holds the locks.
func (s *stage) free(names ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := s.client.Locks(names...).Lock(ctx)
	if err != nil {
		s.t.Errorf("not released: %v", err)
		return
	}
	g.Unlock()
}

// campaigns waits until the servers know somebody who waits for the lock.
func (s *stage) campaigns(name string) {
	s.t.Helper()
	o, err := server.Observe(server.AskConfig{Servers: s.local.Servers(), ClockBound: time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	defer o.Close()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		for _, l := range o.OneLock(s.t.Context(), o.Sessions(s.t.Context()), name) {
			if l != nil && len(l.Waiters) > 0 {
				return
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("nobody waits for %q", name)
		}
	}
}

// On a terminal the command reads what is typed, and ^C is its own.
func TestInterruptOnTerminal(t *testing.T) {
	t.Parallel()
	for verb, names := range map[string][]string{"lock a": {"a"}, "lock b a": {"a", "b"}, "elect a": {"a"}} {
		s := newStage(t)
		args := append([]string{os.Args[0]}, strings.Fields(verb)...)
		args = append(append(args, s.flags...), "--", "sh", "-c", `echo who; read x; echo "hello $x"; exec sleep 60`)
		c := proctest.Open(t, terminalEnv(), args...)
		c.See("who")
		c.Keys("you\n")
		c.See("hello you")
		c.Keys(proctest.CtrlC)
		c.Want(128 + 2)
		s.free(names...)
	}
}

// ^Z stops the command and poundlock, and fg continues both: the locks are held
// meanwhile, as long as their lease lasts.
func TestStopOnTerminal(t *testing.T) {
	t.Parallel()
	for verb, names := range map[string][]string{"lock b a": {"a", "b"}, "elect a": {"a"}} {
		s := newStage(t)
		c := proctest.Shell(t, terminalEnv()...)
		c.Keys(s.line(verb, `echo in""side; read x; echo "read $x"; exit 6`) + "\n")
		c.See("inside")
		c.Keys(proctest.CtrlZ)
		c.See(fmt.Sprintf("lock %q is lost and its command ended in", strings.Join(names, ", ")))
		c.See("Stopped")
		c.See("ready> ")
		for _, name := range names {
			if _, err := s.client.Mutex(name).TryLock(t.Context()); err == nil {
				t.Errorf("%s: lock %q is not held while stopped", verb, name)
			}
		}
		c.Keys("fg\n")
		time.Sleep(100 * time.Millisecond) // fg writes its line first
		c.Keys("this\n")
		c.See("read this")
		c.See("ready> ")
		c.Keys("echo status=$?\n")
		c.See("status=6")
		c.Keys("exit 0\n")
		c.Want(0)
		s.free(names...)
	}
}

// A campaign can be stopped and continued, also the one that follows a term; ^C ends
// it.
func TestStoppedCampaign(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := proctest.Shell(t, terminalEnv()...)
	g, err := s.client.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Keys(s.line("elect a --max-hold 300ms", `exec sleep 60`) + "\n")
	for range 2 {
		s.campaigns("a") // nothing on the terminal says so
		c.Keys(proctest.CtrlZ)
		c.See("Stopped")
		c.See("ready> ")
		c.Keys("fg\n")
		g.Unlock()
		c.See("campaigning again")
		if g, err = s.client.Mutex("a").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.Keys(proctest.CtrlC)
	c.See("ready> ")
	c.Keys("echo status=$?\n")
	c.See("status=130")
	c.Keys("exit 0\n")
	c.Want(0)
	g.Unlock()
	s.free("a")
}
