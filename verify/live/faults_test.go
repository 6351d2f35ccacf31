package live

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/membership"
)

func at(ms int, v scenario.Verb, d time.Duration, who ...protocol.ID) scenario.Step {
	return scenario.Step{At: time.Duration(ms) * time.Millisecond, Verb: v, For: d, Procs: who}
}

// A scenario is carried out: who crashes is out, and a new life goes on with what it has left to do; messages are held up
// until a cut ends.
func TestFaults(t *testing.T) {
	c := brief()
	c.N, c.Clients, c.Entries, c.Lease = 4, 3, []int{20}, 200*time.Millisecond
	c.Think = sim.Constant(5 * time.Millisecond)
	c.Faults = []scenario.Step{
		at(20, scenario.Partition, 50*time.Millisecond, 1, 5), at(30, scenario.Crash, 0, 4), at(40, scenario.Amnesia, 0, 0),
		at(50, scenario.Cut, time.Millisecond, 6, 2), at(60, scenario.Drain, 0, 3),
	}
	r := mustRun(t, sigma.Algorithm, c)
	if r.Entries < 60 || r.Crashes != 1 || r.Amnesias != 1 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}

	c = brief()
	c.Entries, c.Lease, c.Hold = []int{60}, 200*time.Millisecond, sim.Constant(5*time.Millisecond)
	c.Faults = []scenario.Step{at(30, scenario.Crash, 0, 2), at(40, scenario.Recover, 0, 2)}
	r = mustRun(t, membership.Wrap(suzukikasami.Algorithm), c)
	if r.Entries < 180 || r.Crashes != 1 || r.Recoveries != 1 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}

	c.Faults = []scenario.Step{at(30, scenario.Pause, time.Second, 2)}
	if _, err := Run(t.Context(), membership.Wrap(suzukikasami.Algorithm), c, nil); !errors.Is(err, sim.ErrConfig) ||
		!strings.Contains(err.Error(), "scenario: pause: not on a network: a user is no part of its process") {
		t.Errorf("error %v", err)
	}
}

// Who needs everybody does not enter before a partition, or a cut one way, has ended.
func TestHeldUp(t *testing.T) {
	for _, fault := range []scenario.Step{
		at(0, scenario.Partition, 300*time.Millisecond, 2),
		at(0, scenario.Cut, 300*time.Millisecond, 1, 2),
		at(0, scenario.Cut, 300*time.Millisecond, 2, 1),
	} {
		c := brief()
		c.Entries, c.Think = []int{0, 1, 0}, sim.Constant(150*time.Millisecond) // p2 tries after a third of it
		c.Faults = []scenario.Step{fault}
		var file bytes.Buffer
		var err error
		if c.History, err = history.NewWriter(&file, history.Header{Clock: history.Virtual}); err != nil {
			t.Fatal(err)
		}
		if r := mustRun(t, ricartagrawala.Algorithm, c); r.Entries != 1 || r.ViolationCount != 0 {
			t.Errorf("%+v", r)
		}
		in, err := history.NewReader("run", &file)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := in.Next()
			if err != nil {
				break
			}
			if early := time.Duration(e.At); e.Do == history.Crit && early < 300*time.Millisecond {
				t.Errorf("%v: %s is inside after %v", fault.Verb, e.User, early)
			}
		}
	}
}

// A cut is one way, and lasts as long as any fault has it.
func TestCuts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := faultnet.New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := &system{links: map[link]*faultnet.Proxy{{2, 1}: p}, cuts: map[link]int{}}
	two, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	says := func(c net.Conn, text string) {
		t.Helper()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(c net.Conn, patience time.Duration, want string) {
		t.Helper()
		c.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 1)
		n, err := c.Read(b)
		if got := string(b[:n]); got != want || want == "" && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("heard %q, %v; want %q", got, err, want)
		}
	}
	const long, brief = time.Minute, 20 * time.Millisecond
	says(two, "a")
	one, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	hears(one, long, "a")
	s.cut(1, 2, 1)
	says(one, "b")
	hears(two, brief, "")
	says(two, "c")
	hears(one, long, "c")
	s.isolate(1, 1)
	says(two, "d")
	hears(one, brief, "")
	s.isolate(1, -1)
	hears(one, long, "d")
	hears(two, brief, "")
	s.cut(1, 2, -1)
	hears(two, long, "b")
}
