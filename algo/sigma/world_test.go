package sigma

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// A story is one claim of the paper, or of the package documentation, told by
// hand. It serves as a test, and as a check of mutants.
type story struct {
	name string
	tell func()
}

// wrong is what want panics with.
type wrong string

// want ends a story when what it claims is not so.
func want(ok bool, format string, args ...any) {
	if !ok {
		panic(wrong(fmt.Sprintf(format, args...)))
	}
}

// fault returns what is wrong with a story, or "". Any other panic is a fault of
// the processes.
func (s story) fault() (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("%s: %v", s.name, r)
		}
	}()
	s.tell()
	return ""
}

func test(t *testing.T, stories []story) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			if fault := s.fault(); fault != "" {
				t.Error(fault)
			}
		})
	}
}

// tell checks mutants by stories.
func tell(stories []story) mutant.Check {
	return func() (string, error) {
		for _, s := range stories {
			if fault := s.fault(); fault != "" {
				return "claim by story, " + fault, nil
			}
		}
		return "", nil
	}
}

// A world is a small system in which a story decides what happens next: message
// by message, or, with run, by latencies that it chose. It panics with what a
// process does that no user may see, such as a second holder.
type world struct {
	alg    protocol.Algorithm[Message]
	config protocol.Config
	procs  []protocol.Process[Message] // by id, as all that follow
	users  history.Users
	skew   []int64 // clock minus virtual time
	lives  []uint64
	timers []map[uint32]int64 // when they fire

	now     int64
	clock   bool // processes see the time
	flights []sending
	sent    int
	latency func(from, to protocol.ID) int64

	token   []uint64          // of the last grant, by id
	reason  []protocol.Reason // of the last Rem
	owner   map[protocol.ID]protocol.Act
	told    map[protocol.ID][]request // whom a server supports, as it tells those who watch
	heard   []protocol.ID             // who heard that somebody waits who does not share, in order
	grants  []protocol.ID             // in order
	left    []int                     // entries that run makes
	unsound bool                      // two holders are what the story is about
	out     protocol.Out[Message]
}

// A sending is a message on its way.
type sending struct {
	protocol.Channel
	msg Message
	at  int64 // when it arrives by itself
}

const (
	epoch = int64(time.Hour) // the time at which a world with a clock begins
	hop   = int64(time.Millisecond)
)

// newWorld starts n servers and some clients, which get their leases.
func newWorld(a protocol.Algorithm[Message], n, clients int, change ...func(w *world)) *world {
	w := &world{alg: a, config: protocol.Config{N: n, Options: map[string]int64{"check": 0}}}
	total := n + clients
	w.users, w.skew, w.lives = make(history.Users, total), make([]int64, total), make([]uint64, total)
	w.token, w.reason, w.left = make([]uint64, total), make([]protocol.Reason, total), make([]int, total)
	w.owner, w.told = map[protocol.ID]protocol.Act{}, map[protocol.ID][]request{}
	w.timers = make([]map[uint32]int64, total)
	w.procs = make([]protocol.Process[Message], total)
	w.latency = func(_, _ protocol.ID) int64 { return hop }
	for _, f := range change {
		f(w)
	}
	for id := range protocol.ID(total) {
		w.start(id)
	}
	for c := n; c < total; c++ {
		for j := range n {
			w.restore(protocol.ID(c), j)
		}
	}
	return w
}

// withClock lets the processes see the time.
func withClock(w *world) { w.clock, w.now = true, epoch }

// option sets an option of the algorithm.
func option(name string, v int64) func(*world) {
	return func(w *world) { w.config.Options[name] = v }
}

// client returns the id of client c1, c2, ..
func (w *world) client(k int) protocol.ID { return protocol.ID(w.config.N + k - 1) }

// leases reports whether the algorithm has them, and with them incarnations.
func (w *world) leases() bool { return w.alg.Detector == protocol.LeaseDetector }

func (w *world) start(id protocol.ID) {
	w.procs[id] = w.alg.New(id, w.config)
	w.timers[id] = map[uint32]int64{}
	delete(w.told, id)
	w.lives[id]++
	if w.clock {
		w.lives[id] = max(w.lives[id], uint64(w.now+w.skew[id]))
	}
	in := protocol.Input{Kind: protocol.Start}
	if w.leases() {
		in.Arg = w.lives[id]
	}
	w.input(id, in)
}

// amnesia restarts server s1, s2, .. empty.
func (w *world) amnesia(server int) { w.start(protocol.ID(server - 1)) }

// crash stops a client for ever. What it sent arrives.
func (w *world) crash(c protocol.ID) {
	w.procs[c] = nil
	w.users.Crash(c)
}

// restore tells a client of its lease at the server with an id, or of its new life.
func (w *world) restore(c protocol.ID, j int) {
	if w.leases() {
		w.input(c, protocol.Input{Kind: protocol.Restore, From: protocol.ID(j), Arg: w.lives[j]})
	}
}

// suspect lets the detector of one process suspect another one.
func (w *world) suspect(observer, subject protocol.ID) {
	w.input(observer, protocol.Input{Kind: protocol.Suspect, From: subject})
}

// loop makes a client enter k times, without a stay.
func (w *world) loop(c protocol.ID, k int) {
	w.left[c] = k
	w.try(c)
}

func (w *world) try(c protocol.ID) { w.input(c, protocol.Input{Kind: protocol.Try}) }
func (w *world) tryOnce(c protocol.ID) {
	w.input(c, protocol.Input{Kind: protocol.Try, Arg: protocol.TryOnce})
}
func (w *world) exit(c protocol.ID)   { w.input(c, protocol.Input{Kind: protocol.Exit}) }
func (w *world) cancel(c protocol.ID) { w.input(c, protocol.Input{Kind: protocol.Cancel}) }

// timeout fires a timer, which must be set.
func (w *world) timeout(id protocol.ID, timer uint32) {
	_, set := w.timers[id][timer]
	want(set, "timer %d of process %d is not set", timer, id)
	delete(w.timers[id], timer)
	w.input(id, protocol.Input{Kind: protocol.Timeout, Timer: timer})
}

// find returns the place of the oldest message of a kind on a channel, or -1.
func (w *world) find(from, to protocol.ID, kind uint8) int {
	return slices.IndexFunc(w.flights, func(s sending) bool {
		return s.From == from && s.To == to && s.msg.Kind == kind
	})
}

// deliver delivers the oldest message of a kind on a channel.
func (w *world) deliver(from, to protocol.ID, kind uint8) {
	w.repeat(from, to, kind)
	w.drop(from, to, kind)
}

// repeat delivers it and leaves a copy in flight.
func (w *world) repeat(from, to protocol.ID, kind uint8) {
	i := w.find(from, to, kind)
	want(i >= 0, "no %s is in flight from %d to %d", messages[kind].Name, from, to)
	w.receive(from, to, w.flights[i].msg)
}

// deliverNewest delivers the newest message of a kind on a channel.
func (w *world) deliverNewest(from, to protocol.ID, kind uint8) {
	slices.Reverse(w.flights)
	i := w.find(from, to, kind)
	want(i >= 0, "no %s is in flight from %d to %d", messages[kind].Name, from, to)
	m := w.flights[i].msg
	w.drop(from, to, kind)
	slices.Reverse(w.flights)
	w.receive(from, to, m)
}

// drop loses it.
func (w *world) drop(from, to protocol.ID, kind uint8) {
	i := w.find(from, to, kind)
	w.flights = slices.Delete(w.flights, i, i+1)
}

// ask lets server j receive the oldest REQUEST of client c, and c the answer.
func (w *world) ask(c, j protocol.ID) {
	w.deliver(c, j, Request)
	w.deliver(j, c, Response)
}

// lose loses everything between two processes.
func (w *world) lose(a, b protocol.ID) {
	w.flights = slices.DeleteFunc(w.flights, func(s sending) bool {
		return s.From == a && s.To == b || s.From == b && s.To == a
	})
}

// flying returns the messages on a channel, oldest first.
func (w *world) flying(from, to protocol.ID) string {
	var texts []string
	for _, s := range w.flights {
		if s.From == from && s.To == to {
			texts = append(texts, text(s.msg))
		}
	}
	return strings.Join(texts, " ")
}

// wantFlying checks the messages from one process to each server.
func (w *world) wantFlying(from protocol.ID, toServers ...string) {
	for j, texts := range toServers {
		got := w.flying(from, protocol.ID(j))
		want(got == texts, "messages from %d to s%d: %q, want %q", from, j+1, got, texts)
	}
}

// settle delivers all messages, oldest first, and no timer. In the literal form
// there is no end of them while somebody waits, so it stops after a while.
func (w *world) settle() {
	for k := 0; len(w.flights) > 0; k++ {
		if k == 500 {
			want(w.alg.Variant == "literal", "the messages never end")
			return
		}
		s := w.flights[0]
		w.flights = slices.Delete(w.flights, 0, 1)
		w.receive(s.From, s.To, s.msg)
	}
}

// run lets time pass: messages arrive by their latencies, and timers fire.
func (w *world) run(d time.Duration) {
	end := w.now + int64(d)
	for k := 0; ; k++ {
		want(k < 200_000, "more than %d events in %v", k, d)
		next := -1
		for i, s := range w.flights {
			if next < 0 || s.at < w.flights[next].at {
				next = i
			}
		}
		owner, timer, at := protocol.ID(0), uint32(0), int64(-1)
		for id, set := range w.timers {
			for t, when := range set {
				if at < 0 || when < at || when == at && protocol.ID(id) == owner && t < timer {
					owner, timer, at = protocol.ID(id), t, when
				}
			}
		}
		switch {
		case next >= 0 && w.flights[next].at <= end && (at < 0 || w.flights[next].at <= at):
			s := w.flights[next]
			w.flights = slices.Delete(w.flights, next, next+1)
			w.now = max(w.now, s.at)
			w.receive(s.From, s.To, s.msg)
		case at >= 0 && at <= end:
			w.now = max(w.now, at)
			w.timeout(owner, timer)
		default:
			w.now = end
			return
		}
	}
}

// inside checks who is in the critical section.
func (w *world) inside(ids ...protocol.ID) {
	var got []protocol.ID
	for id, section := range w.users {
		if section == protocol.InCrit {
			got = append(got, protocol.ID(id))
		}
	}
	want(slices.Equal(got, ids), "inside: %v, want %v", got, ids)
}

// same checks that f does not change the state of a process.
func (w *world) same(id protocol.ID, f func()) {
	before := protocol.AppendState(nil, w.procs[id])
	f()
	got := protocol.AppendState(nil, w.procs[id])
	want(slices.Equal(got, before), "the state of %d is %x, before %x", id, got, before)
}

// initial checks that a process is in the state of a fresh one that got the same leases.
func (w *world) initial(id protocol.ID) {
	fresh := w.alg.New(id, w.config)
	var out protocol.Out[Message]
	in := protocol.Input{Kind: protocol.Start}
	if w.leases() {
		in.Arg = w.lives[id]
	}
	fresh.Step(protocol.Event[Message]{Input: in}, &out)
	if int(id) >= w.config.N && w.leases() {
		for j := range w.config.N {
			in := protocol.Input{Kind: protocol.Restore, From: protocol.ID(j), Arg: w.lives[j]}
			fresh.Step(protocol.Event[Message]{Input: in}, &out)
		}
	}
	got, initial := protocol.AppendState(nil, w.procs[id]), protocol.AppendState(nil, fresh)
	want(slices.Equal(got, initial), "the state of %d is %x, initially %x", id, got, initial)
	want(len(w.timers[id]) == 0, "process %d has timers %v", id, w.timers[id])
}

func (w *world) receive(from, to protocol.ID, m Message) {
	w.step(to, protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: from}, Msg: m})
}

func (w *world) input(id protocol.ID, in protocol.Input) {
	w.step(id, protocol.Event[Message]{Input: in})
}

func (w *world) step(id protocol.ID, ev protocol.Event[Message]) {
	if w.procs[id] == nil {
		return
	}
	if w.clock {
		ev.Now = w.now + w.skew[id]
	}
	err := history.Input(&w.users[id], id, ev.Input)
	want(err == nil, "%v", err)
	w.out.Reset()
	w.procs[id].Step(ev, &w.out)
	effects := slices.Clone(w.out.Effects)
	for _, e := range effects {
		switch e.Do {
		case protocol.Send:
			w.send(id, e.To, e.Msg)
		case protocol.Broadcast:
			for to := range protocol.ID(w.config.N) {
				w.send(id, to, e.Msg)
			}
		case protocol.SetTimer:
			want(e.After > 0, "process %d sets timer %d to fire at once", id, e.Timer)
			w.timers[id][e.Timer] = w.now + e.After + int64(e.Arg)/2
		case protocol.StopTimer:
			delete(w.timers[id], e.Timer)
		default:
			w.act(id, e.Act)
		}
	}
	if s, ok := w.procs[id].(*Server); ok {
		owners, _ := s.table()
		order := func(r, q request) int { return r.stamp().Compare(q.stamp()) }
		slices.SortFunc(owners, order)
		told := slices.SortedFunc(slices.Values(w.told[id]), order)
		want(slices.Equal(told, owners), "server %d tells that it supports %v, and supports %v", id, told, owners)
	}
	if w.users[id] == protocol.InCrit && w.left[id] > 0 {
		w.left[id]--
		w.exit(id)
		if w.left[id] > 0 {
			w.try(id)
		}
	}
}

func (w *world) send(from, to protocol.ID, m Message) {
	want(to < protocol.ID(len(w.procs)) && from != to, "%d sends %s to %d", from, text(m), to)
	w.sent++
	ch := protocol.Channel{From: from, To: to}
	w.flights = append(w.flights, sending{ch, m, w.now + w.latency(from, to)})
}

func (w *world) act(id protocol.ID, a protocol.Act) {
	switch r := (request{a.To, a.Arg}); a.Do {
	case protocol.Owner:
		if w.owner[id], w.told[id] = a, nil; a.To != 0 {
			w.told[id] = []request{r}
		}
		return
	case protocol.Joined:
		if alone := w.owner[id]; alone.To == r.client && alone.Arg == r.time && slices.Contains(w.told[id], r) {
			w.owner[id] = protocol.Act{} // it shares from now on
			return
		}
		want(!slices.Contains(w.told[id], r), "server %d supports %v twice", id, r)
		w.told[id] = append(w.told[id], r)
		return
	case protocol.Parted:
		k := slices.Index(w.told[id], r)
		want(k >= 0, "server %d supports %v no more, and never did", id, r)
		w.told[id] = slices.Delete(w.told[id], k, k+1)
		return
	case protocol.Wanted:
		w.heard = append(w.heard, id)
		return
	}
	err := history.Act(&w.users[id], id, a)
	want(err == nil, "%v", err)
	switch a.Do {
	case protocol.Crit:
		w.token[id] = a.Arg
		w.grants = append(w.grants, id)
		holders := 0
		for _, s := range w.users {
			if s == protocol.InCrit {
				holders++
			}
		}
		want(holders == 1 || w.unsound, "%d holders", holders)
	case protocol.Rem:
		w.reason[id] = a.Reason()
	}
}
