package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algo/maekawa"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
	"github.com/poundlock/poundlock/wrap/membership"
)

func TestMain(m *testing.M) {
	if run := driveable[os.Getenv(driveVariable)]; run != nil {
		if err := run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// driveVariable has the name of the algorithm where this binary is a process of a run.
const driveVariable = "POUNDLOCK_TEST_DRIVEN"

var driveable = map[string]func(io.Reader, io.Writer) error{
	"ricart-agrawala":        processOf(ricartagrawala.Algorithm),
	"sigma":                  processOf(sigma.Algorithm),
	"suzuki-kasami/recovery": processOf(membership.Wrap(suzukikasami.Algorithm)),
	"chamber":                processOf(chamber.Algorithm(chamber.IgnoresGroups)),
	"breaking":               processOf(breaking()),
}

func processOf[M any](a protocol.Algorithm[M]) func(io.Reader, io.Writer) error {
	return func(in io.Reader, out io.Writer) error { return Process(a, in, out) }
}

// program is a process as a program of its own.
func program(algorithm string) func() *exec.Cmd {
	return func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), driveVariable+"="+algorithm)
		return c
	}
}

// brief has three users that try for ever, so to speak, and messages that take a while.
func brief() sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{4}, Seed: 1, Delay: sim.Constant(time.Millisecond), Think: sim.Constant(0),
	}
}

func mustRun[M any](t *testing.T, a protocol.Algorithm[M], c sim.Config) sim.Result {
	t.Helper()
	r, err := Run(t.Context(), a, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A network carries out the workload of the simulator: where a cost is exact it is the same.
func TestMessages(t *testing.T) {
	r := mustRun(t, ricartagrawala.Algorithm, brief())
	want, err := sim.Run(ricartagrawala.Algorithm, brief())
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(r.MessagesByKind, want.MessagesByKind) || r.MessagesPerEntry != 4 || r.Entries != 12 ||
		r.ViolationCount != 0 || r.On != sim.OnNetwork || r.N != 3 || r.OverheadMessages != 0 {
		t.Errorf("%+v\nwant %+v", r, want)
	}
	if c := (r.Waiting.Count | r.Response.Count); c != 12 || r.SyncDelay.Count == 0 || r.Throughput == 0 || r.VirtualSeconds == 0 {
		t.Errorf("measures %+v", r)
	}
	if r := mustRun(t, maekawa.Algorithm, brief()); r.Entries != 12 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}
}

// Users have clients of their own where there are servers, one of which may be down; and members hold leases at each other
// where their algorithm asks for it.
func TestSystems(t *testing.T) {
	c := brief()
	c.N, c.Clients, c.Down, c.Options = 4, 2, []protocol.ID{3}, map[string]int64{"fence": 0}
	if r := mustRun(t, sigma.Algorithm, c); r.Entries != 8 || r.ViolationCount != 0 || r.Clients != 2 {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, membership.Wrap(suzukikasami.Algorithm), brief()); r.Entries != 12 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}
}

// wishes are what users wanted, in their order, by the history of a run.
func wishes(t *testing.T, c sim.Config, run func(protocol.Algorithm[chamber.Message], sim.Config) (sim.Result, error)) map[string][]string {
	t.Helper()
	var file bytes.Buffer
	var err error
	if c.History, err = history.NewWriter(&file, history.Header{Clock: history.Virtual}); err != nil {
		t.Fatal(err)
	}
	r, err := run(chamber.Algorithm(chamber.Sound), c)
	if err != nil || r.ViolationCount > 0 {
		t.Fatalf("%v, %v", r.Violations, err)
	}
	all := map[string][]string{}
	again := bytes.NewReader(file.Bytes())
	in, err := history.NewReader("run", &file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := in.Next()
		if err != nil {
			break
		}
		if e.Do == history.Try {
			all[e.User] = append(all[e.User], e.Group)
		}
	}
	if in, err = history.NewReader("run", again); err != nil {
		t.Fatal(err)
	}
	judged, err := history.Read([]*history.Reader{in}, history.Bounds{})
	if err != nil || !judged.Accepted || judged.Measures.Entries != r.Entries || judged.Measures.Waiting != r.Waiting || !judged.Files[0].Ended {
		t.Errorf("the history is judged %+v, %v; want as the run, %+v", judged, err, r)
	}
	return all
}

// Users want on a network what they want in the simulator, and its history is that of an ordinary program.
func TestWorkload(t *testing.T) {
	c := brief()
	c.Groups, c.PerRequest, c.Hold, c.Think = 9, 2, sim.Exponential(time.Millisecond), sim.Uniform(0, 2*time.Millisecond)
	got := wishes(t, c, func(a protocol.Algorithm[chamber.Message], c sim.Config) (sim.Result, error) {
		return Run(t.Context(), a, c, nil)
	})
	want := wishes(t, c, sim.Run[chamber.Message])
	if len(want) != 3 || !maps.EqualFunc(got, want, func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") }) {
		t.Errorf("users want %v, want %v", got, want)
	}
}

// A holder comes down to a group where its algorithm lets it.
func TestDowngrade(t *testing.T) {
	c := brief()
	c.N, c.Clients, c.Downgrade, c.Wants = 4, 3, 1, []protocol.Groups{"!r", "r", "r"}
	c.Hold = sim.Constant(5 * time.Millisecond)
	if r := mustRun(t, sigma.Algorithm, c); r.Entries != 12 || r.ViolationCount != 0 || r.Downgrades != 4 || r.Sessions == 0 {
		t.Errorf("%+v", r)
	}
}

// Two that are inside together are noticed.
func TestOverlap(t *testing.T) {
	c := brief()
	c.Wants, c.Entries, c.Hold = []protocol.Groups{"!w"}, []int{2}, sim.Constant(50*time.Millisecond)
	r := mustRun(t, chamber.Algorithm(chamber.IgnoresGroups), c)
	if r.ViolationsOf[history.Exclusion] == 0 || !strings.Contains(strings.Join(r.Violations, "\n"), "is inside") {
		t.Errorf("%v, want a violation of exclusion", r.Violations)
	}
}

// breaking is an algorithm whose processes break.
func breaking() protocol.Algorithm[ricartagrawala.Message] {
	a := ricartagrawala.Algorithm
	inner := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[ricartagrawala.Message] {
		return broken{inner(id, c)}
	}
	return a
}

// A process that breaks ends a run, and so does one that gives nothing to anybody.
func TestBreaks(t *testing.T) {
	c := brief()
	c.Entries = []int{2}
	if r := mustRun(t, breaking(), c); r.ViolationsOf["node"] == 0 || !strings.Contains(r.Violations[0], "broken") {
		t.Errorf("violations %v", r.Violations)
	}

	c.Entries = []int{2, 2, 2}
	r := newRun(c, &world.Rules{})
	r.began, r.cancel = time.Now().Add(-time.Hour), func() {}
	if r.look(); r.monitor.Total() != 1 || r.monitor.Counts()["stuck"] != 1 || !r.over {
		t.Errorf("after an hour without anything: %v", r.monitor.Violations())
	}
	r.over, r.users[1] = false, &user{busy: true}
	if r.look(); r.monitor.Total() != 1 {
		t.Error("who thinks is stuck")
	}
}

// broken panics as its user leaves.
type broken struct {
	protocol.Process[ricartagrawala.Message]
}

func (b broken) Step(ev protocol.Event[ricartagrawala.Message], out *protocol.Out[ricartagrawala.Message]) {
	if ev.Kind == protocol.Exit {
		panic("broken")
	}
	b.Process.Step(ev, out)
}

// What ends early leaves nothing behind but a history with an end.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := brief()
	c.Hold = sim.Constant(time.Hour)
	c.Progress = func(sim.Progress) { cancel() }
	var file bytes.Buffer
	var err error
	if c.History, err = history.NewWriter(&file, history.Header{Clock: history.Virtual}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(ctx, ricartagrawala.Algorithm, c, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if text := file.String(); !strings.Contains(text, `"do":"try"`) || !strings.Contains(text, `"do":"end"`) {
		t.Errorf("a history without an end: %s", text)
	}
	if _, err := Run(ctx, ricartagrawala.Algorithm, brief(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("before all have met: %v", err)
	}
}

// What a network does not have is refused by name, before anything is opened.
func TestRefused(t *testing.T) {
	refuses := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(*sim.Config){
		"crash-every: not on a network: faults are drawn in virtual time": func(c *sim.Config) { c.CrashEvery = time.Second },
		"loss: not on a network: nodes talk over TCP":                     func(c *sim.Config) { c.Loss = 0.1 },
		"digest: not on a network":                                        func(c *sim.Config) { c.Digest = true },
		"warmup: not on a network":                                        func(c *sim.Config) { c.Warmup = 1 },
		"patience: not on a network":                                      func(c *sim.Config) { c.Patience = 7 },
		"780 pairs: on a network of one machine want at most 512":         func(c *sim.Config) { c.N = 40 },
		"nobody enters":            func(c *sim.Config) { c.Entries = []int{0} },
		"its users want no groups": func(c *sim.Config) { c.Wants = []protocol.Groups{"a"} },
	} {
		c := brief()
		change(&c)
		_, err := Run(t.Context(), ricartagrawala.Algorithm, c, nil)
		refuses(err, want)
	}
	_, err := Run(t.Context(), bully.Algorithm, sim.Config{Config: protocol.Config{N: 3}}, nil)
	refuses(err, "nobody tries in an election")
	_, err = Run(t.Context(), wme.First, sim.Config{Config: protocol.Config{N: 3}}, nil)
	refuses(err, "operations on a replicated object")
	_, err = Run(t.Context(), dijkstra.Algorithm, brief(), nil)
	refuses(err, "a network has no registers")
	_, err = Run(t.Context(), centralised.Successor, brief(), nil)
	refuses(err, "its detector is never wrong")
	_, err = Run(t.Context(), tokengme.WithClients, brief(), nil)
	refuses(err, "tokengme/clients: its members talk to clients and to each other")
	c := brief()
	c.N, c.Options = 4, map[string]int64{"promise": 1, "direct": 1}
	_, err = Run(t.Context(), sigma.Algorithm, c, nil)
	refuses(err, "clients have no connections to each other")
}
