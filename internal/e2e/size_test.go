package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// atOnce is how many locks a client process asks for at a time.
const atOnce = 64

// A memory is what one process needs.
type memory struct {
	Heap int64 // bytes that are reachable after two collections
	RSS  int64 // bytes
}

// crowd obeys the lines of stdin: hold COUNT, release, names COUNT, memory, sleep. It
// answers each.
func crowd(ctx context.Context, c *poundlock.Client, label string) error {
	var held []*poundlock.Grant
	out := json.NewEncoder(os.Stdout)
	used := 0 // names so far: each is used once
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		order, argument, _ := strings.Cut(in.Text(), " ")
		count, _ := strconv.Atoi(argument)
		var err error
		switch order {
		case "hold":
			held = make([]*poundlock.Grant, count)
			err = load.Each(count, atOnce, func(k int) (err error) {
				held[k], err = c.Mutex(fmt.Sprintf("held/%s/%d", label, k)).Lock(ctx)
				return err
			})
		case "names":
			err = load.Each(count, atOnce, func(k int) error {
				g, err := c.Mutex(fmt.Sprintf("once/%s/%d", label, used+k)).Lock(ctx)
				return errors.Join(err, unlock(g))
			})
			used += count
		case "release":
			err = load.Each(len(held), atOnce, func(k int) error { return unlock(held[k]) })
			held = nil
		case "memory":
			m := memory{RSS: rss(os.Getpid())}
			debug.FreeOSMemory() // a collection, and another one
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			m.Heap = int64(s.HeapAlloc)
			if err := out.Encode(m); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println("done")
	}
	fmt.Println("bye")
	return in.Err()
}

func unlock(g *poundlock.Grant) error {
	if g == nil {
		return nil
	}
	return g.Unlock()
}

// rss is the resident memory of a process, 0 where there is no /proc.
func rss(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if kB, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			k, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kB), "kB")), 10, 64)
			return k << 10
		}
	}
	return 0
}

// serverMemory asks the admin port of server i twice, each time after a collection.
func (s *scale) serverMemory(i int) (m memory) {
	c := s.c
	c.t.Helper()
	m.RSS = rss(c.procs[i].Process.Pid)
	for range 2 {
		reply, err := http.Get("http://" + s.admin[i] + "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			c.t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if k, ok := strings.CutPrefix(line, "# HeapAlloc = "); ok {
				if m.Heap, err = strconv.ParseInt(strings.TrimSpace(k), 10, 64); err != nil {
					c.t.Fatal(err)
				}
			}
		}
	}
	return m
}

// A scale is who is measured.
type scale struct {
	c       *cluster
	admin   []string // the admin port of each server
	clients []*process
}

// startScale starts four servers with admin ports.
func startScale(t *testing.T, flags ...string) *scale {
	t.Helper()
	s := &scale{}
	for range 4 {
		s.admin = append(s.admin, proctest.FreeAddr(t))
	}
	s.c = startClusterWith(t, 4, func(i int) []string {
		return append([]string{"--admin", s.admin[i]}, flags...)
	})
	return s
}

func (s *scale) do(order string) {
	s.c.t.Helper()
	for _, p := range s.clients {
		p.say(order)
	}
	for _, p := range s.clients {
		if line := p.hear(); line != "done" {
			s.c.t.Fatalf("%s: %s", order, line)
		}
	}
}

// weigh measures the servers and then the clients.
func (s *scale) weigh() (servers, clients []memory) {
	s.c.t.Helper()
	for i := range s.c.procs {
		servers = append(servers, s.serverMemory(i))
	}
	for _, p := range s.clients {
		p.say("memory")
		var m memory
		if err := json.Unmarshal([]byte(p.hear()), &m); err != nil {
			s.c.t.Fatal(err)
		}
		clients = append(clients, m)
	}
	return servers, clients
}

// TestSize is the memory of many held locks, and of many names that are used once:
// the first is printed and bounded, the second must be given back.
func TestSize(t *testing.T) {
	lane.CI.Need(t, "ten thousand locks held, and what idles beside them, take half a minute")
	t.Parallel()
	held, names := 10_000, 50_000
	if lane.Long.Runs() {
		held, names = 100_000, 1_000_000
	} else {
		t.Logf("SHORTENED to %d held locks and %d names: TEST_LANE=long makes it 100000 and 1000000", held, names)
	}
	const clients = 2 // one may hold 65 536
	s := startScale(t)
	for k := range clients {
		a := clientArgs{Mode: "crowd", Servers: s.c.servers, Label: strconv.Itoa(k)}
		s.clients = append(s.clients, startClient(t, a))
	}
	for _, p := range s.clients {
		if line := p.hear(); line != "ready" {
			t.Fatal(line)
		}
	}
	before := s.weight()
	t.Logf("at the start: %v", before)

	began := time.Now()
	s.do(fmt.Sprint("hold ", held/clients))
	t.Logf("%d locks taken in %v", held, time.Since(began).Round(time.Millisecond))
	inside := s.weight()
	perServer := (inside.server.Heap - before.server.Heap) / int64(held)
	perClient := (inside.client.Heap - before.client.Heap) * clients / int64(held)
	t.Logf("held: %v", inside)
	t.Logf("bytes a held lock: %d at a server, %d at its client", perServer, perClient)
	const idle = 10 * time.Second // as CHECKs go
	load := busy(idle, []*exec.Cmd{s.c.procs[0], s.clients[0].cmd})
	t.Logf("while %d locks are held: %.1f %% of one processor at a server, %.1f %% at a client", held, load[0], load[1])
	for _, x := range []struct {
		where      string
		took, most int64
	}{{"a server", perServer, 500}, {"its client", perClient, 1150}} {
		if x.took > x.most {
			t.Errorf("a held lock takes %d bytes at %s, want at most %d", x.took, x.where, x.most)
		}
	}

	s.do("release")
	began = time.Now()
	s.do(fmt.Sprint("names ", names/clients))
	took := time.Since(began)
	t.Logf("%d names used once in %v, %.0f a second", names, took.Round(time.Millisecond), float64(names)/took.Seconds())
	const grace = 10 * time.Second // for so long servers remember the token of an idle lock
	s.canTell(t, before, int(float64(names)*min(1, grace.Seconds()/took.Seconds())))
	time.Sleep(grace + time.Second)
	var after weight
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		after = s.weight()
		if after.server.Heap <= allowed(before.server.Heap) && after.client.Heap <= allowed(before.client.Heap) || time.Now().After(end) {
			break
		}
	}
	t.Logf("at the end: %v", after)
	for _, x := range []struct {
		who        string
		begin, now int64
	}{{"server", before.server.Heap, after.server.Heap}, {"client", before.client.Heap, after.client.Heap}} {
		if x.now > allowed(x.begin) {
			t.Errorf("a %s has %d bytes in use that were %d at the start, want at most %d", x.who, x.now, x.begin, allowed(x.begin))
		}
	}
	for _, p := range s.clients {
		p.end()
	}
}

// allowed is how many bytes may be in use after everything was given back.
func allowed(begin int64) int64 { return begin*12/10 + 8<<20 }

// canTell shows that names which servers do not forget would be noticed: those of the
// last ten seconds are not forgotten yet.
func (s *scale) canTell(t *testing.T, before weight, remembered int) {
	t.Helper()
	if remembered < 40_000 {
		t.Logf("NOT SHOWN that names which are never forgotten would be noticed: this machine used only %d in 10s", remembered)
		return
	}
	if now := s.weight(); now.server.Heap <= allowed(before.server.Heap) {
		t.Errorf("a server that remembers %d names has only %d bytes in use: nothing can fail here", remembered, now.server.Heap)
	}
}

// A weight is the median of the servers and the most of the clients.
type weight struct{ server, client memory }

func (w weight) String() string {
	mb := func(b int64) float64 { return float64(b) / (1 << 20) }
	return fmt.Sprintf("a server has %.1f MB in use, %.1f MB resident; a client %.1f and %.1f",
		mb(w.server.Heap), mb(w.server.RSS), mb(w.client.Heap), mb(w.client.RSS))
}

func (s *scale) weight() weight {
	s.c.t.Helper()
	servers, clients := s.weigh()
	heap := func(a, b memory) int { return int(a.Heap - b.Heap) }
	slices.SortFunc(servers, heap)
	return weight{servers[len(servers)/2], slices.MaxFunc(clients, heap)}
}

// busy is the processor time of each process in a period, as percentage of one
// processor.
func busy(period time.Duration, all []*exec.Cmd) (percent []float64) {
	begin := make([]time.Duration, len(all))
	for i, p := range all {
		begin[i] = cpuTime(p.Process.Pid)
	}
	time.Sleep(period)
	for i, p := range all {
		percent = append(percent, 100*(cpuTime(p.Process.Pid)-begin[i]).Seconds()/period.Seconds())
	}
	return percent
}

// cpuTime is the time that a process has had on processors, in ticks of 10 ms; 0 where
// there is no /proc.
func cpuTime(pid int) (d time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	for _, f := range fields[11:13] { // utime and stime
		k, _ := strconv.ParseInt(f, 10, 64)
		d += time.Duration(k) * 10 * time.Millisecond
	}
	return d
}
