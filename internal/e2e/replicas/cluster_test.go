package replicas

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/sections"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runMember(role))
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

const (
	members = 5
	users   = 16
)

// A cluster is the members, and the links between them.
type cluster struct {
	t      *testing.T
	random *rand.Rand
	args   memberArgs // of all
	addrs  []string
	net    *faultnet.Net
	procs  []*process
	lives  []int

	mu      sync.Mutex
	records []record   // of all lives
	changes sync.Mutex // of procs, while a second fault looks at them
}

// A process is one life of a member.
type process struct {
	id  int
	cmd *exec.Cmd
	in  io.WriteCloser
	log proctest.Log
	out sync.WaitGroup // its reader

	mu     sync.Mutex
	seen   map[string]int // records by What
	ledger []entry
}

func start(t *testing.T, seed uint64, a memberArgs) *cluster {
	t.Helper()
	c := &cluster{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), args: a,
		procs: make([]*process, members), lives: make([]int, members),
	}
	var names []string
	var servers []faultnet.Server
	for i := range members {
		names = append(names, fmt.Sprint("s", i+1))
		c.addrs = append(c.addrs, proctest.FreeAddr(t))
		servers = append(servers, faultnet.Server{Name: names[i], Addr: c.addrs[i]})
	}
	var err error
	if c.net, err = faultnet.NewNet(names, servers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range c.procs {
			p.kill()
			if log := p.log.String(); t.Failed() && log != "" {
				t.Logf("end of the log of s%d:\n%s", p.id+1, log[max(0, len(log)-4000):])
			}
		}
		c.net.Close()
	})
	for i := range members {
		c.start(i)
	}
	return c
}

// start starts the next life of member i.
func (c *cluster) start(i int) {
	c.t.Helper()
	c.lives[i]++
	a := c.args
	a.Name, a.Life, a.Listen = fmt.Sprint("s", i+1), c.lives[i], c.addrs[i]
	a.Users = users / members
	if i < users%members {
		a.Users++
	}
	for _, s := range c.net.Servers(fmt.Sprint("s", i+1)) {
		a.Peers = append(a.Peers, sections.Peer{Name: s.Name, Addr: s.Addr})
	}
	role, err := json.Marshal(a)
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{id: i, cmd: exec.Command(os.Args[0]), seen: map[string]int{}}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(role))
	p.cmd.Stderr = &p.log
	out, errOut := p.cmd.StdoutPipe()
	in, errIn := p.cmd.StdinPipe()
	if err := errors.Join(errOut, errIn, p.cmd.Start()); err != nil {
		c.t.Fatal(err)
	}
	p.in = in
	p.out.Go(func() { c.read(p, out) })
	c.changes.Lock()
	c.procs[i] = p
	c.changes.Unlock()
}

// read takes the records of a life.
func (c *cluster) read(p *process, out io.Reader) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		var r record
		if err != nil || json.Unmarshal(line, &r) != nil {
			return // the last line may be half of one
		}
		p.mu.Lock()
		p.seen[r.What]++
		if r.What == ledgerIs {
			p.ledger = r.Entries
		}
		p.mu.Unlock()
		c.mu.Lock()
		if r.What != ledgerIs {
			c.records = append(c.records, r)
		}
		c.mu.Unlock()
	}
}

func (p *process) told(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[what]
}

// kill ends a life, without a warning, and waits for its last records.
func (p *process) kill() {
	if p == nil || p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Kill()
	p.out.Wait()
	p.cmd.Wait()
}

func (p *process) tell(line string) { fmt.Fprintln(p.in, line) }

func (c *cluster) await(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// awaitOutcomes waits until operations have outcomes.
func (c *cluster) awaitOutcomes(k int) {
	c.t.Helper()
	c.await("operations go on", func() bool { return c.told(done) >= k })
}

// told is how many records of a kind the present lives have written.
func (c *cluster) told(what string) (sum int) {
	for _, p := range c.procs {
		sum += p.told(what)
	}
	return sum
}

func (c *cluster) pause(periods float64) { time.Sleep(time.Duration(periods * float64(c.args.Lease))) }

// some are k members.
func (c *cluster) some(k int) []int { return c.random.Perm(members)[:k] }

// The faults. Each is over when it returns: a majority of members has always taken part since the
// beginning, or the life of its successor has got the object. Then operations go on.
func (c *cluster) faults() []func(c *cluster) {
	all := []func(c *cluster){(*cluster).suspicions, (*cluster).kills, (*cluster).stops, (*cluster).cuts}
	if c.args.Dir != "" {
		all = append(all, (*cluster).blackouts)
	}
	return all
}

// suspicions are false ones, of whoever is inside among others.
func (c *cluster) suspicions() {
	for range 20 {
		pair := c.some(2)
		c.procs[pair[0]].tell(fmt.Sprint("suspect s", pair[1]+1))
		c.pause(0.1)
	}
}

// kills end one or two of five members, which come back.
func (c *cluster) kills() {
	c.restart(c.some(1 + c.random.IntN(2)))
}

// blackouts end a majority or all of the members, which are durable, and come back.
func (c *cluster) blackouts() { c.restart(c.some(members - c.random.IntN(members/2+1))) }

func (c *cluster) restart(ids []int) {
	c.t.Helper()
	for _, i := range ids {
		c.procs[i].kill()
	}
	c.pause(3 * c.random.Float64())
	for _, i := range ids {
		c.start(i)
	}
	c.await("those that are back take part", func() bool {
		return !slices.ContainsFunc(ids, func(i int) bool { return c.procs[i].told(ready) == 0 })
	})
}

// stops hold one or two members for ten periods of the detector.
func (c *cluster) stops() {
	ids := c.some(1 + c.random.IntN(2))
	for _, i := range ids {
		c.procs[i].cmd.Process.Signal(syscall.SIGSTOP)
	}
	c.pause(10)
	for _, i := range ids {
		c.procs[i].cmd.Process.Signal(syscall.SIGCONT)
	}
}

// cuts part one or two members from the others, or two from each other.
func (c *cluster) cuts() {
	order := c.random.Perm(members)
	k := 1 + c.random.IntN(2)
	one, others := c.names(order[:k]), c.names(order[k:])
	if c.random.IntN(3) == 0 {
		others = others[:1]
	}
	c.part(one, others)
	c.pause(2 + 3*c.random.Float64())
	c.join(one, others)
}

func (c *cluster) names(ids []int) (all []string) {
	for _, i := range ids {
		all = append(all, fmt.Sprint("s", i+1))
	}
	return all
}

// trouble lasts for a time, and until there was every fault.
func (c *cluster) trouble(length time.Duration) {
	faults := c.faults()
	for end, k := time.Now().Add(length), 0; k < len(faults) || time.Now().Before(end); k++ {
		if k%len(faults) == 0 {
			c.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		}
		before := c.told(done)
		c.beside(faults[k%len(faults)])
		c.awaitOutcomes(min(before, c.told(done)) + 1)
	}
}

// beside has a fault happen and, half of the time, second ones at any moment of it. With two members
// gone and a link cut there may be no majority, which is over with the link at the latest.
func (c *cluster) beside(fault func(c *cluster)) {
	over := make(chan struct{})
	var second sync.WaitGroup
	if c.random.IntN(2) == 0 {
		random := rand.New(rand.NewPCG(c.random.Uint64(), 0))
		second.Go(func() { c.second(random, over) })
	}
	defer second.Wait()
	defer close(over)
	fault(c)
}

// second suspects members by mistake, and cuts links between two of them for a while each, until
// another fault is over. They may be down, or coming back.
func (c *cluster) second(random *rand.Rand, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(random.Float64() * float64(c.args.Lease))):
		}
		pair := random.Perm(members)[:2]
		if random.IntN(2) == 0 {
			c.changes.Lock()
			by := c.procs[pair[0]]
			c.changes.Unlock()
			by.tell(fmt.Sprint("suspect s", pair[1]+1))
			continue
		}
		one, other := c.names(pair[:1]), c.names(pair[1:])
		c.part(one, other)
		c.pause(2 * random.Float64())
		c.join(one, other)
	}
}

func (c *cluster) part(some, others []string) {
	c.net.Cut(faultnet.Both, some, others)
	c.net.Cut(faultnet.Both, others, some)
}

func (c *cluster) join(some, others []string) {
	c.net.Heal(some, others)
	c.net.Heal(others, some)
}

// finish lets all users leave, waits until the copies are equal, and returns what is wrong.
func (c *cluster) finish() (wrong []string) {
	c.t.Helper()
	for _, p := range c.procs {
		p.tell("stop")
	}
	c.await("all users have left", func() bool {
		return !slices.ContainsFunc(c.procs, func(p *process) bool { return p.told(stopped) == 0 })
	})
	final, equal := c.ledgers()
	for deadline := time.Now().Add(10 * time.Second); !equal && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
		final, equal = c.ledgers()
	}
	if !equal {
		wrong = append(wrong, "the copies are not equal")
	}
	for _, p := range c.procs {
		p.kill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report(final)
	return append(wrong, judged(c.records, final)...)
}

// ledgers asks all members for their copies.
func (c *cluster) ledgers() (first []entry, equal bool) {
	c.t.Helper()
	asked := make([]int, members)
	for i, p := range c.procs {
		asked[i] = p.told(ledgerIs)
		p.tell("ledger")
	}
	c.await("all copies are told", func() bool {
		return !slices.ContainsFunc(c.procs, func(p *process) bool { return p.told(ledgerIs) == asked[p.id] })
	})
	equal = true
	for i, p := range c.procs {
		p.mu.Lock()
		if i == 0 {
			first = p.ledger
		}
		equal = equal && slices.Equal(first, p.ledger)
		p.mu.Unlock()
	}
	return first, equal
}

// report logs what there was.
func (c *cluster) report(final []entry) {
	c.t.Helper()
	all, _ := fates(c.records)
	verdicts := map[string]int{}
	for _, f := range all {
		verdicts[f.verdict]++
	}
	told := map[string]int{}
	for _, r := range c.records {
		told[r.What]++
		if r.What == failed && c.args.Break == "" {
			c.t.Errorf("%s: %s", r.Op, r.Error)
		}
	}
	c.t.Logf("%d operations: %d executed and told, %d told that they are not, %d of which nobody was told; %d in the ledger; "+
		"%d holders were ejected; lives %v", len(all), verdicts[done], verdicts[refused], verdicts[""], len(final), told[ejected], c.lives)
}

// run makes trouble for a cluster, and returns what is wrong then.
func run(t *testing.T, seed uint64, a memberArgs, length time.Duration) []string {
	t.Helper()
	c := start(t, seed, a)
	c.awaitOutcomes(20)
	c.trouble(length)
	for c.told(ejected) == 0 { // which ends with the limit of the test, at the latest
		c.suspicions()
	}
	return c.finish()
}

// Every operation has exactly one fate, and its user was told the truth about it; the copies are
// equal in the end, and linearize; ejected holders are told, at the latest with the verdict of their operation.
func TestTruth(t *testing.T) {
	length, lease := 120*time.Second, 500*time.Millisecond
	forms := []memberArgs{{Second: true}, {Second: true, Raft: true}, {}, {Raft: true}}
	if !lane.Long.Runs() {
		length, lease, forms = 3*time.Second, 100*time.Millisecond, forms[:1]
		t.Logf("SHORTENED to %v, WME-2 with Paxos, and a detector of %v: TEST_LANE=long makes it 120s, both forms, raft, and 500ms",
			length, lease)
	}
	for k := range 2 * len(forms) {
		a, durable := forms[k/2], k%2 == 1
		a.Lease = lease
		t.Run(fmt.Sprintf("WME-2: %v, raft: %v, durable: %v", a.Second, a.Raft, durable), func(t *testing.T) {
			if durable {
				a.Dir = t.TempDir()
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			for _, fault := range run(t, seed, a, length) {
				t.Error(fault)
			}
		})
	}
}

// The judge sees what users are told wrongly, and copies that are not equal.
func TestBroken(t *testing.T) {
	wants := map[string]string{
		liar:      "was told that it never will be",
		dreamer:   "was told that it is",
		forgetful: "not equal",
		sharing:   "and its user was told",
		silent:    "is refused, and its user was told of an ejection: false",
	}
	for how, want := range wants {
		if how != liar && how != sharing && !lane.Long.Runs() {
			t.Logf("SHORTENED: TEST_LANE=long runs who %s", how)
			continue
		}
		t.Run(how, func(t *testing.T) {
			for seed := range uint64(20) {
				c := start(t, seed, memberArgs{Lease: 100 * time.Millisecond, Second: true, Break: how})
				c.awaitOutcomes(200)
				for range 10 {
					c.suspicions()
				}
				if how == forgetful {
					c.kills()
				}
				if text := strings.Join(c.finish(), "; "); strings.Contains(text, want) {
					t.Logf("seed %d: %.200s", seed, text)
					return
				}
			}
			t.Error("nobody notices")
		})
	}
}
