package consensus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/protocol"
)

// A teller proposes a value of its own in each instance, and remembers what was decided. One that
// comes back takes part from an instance on that it is told.
type teller struct {
	id      protocol.ID
	first   uint64 // instance of which it hears
	decided []uint64
}

const instances = 5

// tellers have numbers for messages, which are values only.
var tellers = protocol.Algorithm[uint64]{
	Info:   protocol.Info{Name: "tellers", Users: protocol.Members, Detector: protocol.UnreliableDetector, Consensus: true},
	New:    func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &teller{id: id} },
	Append: func(b []byte, v uint64) []byte { return append(b, byte(v)) },
	Read: func(b []byte) (uint64, []byte, error) {
		if len(b) == 0 {
			return 0, nil, protocol.ErrShort
		}
		return uint64(b[0]), b[1:], nil
	},
	KindOf: func(uint64) int { panic("a value is no message") },
	Ints:   func(uint64) int { return 1 },
	Text:   func(v uint64) string { return fmt.Sprint(v) },
}

func (p *teller) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch ev.Kind {
	case protocol.Start:
		if ev.Arg > 1 {
			return
		}
	case protocol.Captured:
		p.first, _ = strconv.ParseUint(ev.Data, 10, 64)
		out.Resume(p.first)
	case protocol.Decide:
		if ev.Arg != p.next() {
			panic("order: an instance is decided out of order")
		}
		p.decided = append(p.decided, ev.Msg)
	default:
		return
	}
	if k := p.next(); k < instances {
		out.Propose(k, k*16+uint64(p.id))
	}
}

// next is the instance that it takes part in.
func (p *teller) next() uint64 { return p.first + uint64(len(p.decided)) }

func (p *teller) AppendState(b []byte) []byte { return append(b, byte(len(p.decided))) }

func (p *teller) LoadState([]byte) ([]byte, error) { panic("not used") }

func tellerOf(p protocol.Process[Frame[uint64]]) *teller {
	if f, ok := p.(forgetful); ok {
		p = f.Process
	}
	return Algorithm(p).(*teller)
}

// A run delivers messages of tellers in any order, crashes a minority, and suspects at random.
type run struct {
	*algotest.System[Frame[uint64]]
	r         *rand.Rand
	n         int
	crashed   int
	returns   []protocol.ID     // who came back, and takes no part yet
	decided   map[uint64]uint64 // by instance, of whoever heard of it first
	suspected map[protocol.Channel]bool
	trace     []string
}

func newRun(seed uint64) *run {
	r := rand.New(rand.NewPCG(seed, 0))
	n := 1 + r.IntN(5)
	return &run{
		System: algotest.NewSystem(With(tellers), protocol.Config{N: n}, 0), r: r, n: n,
		decided: map[uint64]uint64{}, suspected: map[protocol.Channel]bool{},
	}
}

// deliver delivers one message, if there is one.
func (w *run) deliver() bool {
	var full []protocol.Channel
	for a := range protocol.ID(w.n) {
		for b := range protocol.ID(w.n) {
			if len(w.InFlight(a, b)) > 0 {
				full = append(full, protocol.Channel{From: a, To: b})
			}
		}
	}
	if len(full) == 0 {
		return false
	}
	ch := full[w.r.IntN(len(full))]
	k := w.r.IntN(len(w.InFlight(ch.From, ch.To)))
	w.trace = append(w.trace, fmt.Sprintf("%v %s", ch, With(tellers).Text(w.InFlight(ch.From, ch.To)[k])))
	w.Deliver(ch.From, ch.To, k)
	return true
}

// judge says what is wrong with what was decided: uniformly, of crashed processes, too.
func (w *run) judge() string {
	for id, p := range w.Procs {
		if p == nil {
			continue
		}
		for i, v := range tellerOf(p).decided {
			k := tellerOf(p).first + uint64(i)
			if v/16 != k || v%16 >= uint64(w.n) {
				return fmt.Sprintf("validity: process %d: %d is decided in instance %d, and nobody proposed it", id, v, k)
			}
			if first, ok := w.decided[k]; ok && first != v {
				return fmt.Sprintf("agreement: process %d: %d is decided in instance %d, and %d elsewhere", id, v, k, first)
			}
			w.decided[k] = v
		}
	}
	return ""
}

func (w *run) suspect(a, b protocol.ID, yes bool) {
	if ch := (protocol.Channel{From: a, To: b}); w.suspected[ch] != yes && w.Procs[a] != nil {
		w.suspected[ch] = yes
		kind := protocol.Restore
		if yes {
			kind = protocol.Suspect
		}
		w.Step(a, protocol.Input{Kind: kind, From: b})
	}
}

// recover brings a process back that crashed, if it did.
func (w *run) recover(id protocol.ID) {
	if w.Procs[id] != nil {
		return
	}
	w.trace = append(w.trace, fmt.Sprint(id, " comes back"))
	w.Recover(id, 2)
	w.returns = append(w.returns, id)
	for j := range protocol.ID(w.n) {
		if w.suspected[protocol.Channel{From: id, To: j}] = false; j != id && w.Procs[j] != nil {
			w.suspected[protocol.Channel{From: j, To: id}] = false
			w.Step(j, protocol.Input{Kind: protocol.Restore, From: id, Arg: 2})
		}
	}
}

// resume lets a process take part that came back, from an instance on in which nobody takes part
// yet: so its life before did not.
func (w *run) resume() {
	if len(w.returns) == 0 {
		return
	}
	id := w.returns[0]
	w.returns = w.returns[1:]
	w.trace = append(w.trace, fmt.Sprint(id, " takes part from ", len(w.decided)+1))
	w.Step(id, protocol.Input{Kind: protocol.Captured, Data: strconv.Itoa(len(w.decided) + 1)})
}

// storm is a run with random suspicions, crashes and returns, which end; then everything is decided.
func (w *run) storm() (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	for range 50 * w.n {
		a, b := protocol.ID(w.r.IntN(w.n)), protocol.ID(w.r.IntN(w.n))
		switch k := w.r.IntN(20); {
		case k == 0 && 2*(w.crashed+1) < w.n && w.Procs[a] != nil:
			w.crashed++
			w.trace = append(w.trace, fmt.Sprint(a, " crashes"))
			w.Crash(a)
			w.returns = slices.DeleteFunc(w.returns, func(id protocol.ID) bool { return id == a })
		case k == 1:
			w.recover(a)
		case k == 2:
			w.resume()
		case k < 5 && a != b:
			w.suspect(a, b, w.r.IntN(2) == 0)
		default:
			w.deliver()
		}
		if fault := w.judge(); fault != "" {
			return fault
		}
	}
	for a := range protocol.ID(w.n) {
		for b := range protocol.ID(w.n) {
			if a != b {
				w.suspect(a, b, w.Procs[b] == nil)
			}
		}
	}
	for range w.n {
		w.resume()
	}
	for left := 100_000; w.deliver(); left-- {
		if left == 0 {
			return "stuck: it does not come to rest"
		}
	}
	for id, p := range w.Procs {
		if p != nil && tellerOf(p).next() < instances {
			return fmt.Sprintf("stuck: process %d has heard of the decisions up to %d of %d", id, tellerOf(p).next(), instances)
		}
	}
	return w.judge()
}

// Uniform agreement, validity, order and termination, whoever coordinates, with a minority of
// crashes; equal seeds give equal traces.
func TestAgreement(t *testing.T) {
	for seed := range uint64(3000) {
		w, again := newRun(seed), newRun(seed)
		if fault := w.storm(); fault != "" {
			t.Fatalf("seed %d, n=%d: %s", seed, w.n, fault)
		}
		if again.storm(); fmt.Sprint(again.trace) != fmt.Sprint(w.trace) {
			t.Fatalf("seed %d: the same run once more has another trace", seed)
		}
	}
}

// With a decision of which nobody keeps what a majority accepted, the storms above see that it is
// decided again.
func TestForgetful(t *testing.T) {
	for seed := range uint64(3000) {
		w := newRun(seed)
		for i, p := range w.Procs {
			w.Procs[i] = forgetful{p.(*Process[uint64])}
		}
		if fault := w.storm(); strings.Contains(fault, "elsewhere") {
			return
		} else if fault != "" {
			t.Fatal(fault)
		}
	}
	t.Error("acceptors that forget what they have accepted do no harm")
}

// A forgetful process promises as if it had accepted nothing.
type forgetful struct{ *Process[uint64] }

func (p forgetful) Step(ev protocol.Event[Frame[uint64]], out *protocol.Out[Frame[uint64]]) {
	if ev.Msg.Kind == Prepare {
		p.accepted = Ballot{}
	}
	p.Process.Step(ev, out)
}

// Without suspicions an instance costs what doc.go says.
func TestCost(t *testing.T) {
	for n := 2; n <= 9; n++ {
		s := algotest.NewSystem(With(tellers), protocol.Config{N: n}, 0)
		s.Settle()
		if got, most := s.Sent, instances*6*(n-1); got > most {
			t.Errorf("N=%d: %d messages in %d instances, at most %d are due", n, got, instances, most)
		}
	}
}

// What is written is read back, and nothing else is.
func TestCodec(t *testing.T) {
	a := With(tellers)
	for kind := Inner; kind <= Gone; kind++ {
		f := Frame[uint64]{Kind: kind}
		if kind != Inner {
			f.Instance, f.Ballot, f.Last = 7, Ballot{Round: 3, Leader: 2}, Ballot{Round: 1}
		}
		if f.valued() {
			f.Msg = 5
		}
		b := a.Append(nil, f)
		if got, rest, err := a.Read(b); err != nil || got != f || len(rest) > 0 {
			t.Errorf("%+v is read back as %+v, %v", f, got, err)
		}
		for k := range b {
			if _, _, err := a.Read(b[:k]); err == nil {
				t.Errorf("%d bytes of %d are read", k, len(b))
			}
		}
	}
}
