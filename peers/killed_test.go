package peers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/peers"
)

const roleVariable = "POUNDLOCK_TEST_PEER"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runPeer(role))
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// A role is what a process of a trial is told.
type role struct {
	Name      string
	Members   []peers.Peer
	Algorithm string
	Bootstrap bool
	Inside    string // a file that whoever is inside has locked: the system unlocks it when a process is killed
}

// trialLease is longer than a busy machine leaves a process alone.
const trialLease = time.Second

// runPeer is a member with one user, who locks and unlocks as standard input says, and tells what becomes of that.
func runPeer(text string) int {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := peers.Join(ctx, peers.Config{
		Name: r.Name, Members: r.Members, Algorithm: r.Algorithm, Bootstrap: r.Bootstrap, Lease: trialLease,
	})
	if err != nil {
		say("failed %v", err)
		return 1
	}
	say("joined")
	unlock := make(chan struct{})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "unlock" {
			unlock <- struct{}{}
			continue
		}
		go func() {
			g, err := m.Mutex("a").Lock(ctx)
			if err != nil {
				say("failed %v", err)
				return
			}
			f, err := os.OpenFile(r.Inside, os.O_CREATE|os.O_RDWR, 0o600)
			if err == nil {
				err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			}
			if err != nil {
				say("overlap %v", err)
				return
			}
			say("in")
			select {
			case <-unlock:
				f.Close()
				say("out %v", g.Unlock())
			case <-g.Context().Done():
				f.Close()
				say("lost %v", errors.Join(context.Cause(g.Context()), g.Unlock()))
			}
		}()
	}
	return 0
}

// A trial is one system of three processes.
type trial struct {
	t     *testing.T
	role  role
	procs [3]*life
}

// A life is one life of a member.
type life struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	name string
	said chan string
}

// start begins a life of member k.
func (x *trial) start(k int, bootstrap bool) *life {
	x.t.Helper()
	r := x.role
	r.Name, r.Bootstrap = r.Members[k].Name, bootstrap
	text, err := json.Marshal(r)
	if err != nil {
		x.t.Fatal(err)
	}
	p := &life{cmd: exec.Command(os.Args[0]), name: r.Name, said: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err1 := p.cmd.StdoutPipe()
	in, err2 := p.cmd.StdinPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		x.t.Fatal(err)
	}
	p.in, x.procs[k] = in, p
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.said <- s.Text()
		}
		close(p.said)
	}()
	return p
}

func (p *life) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *life) do(what string) { fmt.Fprintln(p.in, what) }

// hear returns what the member says next, and fails if that does not begin with one of these.
func (x *trial) hear(p *life, wants ...string) string {
	x.t.Helper()
	select {
	case line := <-p.said:
		if !slices.ContainsFunc(wants, func(want string) bool { return strings.HasPrefix(line, want) }) {
			x.t.Fatalf("%s says %q, want %q", p.name, line, wants)
		}
		return line
	case <-time.After(2 * patience):
		x.t.Fatalf("%s says nothing, want %q", p.name, wants)
		return ""
	}
}

// silent fails if a member says that it is inside before a while is over.
func (x *trial) silent(p *life) {
	x.t.Helper()
	for over := time.After(trialLease / 2); ; {
		select {
		case line, ok := <-p.said:
			if ok && !strings.HasPrefix(line, "joined") && !strings.HasPrefix(line, "failed") {
				x.t.Fatalf("%s says %q while another one is inside", p.name, line)
			}
			if !ok {
				return
			}
		case <-over:
			return
		}
	}
}

// victims are whom a trial kills and starts again. p2 is inside, and p3 waits.
var victims = map[string]int{"who had it first": 0, "the holder": 1, "a waiter": 2}

// TestKilled: three processes; one of them is killed and started again while p2 is inside, or was. Nobody meets another one inside.
// With recovery all get in afterwards, and the others hear who is down.
func TestKilled(t *testing.T) {
	trials, forms := 1, []string{"tokengme/recovery", "suzuki-kasami", "ricart-agrawala"}
	if lane.CI.Runs() {
		forms = peers.Algorithms()
	}
	if lane.Long.Runs() {
		trials = 200
	} else {
		t.Logf("SHORTENED to %d forms and %d trials of each kind: TEST_LANE=long makes it %d and 200", len(forms), trials, len(peers.Algorithms()))
	}
	for _, form := range forms {
		for what, victim := range victims {
			t.Run(form+", "+what, func(t *testing.T) {
				t.Parallel()
				for range trials {
					killed(t, form, victim)
				}
			})
		}
	}
}

func killed(t *testing.T, form string, victim int) {
	dir := proctest.SocketDir(t)
	x := &trial{t: t, role: role{Inside: filepath.Join(dir, "inside"), Algorithm: form}}
	for k := range x.procs {
		name := fmt.Sprintf("p%d", k+1)
		x.role.Members = append(x.role.Members, peers.Peer{Name: name, Addr: "unix:" + filepath.Join(dir, name)})
	}
	defer func() {
		for _, p := range x.procs {
			p.kill()
		}
	}()
	for k := range x.procs {
		x.start(k, true)
	}
	for _, p := range x.procs {
		x.hear(p, "joined")
	}
	recovers := strings.HasSuffix(form, "recovery")
	name := x.procs[victim].name
	holder, waiter := x.procs[1], x.procs[2]
	holder.do("lock")
	x.hear(holder, "in")
	waiter.do("lock")
	x.silent(waiter)
	x.procs[victim].kill()
	if victim == 1 && recovers { // the waiter goes on, and the next life of the holder does not meet it
		x.hear(waiter, "in")
		holder = waiter
	}
	p := x.start(victim, false)
	p.do("lock")
	x.silent(p)
	if !recovers {
		for _, other := range x.procs {
			if other != p {
				other.do("lock") // who waits already hears of it twice
				if line := x.hear(other, "failed", "lost"); !strings.Contains(line, name) {
					t.Fatalf("%s says %q, and not that %s is down", other.name, line, name)
				}
			}
		}
		return
	}
	holder.do("unlock")
	x.hear(holder, "out <nil>")
	for k, each := range x.procs {
		if each == holder || k == 0 && victim != 0 { // the others wait
			each.do("lock")
		}
	}
	for range x.procs { // whoever is inside leaves
		x.passes()
	}
}

// passes has whoever gets in next leave.
func (x *trial) passes() {
	x.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, p := range x.procs {
			select {
			case line := <-p.said:
				switch {
				case line == "joined":
				case line == "in":
					p.do("unlock")
					x.hear(p, "out <nil>")
					return
				default:
					x.t.Fatalf("%s says %q", p.name, line)
				}
			default:
			}
		}
	}
	x.t.Fatal("nobody gets in")
}
