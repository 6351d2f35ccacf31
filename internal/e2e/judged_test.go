package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

// A judged is a cluster in trouble within its budget: one fault at a time, the next one
// when everybody who waited or was inside then is done.
type judged struct {
	t         *testing.T
	random    *rand.Rand
	c         *cluster
	net       *proxies
	j         *journal
	lease     time.Duration
	resources []*resource
	lives     map[string]int    // of each client
	labels    map[string]string // of the present lives
}

// The clients of these locks.
var judgedLocks = [][]string{names("c1 c2 c3"), names("c4 c5 c6")}

func startJudged(t *testing.T, seed uint64) *judged {
	t.Helper()
	const clockBound = 5 * time.Millisecond
	x := &judged{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), j: newJournal(t), lease: time.Second,
		lives: map[string]int{}, labels: map[string]string{},
		net: &proxies{clients: slices.Concat(judgedLocks...), flags: func(int) []string {
			return []string{"--clock-bound", clockBound.String()}
		}},
	}
	x.c = x.net.start(t)
	for range judgedLocks {
		x.resources = append(x.resources, newResource(t, false))
	}
	for _, name := range x.net.clients {
		x.startClient(name)
	}
	x.c.await("all have sessions", complete(len(x.net.clients)))
	return x
}

// startClient starts the next life of a client.
func (x *judged) startClient(name string) {
	x.t.Helper()
	lock := slices.IndexFunc(judgedLocks, func(clients []string) bool { return slices.Contains(clients, name) })
	x.lives[name]++
	label := fmt.Sprintf("%s life %d", name, x.lives[name])
	x.labels[name] = label
	x.j.start(x.net.client(name, clientArgs{
		Lease: x.lease, Name: fmt.Sprint("lock ", lock), Label: label, Hold: 20 * time.Millisecond,
		work: work{
			ClockBound: 5 * time.Millisecond, Deadline: 5 * time.Second, Pause: 10 * time.Millisecond,
			Resource: x.resources[lock].socket,
		},
	}))
}

// The faults, each within the budget: of four servers one may lose its memory while
// somebody waits or holds, and clients may do anything.
var faults = []struct {
	name string
	do   func(x *judged)
}{
	{"a server is killed", func(x *judged) {
		i := x.random.IntN(4)
		x.c.kill(i)
		x.c.start(i)
	}},
	{"a holder is stopped", func(x *judged) {
		for range 100 {
			label := x.labels[x.anybody()]
			p := x.j.workers[label].cmd.Process
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				x.t.Error(err)
			}
			time.Sleep(10 * time.Millisecond) // until all that it said is heard
			inside := x.j.inside(label)
			if inside {
				x.pause()
			}
			if err := p.Signal(syscall.SIGCONT); err != nil {
				x.t.Error(err)
			}
			if inside {
				return
			}
		}
		x.t.Error("nobody was stopped while inside")
	}},
	{"a client is cut off", func(x *judged) {
		servers := names("s1 s2 s3 s4")[:1+x.random.IntN(4)]
		x.net.cut(split{faultnet.Both, []string{x.anybody()}, servers})
		x.pause()
		x.net.heal()
	}},
	{"a client is killed", func(x *judged) {
		name := x.anybody()
		x.j.killed(x.labels[name])
		x.startClient(name)
	}},
}

// anybody is a client, most likely one that is inside.
func (x *judged) anybody() string {
	last := x.j.await(func(r record) bool { return r.What == "entered" && r.At > clock.Now()-int64(100*time.Millisecond) })
	for name, label := range x.labels {
		if last != nil && label == last.Client {
			return name
		}
	}
	return x.net.clients[x.random.IntN(len(x.net.clients))]
}

// pause is longer than a lease.
func (x *judged) pause() { time.Sleep(x.lease * 5 / 4) }

// inside says that a worker was last heard of when it entered.
func (j *journal) inside(label string) (inside bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if r.Client == label && r.What != "stalled" {
			inside = r.What == "entered"
		}
	}
	return inside
}

// round does one fault, and waits until it is over.
func (x *judged) round(k int) {
	x.t.Helper()
	f := faults[k%len(faults)]
	f.do(x)
	over := clock.Now()
	x.c.await("after: "+f.name, complete(len(x.net.clients)))
	for _, label := range x.labels {
		done := x.j.await(func(r record) bool {
			return r.Client == label && r.At > over && (r.What == "left" || r.What == "failed")
		})
		if done == nil {
			x.t.Errorf("after: %s: %s waits or holds for ever", f.name, label)
		}
	}
}

// killed ends a worker with SIGKILL.
func (j *journal) killed(label string) {
	p := j.workers[label]
	delete(j.workers, label)
	_ = p.cmd.Process.Kill()
	j.reading.Go(func() { _ = p.cmd.Wait() }) // says that it was killed
}

// TestJudged: a cluster in trouble is judged by its event files, and by porcupine; the
// same files with a double grant in them are rejected by both.
func TestJudged(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "five seconds of faults of each kind")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := startJudged(t, seed)
	rounds := 0
	enough := func() bool { return rounds == len(faults) }
	began := time.Now()
	if full(t, "one fault of each kind", "60s of faults") {
		enough = func() bool { return time.Since(began) >= time.Minute }
	}
	for ; !enough(); rounds++ {
		x.round(rounds)
	}
	took := time.Since(began)
	h := x.j.end()
	r := x.j.judge()
	t.Logf("%d faults in %v: %s; %d events, waiting %+v", rounds, took.Round(time.Millisecond), h.summary(), r.Events, r.Measures.Waiting)
	report(t, "the history", problems(r))
	report(t, "errors", h.strange(lockLost, noQuorum, notAcquired))
	for i, resource := range x.resources {
		t.Logf("resource %d: %v", i, resource)
		report(t, "the resource", resource.problems())
	}
	if !slices.ContainsFunc(r.Files, func(f history.File) bool { return !f.Ended }) {
		t.Error("no killed client is in the history")
	}
	report(t, "porcupine", opinion(t, operations(t, x.j.files), x.resources...))
	x.accepts(x.j.files, true)

	planted := plant(t, x.j.files)
	r, err := judgeFiles(planted, history.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if overlaps(r) != 1 {
		t.Errorf("a planted double grant: %q", problems(r))
	}
	if illegal := opinion(t, operations(t, planted)); len(illegal) != 1 {
		t.Errorf("porcupine rejects %q: want one lock", illegal)
	}
	x.accepts(planted, false)
}

// accepts looks at how event files are judged.
func (x *judged) accepts(files []string, want bool) {
	x.t.Helper()
	r, err := recorder.Judge(history.Bounds{}, files...)
	if err != nil {
		x.t.Fatal(err)
	}
	if r.Accepted != want || r.Measures.Entries == 0 {
		x.t.Errorf("accepted %v, want %v: %v", r.Accepted, want, r.Violations)
	}
}

// plant copies event files, and lets one user enter while another one is inside: of two
// sections of one lock that follow each other the second one begins within the first,
// where its user waited already.
func plant(t *testing.T, names []string) (planted []string) {
	t.Helper()
	type step struct {
		history.Event
		file, line int
	}
	var steps []step
	lines := make([][]string, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = strings.Split(string(text), "\n")
		for k, line := range lines[i][1:] {
			var e history.Event
			if json.Unmarshal([]byte(line), &e) == nil {
				steps = append(steps, step{e, i, k + 1})
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.At - b.At) })
	tried := map[int]int64{}
	entered := map[string]step{} // by lock: the last crit, if its exit is the next event of its user
	left := map[string]step{}
	done := false
	for _, s := range steps[len(steps)/2:] {
		switch s.Do {
		case history.Try:
			tried[s.file] = s.At
		case history.Crit:
			before, after := entered[s.Lock], left[s.Lock]
			if try, known := tried[s.file]; known && after.At != 0 && before.file == after.file && before.file != s.file &&
				after.At-before.At > 1000 && try < before.At {
				s.At = (before.At + after.At) / 2
				line, err := json.Marshal(s.Event)
				if err != nil {
					t.Fatal(err)
				}
				lines[s.file][s.line] = string(line)
				done = true
			}
			entered[s.Lock] = s
			delete(left, s.Lock)
		case history.Exit:
			left[s.Lock] = s
		}
		if done {
			break
		}
	}
	if !done {
		t.Fatal("no two sections follow each other while somebody waits")
	}
	dir := t.TempDir()
	for i, name := range names {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(strings.Join(lines[i], "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		planted = append(planted, file)
	}
	return planted
}
