package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
)

// roleVariable makes the test binary a member.
const roleVariable = "POUNDLOCK_TEST_MEMBER"

const object = "ledger"

// memberArgs say what a member does: it hosts a copy of the ledger, and has users which enter, do
// some operations, and leave, again and again. It writes records, and takes commands from stdin,
// one a line: suspect NAME, stop, and ledger.
type memberArgs struct {
	Name   string
	Life   int // counts those of this member; the first one does not join
	Listen string
	Peers  []sections.Peer // whose addresses may be links to them
	Lease  time.Duration
	Users  int
	Second bool   // WME-2
	Raft   bool   // consensus by raft, not by Paxos
	Dir    string // where durable members have theirs; "": they are not durable
	Break  string
}

// The broken variants.
const (
	liar      = "says that operations were not executed which were" // one of 64
	dreamer   = "says that operations were executed which were not" // those of an ejected holder
	forgetful = "forgets the last entry of a ledger that it installs"
	silent    = "does not close the channel of a section that is lost" // of one in four
	sharing   = "says of operations that were issued together what became of the first one"
)

// A record is what a member has done. Its order is that of its pipe.
type record struct {
	What    string // one of those below
	At      int64  // by clock.Now
	Op      string // its name: see entry
	Value   uint64 // of done
	Error   string // of failed
	Entries []entry
}

// What records tell.
const (
	ready    = "ready"
	called   = "called"
	done     = "done"
	refused  = "refused" // ErrEjected
	failed   = "failed"  // closed, or anything else
	ejected  = "ejected" // the channel of the section Op is closed
	stopped  = "stopped"
	ledgerIs = "ledger"
)

// An entry is an operation in the ledger: which counts one more under a key.
type entry struct{ Key, Op string }

// A ledger is the object: a counter for each key, and the operations that made them.
type ledger struct {
	a       memberArgs
	mu      sync.Mutex
	entries []entry
	counts  map[string]uint64
}

func (l *ledger) Check(op []byte) error {
	if bytes.Count(op, []byte(" ")) != 1 {
		return fmt.Errorf("%q is not a key and a name", op)
	}
	return nil
}

func (l *ledger) Apply(op []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, name, _ := strings.Cut(string(op), " ")
	return strconv.AppendUint(nil, l.add(entry{key, name}), 10)
}

func (l *ledger) add(e entry) uint64 {
	l.entries = append(l.entries, e)
	l.counts[e.Key]++
	return l.counts[e.Key]
}

func (l *ledger) Snapshot() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b []byte
	for _, e := range l.entries {
		b = protocol.AppendText(protocol.AppendText(b, e.Key), e.Op)
	}
	return b
}

func (l *ledger) Restore(snapshot []byte) (replace func(), err error) {
	next := ledger{counts: map[string]uint64{}}
	r := protocol.Reader{Rest: snapshot}
	for len(r.Rest) > 0 && r.Err == nil {
		next.add(entry{r.Text(), r.Text()})
	}
	if k := len(next.entries); l.a.Break == forgetful && k > 0 {
		next.entries = next.entries[:k-1]
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries, l.counts = next.entries, next.counts
	}, r.Err
}

// runMember is the program of a member.
func runMember(role string) int {
	m := member{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(role), &m.a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := m.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type member struct {
	a memberArgs
	n *sections.Member

	mu  sync.Mutex
	out *json.Encoder
}

func (m *member) note(r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.At = clock.Now()
	m.out.Encode(r)
}

func (m *member) engine() node.Host {
	a := wme.First
	if m.a.Second {
		a = wme.Second
	}
	if m.a.Break == dreamer {
		a.New = dreams(a.New)
	}
	if m.a.Raft {
		return node.HostOf(raft.With(a))
	}
	return node.HostOf(consensus.With(a))
}

// dreams makes processes that tell ejected holders that their open operation succeeded, first.
func dreams(make func(protocol.ID, protocol.Config) protocol.Process[wme.Message]) func(
	protocol.ID, protocol.Config) protocol.Process[wme.Message] {
	return func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		return &dreaming{Process: make(id, c)}
	}
}

type dreaming struct {
	protocol.Process[wme.Message]
	issues bool
}

func (d *dreaming) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	d.issues = d.issues || ev.Kind == protocol.Issue
	from := len(out.Effects)
	d.Process.Step(ev, out)
	effects := append([]protocol.Effect[wme.Message]{}, out.Effects[from:]...)
	out.Effects = out.Effects[:from]
	for _, e := range effects {
		if d.issues && e.Do == protocol.Ejected {
			out.Outcome()
		}
		if e.Do == protocol.Outcome || e.Do == protocol.Ejected {
			d.issues = false
		}
		out.Effects = append(out.Effects, e)
	}
}

func (m *member) run() error {
	copied := &ledger{a: m.a, counts: map[string]uint64{}}
	c := sections.Config{
		Name: m.a.Name, Members: m.a.Peers, Listen: m.a.Listen, Lease: m.a.Lease, Bootstrap: m.a.Life == 1,
		Engine: m.engine(), Objects: map[string]sections.Object{object: copied},
	}
	if m.a.Dir != "" {
		c.Dir = filepath.Join(m.a.Dir, m.a.Name)
	}
	var err error
	if m.n, err = sections.Open(context.Background(), c); err != nil {
		return err
	}
	defer m.n.Close()
	m.note(record{What: ready})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var users sync.WaitGroup
	for u := range m.a.Users {
		users.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				m.visit(ctx, fmt.Sprintf("%s.%d.%d.%d", m.a.Name, m.a.Life, u, k))
				time.Sleep(rand.N(20 * time.Millisecond))
			}
		})
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch verb, arg, _ := strings.Cut(in.Text(), " "); verb {
		case "suspect":
			if err := m.n.Suspect(arg); err != nil {
				return err
			}
		case "stop":
			stop()
			go func() {
				users.Wait()
				m.note(record{What: stopped})
			}()
		case "ledger":
			copied.mu.Lock()
			entries := copied.entries
			copied.mu.Unlock()
			m.note(record{What: ledgerIs, Entries: entries})
		}
	}
	return nil
}

// keys is how many counters there are.
const keys = 8

// visit is one section, and what is done in it.
func (m *member) visit(ctx context.Context, section string) {
	s, err := m.n.Enter(ctx, object)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			m.note(record{What: failed, Error: err.Error()})
		}
		return
	}
	v := stay{m: m, s: s, name: section, lost: s.Ejected()}
	if m.a.Break == silent && rand.N(4) == 0 {
		v.lost = nil
	}
	for k, most := 0, 1+rand.N(3); k < most; k++ {
		switch name := fmt.Sprintf("%s.%d", section, k); rand.N(4) {
		case 0:
			v.operate(name+firstOfTwo, name+secondOfTwo)
		case 1:
			k = v.pipelined(k, 2+rand.N(4))
		default:
			v.operate(name)
		}
		time.Sleep(rand.N(time.Millisecond))
	}
	v.look()
	s.Exit()
}

// A stay is a section, as its user sees it.
type stay struct {
	m    *member
	s    *sections.Section
	name string
	lost <-chan struct{}
	told bool // that it is lost
}

// look notes whether the channel says that the section is lost.
func (v *stay) look() {
	select {
	case <-v.lost:
		if !v.told && errors.Is(v.s.Err(), sections.ErrEjected) {
			v.told = true
			v.m.note(record{What: ejected, Op: v.name})
		}
	default:
	}
}

// What the names of two operations end with that are executed together.
const firstOfTwo, secondOfTwo = "a", "b"

// operate does some operations as one, and notes their verdicts, for which it waits twice now and then.
func (v *stay) operate(names ...string) {
	s := v.s
	ops := make([][]byte, len(names))
	for k, name := range names {
		ops[k] = v.call(name)
	}
	limit := time.Hour
	if rand.N(8) == 0 {
		limit = rand.N(3 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	results := make([][]byte, 1)
	var err error
	if len(ops) == 1 {
		results[0], err = s.Do(ctx, ops[0])
	} else {
		results, err = s.DoAll(ctx, ops...)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		results, err = s.Wait(context.Background())
	}
	if err != nil {
		results = make([][]byte, len(names))
	}
	for k, name := range names {
		v.tell(name, results[k], err)
	}
}

// pipelined issues some operations before it waits for any, from the one with this number on, and returns a number after which the next ones go on.
func (v *stay) pipelined(first, many int) (last int) {
	name := func(k int) string { return fmt.Sprintf("%s.%d", v.name, k) }
	var all []*sections.Operation
	for last = first; last < first+many; last++ {
		o, err := v.s.Start(context.Background(), v.call(name(last)))
		if err != nil {
			v.tell(name(last), nil, err)
			break
		}
		all = append(all, o)
	}
	for k, o := range all {
		if v.m.a.Break == sharing {
			o = all[0]
		}
		result, err := o.Wait(context.Background())
		v.tell(name(first+k), result, err)
	}
	return last
}

// call notes that an operation is called, and returns it.
func (v *stay) call(name string) []byte {
	key := fmt.Sprint("k", rand.N(keys))
	v.m.note(record{What: called, Op: name, Entries: []entry{{key, name}}})
	return []byte(key + " " + name)
}

// tell notes the verdict of an operation.
func (v *stay) tell(name string, result []byte, err error) {
	m := v.m
	switch {
	case err == nil && m.a.Break == liar && rand.N(64) == 0:
		m.note(record{What: refused, Op: name})
	case errors.Is(err, sections.ErrEjected):
		v.look() // by now the channel is closed
		m.note(record{What: refused, Op: name})
	case err == nil:
		value, _ := strconv.ParseUint(string(result), 10, 64)
		m.note(record{What: done, Op: name, Value: value})
	default:
		m.note(record{What: failed, Op: name, Error: err.Error()})
	}
}
