package sections_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/faultdisk"
	"github.com/poundlock/poundlock/internal/journal"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
)

// A list is an object: the operations that it has executed.
type list struct{ ops []string }

func (l *list) Check([]byte) error { return nil }
func (l *list) Apply(op []byte) []byte {
	l.ops = append(l.ops, string(op))
	return fmt.Append(nil, len(l.ops))
}
func (l *list) Snapshot() []byte { return []byte(strings.Join(l.ops, " ")) }
func (l *list) Restore(b []byte) (func(), error) {
	return func() { l.ops = strings.Fields(string(b)) }, nil
}

// A fate is what a user was told of an operation.
type fate struct {
	known, done bool
	result      string
}

// A blackout is three members, of which one or all lose power at some step of the disk of one.
type blackout struct {
	engine    node.Host
	of        int            // whose disk it is
	step      int            // 0: none
	loss      faultdisk.Loss // of what was not synced
	all       bool           // all members lose power then
	lies      bool           // disks say that something is synced that is not: messages leave too early
	cut       int            // bytes after which there is a checkpoint; 0: never here
	unchecked bool           // nobody looks at checksums
	late      bool           // the object is made later, and operations are issued while others are open
}

func (b blackout) String() string {
	return fmt.Sprintf("power of s%d at step %d, loss %d, of all: %v, late: %v", b.of+1, b.step, b.loss, b.all, b.late)
}

// object is the one that is used.
func (b blackout) object() string {
	if b.late {
		return "late"
	}
	return name
}

// A town is where the power goes.
type town struct {
	blackout
	ctx     context.Context
	end     context.CancelFunc
	peers   []sections.Peer
	disks   []*faultdisk.Disk
	members []*sections.Member
	lists   []*list

	working atomic.Int32  // members in their first life
	worked  chan struct{} // closed when none is, and the power stays on

	mu    sync.Mutex
	fates map[string]fate
	wrong []string
}

const members = 3

// run makes some sections at all members, through the loss of power, and returns what is wrong then, and whether there was one.
func (b blackout) run(t *testing.T) (wrong []string, off bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := &town{blackout: b, ctx: ctx, end: cancel, members: make([]*sections.Member, members), lists: make([]*list, members), fates: map[string]fate{}, worked: make(chan struct{})}
	w.working.Store(members)
	listeners := make([]net.Listener, members)
	for i := range members {
		l, err := transport.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		w.peers = append(w.peers, sections.Peer{Name: fmt.Sprint("s", i+1), Addr: l.Addr().String()})
		disk := faultdisk.New(0)
		if i == b.of {
			disk = faultdisk.New(b.step)
		}
		w.disks = append(w.disks, disk)
	}
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() { w.live(i, listeners[i]) })
	}
	all.Wait()
	w.judge()
	for _, m := range w.members {
		if m != nil {
			m.Close()
		}
	}
	return w.wrong, w.isOff(w.disks[b.of])
}

func (w *town) isOff(d *faultdisk.Disk) bool {
	select {
	case <-d.Off():
		return true
	default:
		return false
	}
}

func (w *town) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	w.end()
}

// live is what happens at a member: its users do their work, and again after a loss of power.
func (w *town) live(i int, l net.Listener) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	mine := i == w.of
	if mine || w.all {
		over := make(chan struct{})
		var watch sync.WaitGroup
		defer watch.Wait()
		defer close(over)
		watch.Go(func() {
			select {
			case <-w.disks[w.of].Off():
				w.disks[i].Cut()
				cancel()
			case <-over:
			}
		})
	}
	m, err := w.open(ctx, i, w.disks[i], true, l)
	if err == nil {
		if w.lies {
			w.disks[i].Lie()
		}
		if closed := w.use(ctx, m, fmt.Sprintf("s%d.1", i+1)); closed != nil && !w.isOff(w.disks[i]) {
			w.fault("s%d: %v", i+1, closed)
		}
	}
	if w.working.Add(-1) == 0 && w.disks[w.of].Keep() {
		close(w.worked)
	}
	select {
	case <-w.worked:
	case <-w.disks[w.of].Off():
		if i == w.of || w.all {
			w.disks[i].Cut()
		}
	}
	if !w.isOff(w.disks[i]) {
		if w.members[i] = m; err != nil {
			w.fault("s%d does not open: %v", i+1, err)
		}
		return
	}
	if m != nil {
		m.Close()
	}
	disk := w.disks[i].After(w.loss, 0)
	for l = nil; l == nil && w.ctx.Err() == nil; {
		l, _ = transport.Listen(w.peers[i].Addr)
	}
	// Without a journal it has never said anything.
	m, err = w.open(w.ctx, i, disk, disk.Size("journal") == 0, l)
	if err != nil {
		w.fault("s%d does not come back: %v", i+1, err)
		return
	}
	w.members[i] = m
	if closed := w.use(w.ctx, m, fmt.Sprintf("s%d.2", i+1)); closed != nil {
		w.fault("s%d: %v", i+1, closed)
	}
}

func (w *town) open(ctx context.Context, i int, disk *faultdisk.Disk, first bool, l net.Listener) (*sections.Member, error) {
	w.lists[i] = &list{}
	c := sections.Config{
		Name: w.peers[i].Name, Members: w.peers, Bootstrap: first, Engine: w.engine, Listener: l,
		Patience: lease.Patience{First: patience / 3, Most: patience}, // a stall is no crash
		Objects:  map[string]sections.Object{name: w.lists[i]},
	}
	if w.late {
		c.More, c.Slots = func(string) sections.Object { return &list{} }, 1
	}
	if w.lies { // nobody waits for who has forgotten what it owes
		c.Patience.First = time.Second / 5
	}
	c.On(disk)
	c.Change(func(n *node.Config) {
		n.Journal.(*journal.Journal).Unchecked = w.unchecked
		n.JournalCut = w.cut
	})
	return sections.Open(ctx, c)
}

// use has a user of a member be in three sections, and another member be suspected by mistake. The error is why the member has closed.
func (w *town) use(ctx context.Context, m *sections.Member, user string) error {
	if w.late {
		if err := m.Open(ctx, w.object()); errors.Is(err, sections.ErrClosed) || ctx.Err() == nil && err != nil {
			return err
		}
	}
	for k := range 3 {
		s, err := m.Enter(ctx, w.object())
		if errors.Is(err, sections.ErrClosed) {
			return err
		}
		if err != nil {
			return nil
		}
		var open []pending
		ops := 2
		if w.late {
			ops = 4
		}
		for o := range ops {
			op := fmt.Sprintf("%s.%d.%d", user, k, o)
			w.told(op, fate{})
			started, err := s.Start(ctx, []byte(op))
			if err != nil {
				w.verdict(op, nil, err)
				continue
			}
			if open = append(open, pending{op, started}); !w.late {
				w.wait(ctx, &open)
			}
			if k == 1 && o == 1 {
				_ = m.Suspect(w.peers[(w.of+1)%members].Name) // itself: nothing happens
			}
		}
		if k == 2 { // which lets them have their verdicts
			s.Exit()
		}
		w.wait(ctx, &open)
		s.Exit()
	}
	return nil
}

// A pending operation has no verdict.
type pending struct {
	op      string
	started *sections.Operation
}

// wait notes what becomes of operations.
func (w *town) wait(ctx context.Context, open *[]pending) {
	for _, p := range *open {
		result, err := p.started.Wait(ctx)
		w.verdict(p.op, result, err)
	}
	*open = nil
}

// verdict notes what a user was told.
func (w *town) verdict(op string, result []byte, err error) {
	switch {
	case err == nil:
		w.told(op, fate{true, true, string(result)})
	case errors.Is(err, sections.ErrEjected), errors.Is(err, sections.ErrNotIssued):
		w.told(op, fate{known: true})
	}
}

func (w *town) told(op string, f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fates[op] = f
}

// judge compares what users were told with the copies.
func (w *town) judge() {
	var first []string
	for i, m := range w.members {
		if m == nil {
			w.fault("s%d is not there", i+1)
			return
		}
		var ops []string
		err := m.Barrier(w.ctx, w.object())
		if err == nil {
			err = m.View(w.object(), func(o sections.Object) { ops = slices.Clone(o.(*list).ops) })
		}
		if err != nil {
			w.fault("s%d: %v", i+1, err)
			return
		}
		if i == 0 {
			first = ops
		}
		if !slices.Equal(first, ops) {
			w.fault("copies differ: %q and %q", first, ops)
		}
	}
	places := map[string][]string{}
	for k, op := range first {
		places[op] = append(places[op], fmt.Sprint(k+1))
	}
	for op, at := range places {
		if _, ok := w.fates[op]; !ok || len(at) > 1 {
			w.fault("%s was executed at %q", op, at)
		}
	}
	for op, f := range w.fates {
		switch at := places[op]; {
		case f.done && !slices.Equal(at, []string{f.result}):
			w.fault("%s had the result %s, and is at %q", op, f.result, at)
		case f.known && !f.done && len(at) > 0:
			w.fault("%s was to be executed never, and is at %q", op, at)
		}
	}
}

var engines = []struct {
	name   string
	engine node.Host
}{
	{"paxos, wme-1", sections.WME1},
	{"paxos, wme-2", sections.WME2},
	{"raft, wme-1", node.HostOf(raft.With(wme.First))},
	{"raft, wme-2", node.HostOf(raft.With(wme.Second))},
}

// Power is lost at each step of a member's disk, of this member or of all at once: nobody was told wrong.
func TestPower(t *testing.T) {
	for k, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			stride := 11
			if lane.CI.Adds(t, "more steps") {
				stride = 3
			}
			if lane.Long.Adds(t, "every step, with every loss") {
				stride = 1
			}
			runs := 0
			for step := 1 + k; ; step += stride {
				more := false
				for n := range 2 * len(faultdisk.Losses) {
					if stride > 1 && n%5 != step%5 {
						continue
					}
					b := blackout{engine: e.engine, of: step % members, step: step, loss: faultdisk.Losses[n/2], all: n%2 == 0, late: n%4 > 1}
					if step%2 == 0 {
						b.cut = 1 << 10
					}
					wrong, off := b.run(t)
					if len(wrong) > 0 {
						t.Fatalf("%v: %s", b, strings.Join(wrong, "\n"))
					}
					more = more || off
					runs++
				}
				if !more {
					t.Logf("%d losses of power, at up to %d steps", runs, step)
					return
				}
			}
		})
	}
}

// What a durable member rests on, left out: the test above notices.
func TestPowerBroken(t *testing.T) {
	for _, c := range []struct {
		name string
		b    blackout
	}{
		{"acknowledged before it is on disk", blackout{lies: true, all: true, loss: faultdisk.All}},
		{"the same, of an object that is made later", blackout{lies: true, all: true, late: true, loss: faultdisk.All}},
		{"without checksums", blackout{unchecked: true, loss: faultdisk.Last}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.b.engine = second
			for step := 20; ; step++ {
				c.b.step = step
				wrong, off := c.b.run(t)
				if len(wrong) > 0 {
					t.Logf("%v: %s", c.b, wrong[0])
					return
				}
				if !off {
					t.Fatal("nothing is noticed")
				}
			}
		})
	}
}
