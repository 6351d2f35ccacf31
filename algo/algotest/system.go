package algotest

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// A System is all processes of one system, stepped by hand: for tests that tell
// a story from a paper, in which each message arrives when the story says so.
// What the story or the algorithm gets wrong panics.
type System[M any] struct {
	Procs   []protocol.Process[M] // by id; nil where crashed
	Users   history.Users         // by id
	Sent    int                   // messages so far, also to who has crashed
	Kinds   []int                 // these by kind
	Wanted  []protocol.ID         // who was told that somebody waits, in this order
	Leaders []protocol.Act        // by id: the last effect Leader; in this life
	Object  *history.Weak         // the copies of the object; nil: there is none
	Copies  [][]string            // by id: what each copy has executed
	Most    int                   // steps of one story: after more it does not come to rest, and panics. 0: any number

	alg     protocol.Algorithm[M]
	config  protocol.Config
	members int
	flights map[protocol.Channel][]M
	out     protocol.Out[M]
	steps   int

	proposals map[uint64][]M
	decisions map[uint64]M
	instances []uint64 // by id: the one that it takes next; none: it takes no part
}

// none is no instance of consensus.
const none = math.MaxUint64

// NewSystem starts the members, and clients with the ids after theirs.
func NewSystem[M any](a protocol.Algorithm[M], c protocol.Config, clients int) *System[M] {
	s := &System[M]{
		Users: make(history.Users, c.N+clients), Kinds: make([]int, len(a.Messages)), Leaders: make([]protocol.Act, c.N),
		alg: a, config: c, members: c.N, flights: map[protocol.Channel][]M{},
		proposals: map[uint64][]M{}, decisions: map[uint64]M{}, instances: make([]uint64, c.N),
	}
	if a.Weak {
		s.Object, s.Copies = history.NewWeak(c.N), make([][]string, c.N)
	}
	for id := range protocol.ID(c.N + clients) {
		s.Procs = append(s.Procs, a.New(id, c))
	}
	for id := range protocol.ID(c.N + clients) {
		s.Step(id, protocol.Input{Kind: protocol.Start})
	}
	return s
}

// Try makes user id try to enter.
func (s *System[M]) Try(id protocol.ID) { s.Step(id, protocol.Input{Kind: protocol.Try}) }

// Exit makes user id leave.
func (s *System[M]) Exit(id protocol.ID) { s.Step(id, protocol.Input{Kind: protocol.Exit}) }

// Issue makes user id issue an operation.
func (s *System[M]) Issue(id protocol.ID, op string) {
	s.Step(id, protocol.NewIssue(op))
}

// Proposals returns what was proposed in an instance of consensus, in this order.
func (s *System[M]) Proposals(instance uint64) []M { return s.proposals[instance] }

// Decide decides the k-th proposal of an instance. Decided tells it to a process.
func (s *System[M]) Decide(instance uint64, k int) {
	if _, done := s.decisions[instance]; done {
		panic(fmt.Sprintf("algotest: instance %d is decided already", instance))
	}
	s.decisions[instance] = s.proposals[instance][k]
}

// Forget makes an instance undecided again, for those that have not heard of its decision: as if
// consensus were not uniform.
func (s *System[M]) Forget(instance uint64) { delete(s.decisions, instance) }

// Decides reports whether an instance is decided.
func (s *System[M]) Decides(instance uint64) bool {
	_, done := s.decisions[instance]
	return done
}

// Decided tells a process the decision that it takes next, if there is one.
func (s *System[M]) Decided(id protocol.ID) bool {
	k := s.instances[id]
	m, done := s.decisions[k]
	if done {
		s.instances[id]++
		s.step(id, protocol.Event[M]{Input: protocol.NewDecide(k), Msg: m})
	}
	return done
}

// InFlight returns the messages on their way from one process to another, in
// the order in which they were sent.
func (s *System[M]) InFlight(from, to protocol.ID) []M {
	return s.flights[protocol.Channel{From: from, To: to}]
}

// Deliver delivers the k-th message on its way from one process to another: 0
// is the one sent first.
func (s *System[M]) Deliver(from, to protocol.ID, k int) {
	m := s.take(from, to, k)
	s.step(to, protocol.Event[M]{Input: protocol.NewReceive(from), Msg: m})
}

// Drop loses the k-th message on its way from one process to another.
func (s *System[M]) Drop(from, to protocol.ID, k int) { s.take(from, to, k) }

func (s *System[M]) take(from, to protocol.ID, k int) M {
	c := protocol.Channel{From: from, To: to}
	flight := s.flights[c]
	if k >= len(flight) {
		panic(fmt.Sprintf("algotest: %d messages are in flight from %d to %d, none is number %d", len(flight), from, to, k))
	}
	m := flight[k]
	s.flights[c] = append(flight[:k:k], flight[k+1:]...)
	return m
}

// Settle delivers messages, channel after channel, until none is in flight; then it decides what
// was proposed first, and tells it, until nothing is left.
func (s *System[M]) Settle() {
	for again := true; again; again = again || s.agree() {
		again = false
		for from := range s.Procs {
			for to := range s.Procs {
				for len(s.InFlight(protocol.ID(from), protocol.ID(to))) > 0 {
					s.Deliver(protocol.ID(from), protocol.ID(to), 0)
					again = true
				}
			}
		}
	}
}

// agree decides what is not decided, and tells the processes.
func (s *System[M]) agree() (some bool) {
	for k, list := range s.proposals {
		if _, done := s.decisions[k]; !done && len(list) > 0 {
			s.Decide(k, 0)
		}
	}
	for id, p := range s.Procs {
		for id < s.members && p != nil && s.Decided(protocol.ID(id)) {
			some = true
		}
	}
	return some
}

// Crash stops a process. What is on its way to it is lost.
func (s *System[M]) Crash(id protocol.ID) {
	s.Procs[id], s.Leaders[id] = nil, protocol.Act{}
	s.Users.Crash(id)
	if s.Object != nil {
		s.Object.Crash(id)
		s.Copies[id] = nil
	}
	for c := range s.flights {
		if c.To == id {
			delete(s.flights, c)
		}
	}
}

// Recover starts a member that crashed as a new incarnation.
func (s *System[M]) Recover(id protocol.ID, incarnation uint64) {
	s.Procs[id] = s.alg.New(id, s.config)
	s.instances[id] = none
	s.Step(id, protocol.NewStart(incarnation))
}

// Inside returns the users in the critical section.
func (s *System[M]) Inside() (ids []protocol.ID) {
	for id, section := range s.Users {
		if section == protocol.InCrit {
			ids = append(ids, protocol.ID(id))
		}
	}
	return ids
}

// Step gives any other event without a message to process id.
func (s *System[M]) Step(id protocol.ID, in protocol.Input) { s.step(id, protocol.Event[M]{Input: in}) }

func (s *System[M]) step(id protocol.ID, ev protocol.Event[M]) {
	if err := history.Input(&s.Users[id], id, ev.Input); err != nil {
		panic(err)
	}
	if s.Object != nil {
		s.judge(s.Object.Input(id, ev.Input))
	}
	if s.steps++; s.Most > 0 && s.steps > s.Most {
		panic(fmt.Sprintf("algotest: it does not come to rest in %d steps", s.Most))
	}
	s.out.Reset()
	s.Procs[id].Step(ev, &s.out)
	captures := false
	for _, e := range s.out.Effects {
		if s.Object != nil {
			s.judge(s.Object.Act(id, e.Act))
		}
		switch e.Do {
		case protocol.Send:
			s.send(id, e.To, e.Msg)
		case protocol.Broadcast:
			for to := range protocol.ID(s.members) {
				if to != id {
					s.send(id, to, e.Msg)
				}
			}
		case protocol.SetTimer, protocol.StopTimer: // the story fires timers, by Step
		case protocol.Read, protocol.Write, protocol.Await: // the story ends accesses, by Step
		case protocol.Owner, protocol.Joined, protocol.Parted:
		case protocol.Wanted:
			s.Wanted = append(s.Wanted, id)
		case protocol.Leader:
			s.Leaders[id] = e.Act
		case protocol.Invoke:
			s.Copies[id] = append(s.Copies[id], e.Data)
		case protocol.Install:
			if !s.brought(ev, e.Data) {
				panic(fmt.Sprintf("%s: process %d installs %q, which no message of this step has brought", s.alg.Name, id, e.Data))
			}
			s.install(id, e.Data)
		case protocol.Capture:
			captures = true
		case protocol.Propose:
			s.proposals[e.Arg] = append(s.proposals[e.Arg], e.Msg)
		case protocol.Resume:
			s.instances[id] = e.Arg
		default:
			if err := history.Act(&s.Users[id], id, e.Act); err != nil {
				panic(err)
			}
		}
	}
	if captures {
		s.Step(id, protocol.NewCaptured(s.Object.Copy(id)))
	}
}

// brought reports whether Snapshot finds this copy of the object in the message of an event.
func (s *System[M]) brought(ev protocol.Event[M], object string) bool {
	if ev.Kind != protocol.Receive || s.alg.Snapshot == nil {
		return false
	}
	found, ok := s.alg.Snapshot(ev.Msg)
	return ok && found == object
}

// install makes a process's copy that of those that have executed the most, as far as it goes.
func (s *System[M]) install(id protocol.ID, object string) {
	k, err := strconv.Atoi(object)
	if err != nil {
		panic(err)
	}
	for _, c := range s.Copies {
		if len(c) >= k {
			s.Copies[id] = slices.Clone(c[:k])
		}
	}
}

func (s *System[M]) judge(f history.Fault) {
	if f != (history.Fault{}) {
		panic(f.Property + ": " + f.Text)
	}
}

func (s *System[M]) send(from, to protocol.ID, m M) {
	s.Sent++
	s.Kinds[s.alg.KindOf(m)]++
	if c := (protocol.Channel{From: from, To: to}); s.Procs[to] != nil {
		s.flights[c] = append(s.flights[c], m)
	}
}
