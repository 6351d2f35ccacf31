package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// quiet are the names that the victim uses.
func quiet(k int) string { return fmt.Sprint("quiet/", k) }

// A window is what a victim saw in one.
type window struct {
	Count    int
	P50, P99 time.Duration // of Lock and Unlock
	Errors   []string
}

// measure obeys the lines of stdin: each is the length of a window, in which it locks
// and unlocks names of its own, one after the other.
func measure(ctx context.Context, c *poundlock.Client) error {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		ms, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		var w window
		var took []time.Duration
		for end := time.Now().Add(time.Duration(ms) * time.Millisecond); len(took) == 0 || time.Now().Before(end); {
			began := time.Now()
			g, err := c.Mutex(quiet(len(took) % 16)).Lock(ctx)
			if err == nil {
				err = g.Unlock()
			}
			if err != nil {
				w.Errors = append(w.Errors, err.Error())
				break
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		if w.Count = len(took); w.Count > 0 {
			w.P50, w.P99 = took[w.Count/2], took[w.Count*99/100]
		}
		if err := out.Encode(w); err != nil {
			return err
		}
	}
	fmt.Println("bye")
	return in.Err()
}

// A front is a cluster with a victim, and what is done to it.
type front struct {
	*scale
	count  map[string]int // of connections to each server, by load
	apis   []string
	victim *process
	length time.Duration // of a window
}

// TestHostile: whatever a hostile client does, others get their locks, at half of the
// time not much later, and a server keeps its memory and its descriptors bounded.
func TestHostile(t *testing.T) { // alone: it compares times
	lane.CI.Need(t, "seven kinds of enemies beside one that works take half a minute")
	f := &front{length: time.Second}
	count := map[string]int{"silent": 1000, "waiters": 10_000}
	if !lane.Long.Runs() {
		f.length = 200 * time.Millisecond
		count["silent"], count["waiters"] = 300, 400
		t.Logf("SHORTENED to %d silent connections, %d waiters and windows of %v: "+
			"TEST_LANE=long makes it 1000, 10000 and 1s",
			count["silent"], count["waiters"], f.length)
	}
	f.scale, f.count = &scale{}, count
	for range 4 {
		f.admin, f.apis = append(f.admin, proctest.FreeAddr(t)), append(f.apis, proctest.FreeAddr(t))
	}
	f.c = startClusterWith(t, 4, func(i int) []string {
		return []string{"--admin", f.admin[i], "--api", f.apis[i], "--log-level", "error", "--max-sessions-per-host", "16384"}
	})
	f.victim = startClient(t, clientArgs{Mode: "measure", Servers: f.c.servers, Label: "victim"})
	if line := f.victim.hear(); line != "ready" {
		t.Fatal(line)
	}
	f.window(t) // warms up
	before := f.serverMemory(0)
	descriptors := f.descriptors()
	enemies := map[string][]*process{}
	kinds := []string{"fuzz", "mute", "requests", "silent", "strangers", "waiters"}
	for _, what := range kinds {
		enemies[what] = f.startEnemies(t, what, count[what])
	}
	var all []*process
	for _, what := range kinds {
		f.bearable(t, what, enemies[what])
		all = append(all, enemies[what]...)
	}
	f.bearable(t, "all", all)
	if ratio := f.endure(t, "rivals", f.startEnemies(t, "rivals", 0), 0); ratio <= most {
		t.Errorf("who waits for rivals waits %.2f times as long: nothing can fail here", ratio)
	}
	for _, p := range all {
		if line := p.end(); line != "null" {
			t.Errorf("servers did what they should not: %s", line)
		}
	}
	if line := f.victim.end(); line != "bye" {
		t.Error(line)
	}
	// The runtime keeps what describes a goroutine for the next one.
	room := int64(8<<20 + 1<<10*(count["silent"]+count["waiters"]))
	eventually(t, "servers have given back what they needed", func() string {
		after, open := f.serverMemory(0), f.descriptors()
		if after.Heap > before.Heap*12/10+room || open > descriptors+20 {
			return fmt.Sprintf("%d bytes in use and %d descriptors, at the start %d and %d",
				after.Heap, open, before.Heap, descriptors)
		}
		t.Logf("at the end: %d bytes in use, %d at the start", after.Heap, before.Heap)
		return ""
	})
}

// eventually waits until f returns "".
func eventually(t *testing.T, what string, f func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		not := f()
		if not == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not true after %v: %s: %s", patience, what, not)
		}
	}
}

// startEnemies starts the processes of one load: four share the waiters.
func (f *front) startEnemies(t *testing.T, what string, count int) (all []*process) {
	t.Helper()
	processes := 1
	if what == "waiters" {
		processes = 4
	}
	for range processes {
		p := startClient(t, clientArgs{
			Mode: "harm", Servers: f.c.servers, Name: what, Count: count / processes, File: strings.Join(f.apis, ","),
		})
		if line := p.hear(); line != "ready" {
			t.Fatal(line)
		}
		all = append(all, p)
	}
	return all
}

// most is how many times as long others may wait.
const most = 3

func (f *front) bearable(t *testing.T, what string, enemies []*process) {
	t.Helper()
	if ratio := f.endure(t, what, enemies, most); ratio > most {
		t.Errorf("%s: others wait %.2f times as long, want at most %d", what, ratio, most)
	}
}

// endure measures the victim in five windows with a load and five without, in turn, and
// returns how many times as long it waits in the best of each: what else this machine
// does makes single windows longer, and an enemy all of its own. While that is more than
// enough, there are more windows, up to 25.
func (f *front) endure(t *testing.T, what string, enemies []*process, enough float64) (ratio float64) {
	t.Helper()
	windows := 5
	var quiet, loud []window
	var worst memory
	var turning time.Duration
	for k := 0; k < windows; k++ {
		quiet = append(quiet, f.window(t))
		began := time.Now()
		f.tell(t, enemies, "on")
		turning += time.Since(began)
		// Who connected may be queued in the kernel: a table of descriptors that grows
		// holds accept up.
		eventually(t, what+": a server has the connections", func() string {
			if open := f.descriptors(); open != 0 && open < f.count[what] {
				return fmt.Sprintf("it has %d, want %d", open, f.count[what])
			}
			return ""
		})
		loud = append(loud, f.window(t))
		if m := rss(f.c.procs[0].Process.Pid); m > worst.RSS {
			worst = memory{f.serverMemory(0).Heap, m}
		}
		f.tell(t, enemies, "off")
		ratio = float64(best(loud)) / float64(best(quiet))
		if enough > 0 && ratio > enough {
			windows = min(windows+1, 25)
		}
	}
	a, b := middle(quiet), middle(loud)
	us := func(d time.Duration) int64 { return d.Microseconds() }
	t.Logf("%-9s  p50 %5d us  p99 %6d us without, p50 %5d us  p99 %6d us with; the best p50 %.2f times as long; "+
		"a server %3d MB in use, %3d MB resident; begun in %v",
		what, us(a.P50), us(a.P99), us(b.P50), us(b.P99), ratio,
		worst.Heap>>20, worst.RSS>>20, (turning / time.Duration(windows)).Round(time.Millisecond))
	return ratio
}

// best is the shortest p50.
func best(all []window) time.Duration {
	return slices.MinFunc(all, func(a, b window) int { return cmp.Compare(a.P50, b.P50) }).P50
}

// middle is the window with the median p50; its p99 is the median one, too.
func middle(all []window) window {
	m := all[0]
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(a.P99, b.P99) })
	m.P99 = all[len(all)/2].P99
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(a.P50, b.P50) })
	m.P50 = all[len(all)/2].P50
	return m
}

func (f *front) window(t *testing.T) (w window) {
	t.Helper()
	f.victim.say(fmt.Sprint(f.length.Milliseconds()))
	if err := json.Unmarshal([]byte(f.victim.hear()), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Errors) > 0 || w.Count == 0 {
		t.Fatalf("the victim locked %d times, and failed with %q", w.Count, w.Errors)
	}
	return w
}

func (f *front) tell(t *testing.T, enemies []*process, order string) {
	t.Helper()
	for _, p := range enemies {
		p.say(order)
	}
	for _, p := range enemies {
		if line := p.hear(); line != "done" {
			t.Fatal(line)
		}
	}
}

// descriptors is how many files and connections the first server has open, 0 where
// there is no /proc.
func (f *front) descriptors() int {
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.c.procs[0].Process.Pid))
	return len(all)
}
