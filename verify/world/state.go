package world

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A State is one system that takes steps: its processes as values, and what is on its way
// between them. There is no time, and clocks show 0. See [State.Do].
type State struct {
	*Rules
	Algorithm protocol.Algorithm[any]
	FIFO      bool
	Down      []protocol.ID // members that are never up

	Procs   []protocol.Process[any] // by id; nil: not there
	Ends    Ends                    // by id
	Flight  []Message               // in the order in which they were sent
	Cells   []Cell                  // of registers
	Terms   history.Terms           // of an election: all that were named
	Forgot  uint64                  // members that lost their memory
	Entries int                     // how often a user was let in
	Object  *history.Weak           // the judge of the object; nil: there is none
	Votes   *Consensus              // nil: there is none; see Proposed
	Found   *history.Fault          // the first that was found; nil: none

	ends     []End
	proposed []proposal // by Ballot.Msg
	renews   bool       // a detector that may be wrong tells of new lives
	now      int32      // the number of the step
	part     int32      // how many messages it has sent
	out      protocol.Out[any]
	stepping bool // inside the algorithm: a panic is its
	crowded  int  // messages in flight from which on stale ones are looked for
	view     protocol.View

	codec        protocol.Codec // scratch of alike, as the next two
	text1, text2 []byte
}

// A Message is on its way. Its name is the number of the step that sent it, and which of the
// messages of that step it is: it keeps its name when other steps are left out.
type Message struct {
	Msg            any
	From, To, Kind int32
	Sent, Part     int32 // -1: the start
	Copies         int32 // of equal idempotent messages
}

// A proposal of consensus has a name like a message.
type proposal struct {
	msg              any
	from, sent, part int32
}

// NewState returns a system at its beginning: every process had its Start, and every client
// with leases heard of every member.
func NewState(a protocol.Algorithm[any], system System) *State {
	r := New(a.Info, system.Config, system.Clients, system.Registers)
	s := &State{
		Rules: r, Algorithm: a, FIFO: system.FIFO, Down: system.Down,
		Procs: make([]protocol.Process[any], r.Total), Ends: make(Ends, r.Total), ends: make([]End, r.Total),
		renews: r.Peers && r.Incarnations && r.Detector == protocol.UnreliableDetector,
	}
	s.Reset()
	return s
}

// Reset goes back to the beginning.
func (s *State) Reset() {
	defer s.caught()
	s.Flight, s.Terms, s.Cells, s.proposed = s.Flight[:0], s.Terms[:0], s.Cells[:0], s.proposed[:0]
	s.Forgot, s.Entries, s.Found, s.now, s.crowded = 0, 0, nil, -1, 0
	for _, r := range s.Memory {
		s.Cells = append(s.Cells, Cell{Value: r.Initial})
	}
	if s.Weak {
		s.Object = history.NewWeak(s.Config.N)
	}
	if s.Consensus {
		s.Votes = NewConsensus(s.Config.N)
	}
	for i := range s.Procs {
		s.ends[i], s.Ends[i], s.Procs[i] = s.First(i), nil, nil
		if !slices.Contains(s.Down, protocol.ID(i)) {
			s.Ends[i] = &s.ends[i]
			s.make(i)
		}
	}
	for i := range s.Procs {
		s.meets(i)
	}
	for i := range s.Procs {
		if s.Procs[i] != nil {
			s.input(i, s.ends[i].Start())
		}
	}
	for p := range s.Procs {
		for q := range s.Config.N {
			if s.Procs[p] == nil || s.Procs[q] == nil || p == q {
				continue
			}
			if s.Mutual || s.Leases && p >= s.Config.N {
				s.input(p, s.Restore(&s.ends[p], q, s.ends[q].Life))
			}
		}
	}
}

// make makes process i.
func (s *State) make(i int) {
	s.stepping = true
	s.Procs[i] = s.Algorithm.New(protocol.ID(i), s.Config)
	s.stepping = false
}

// meets: process i begins, and knows who is there.
func (s *State) meets(i int) {
	if !s.renews {
		return
	}
	s.ends[i].Known = make([]uint64, s.Config.N)
	for j := range s.ends[i].Known {
		s.ends[i].Known[j] = s.ends[j].Life
	}
}

// caught turns a panic of a process, which its model makes impossible, into a fault. Any
// other panic stays one.
func (s *State) caught() {
	if s.stepping {
		s.stepping = false
		s.Report(Model, fmt.Sprint("model: panic: ", recover()))
	}
}

// Report notes what is wrong, if nothing was before.
func (s *State) Report(property, text string) {
	if s.Found == nil {
		s.Found = &history.Fault{Property: property, Text: s.Names.Text(text)}
	}
}

func (s *State) report(f history.Fault) {
	if f != (history.Fault{}) {
		s.Report(f.Property, f.Text)
	}
}

// Judged reports what a judge of the object found.
func (s *State) Judged(f history.Fault) {
	if f != (history.Fault{}) {
		s.Report(f.Property, f.Property+": "+f.Text)
	}
}

// Is reports whether process i is there.
func (s *State) Is(i int) bool { return s.Procs[i] != nil }

// Section is where the user of process i is.
func (s *State) Section(i int) protocol.Section { return s.ends[i].Section }

// Users are the sections of all users.
func (s *State) Users() history.Users {
	return each(s, func(e *End) protocol.Section { return e.Section })
}

// Granted is the group of each user that is inside, by id.
func (s *State) Granted() []protocol.Group {
	return each(s, func(e *End) protocol.Group { return e.Group })
}

// Wanted is what each user that tries wants, by id.
func (s *State) Wanted() []protocol.Groups {
	return each(s, func(e *End) protocol.Groups { return e.Wants })
}

// each is what is known of each process, by id.
func each[T any](s *State, of func(*End) T) []T {
	list := make([]T, s.Total)
	for i := range list {
		list[i] = of(&s.ends[i])
	}
	return list
}

// Do takes a step, and reports whether it was possible; else nothing has changed. A deliver
// whose own message is not there takes the oldest one of its kind on its channel, so that
// less depends on steps that were left out; the same holds for an access and a decision. c
// then names what was taken.
func (s *State) Do(c *Action) (possible bool) {
	defer s.caught()
	p, q := int(c.A), int(c.B)
	if p >= s.Total || q >= s.Total {
		return false
	}
	possible, s.now = true, c.ID // also of a step that panics
	e := &s.ends[p]
	switch c.Verb { // where a process need not be there
	case scenario.Deliver:
		return s.deliver(c)
	case scenario.Lose, scenario.Duplicate:
		return s.fail(c)
	case scenario.Recover:
		return s.recovers(p)
	case scenario.Decide:
		return s.decide(c)
	case scenario.Suspect:
		return s.suspect(p, q)
	}
	if s.Procs[p] == nil {
		return false
	}
	switch c.Verb { // what may happen to a process that pauses, too
	case scenario.Resume, scenario.Lapse, scenario.Amnesia, scenario.Crash:
	default:
		if e.Paused {
			return false
		}
	}
	switch c.Verb {
	case scenario.Resume:
		if possible = e.Paused; possible {
			s.part = 0
			for _, in := range s.Resume(e) {
				s.react(p, in, nil)
			}
			e.Rest()
		}
	case scenario.Pause:
		if possible = s.Pauses; possible {
			e.Paused = true
		}
	case scenario.Try:
		if possible = s.IsUser(p) && e.Section == protocol.InRem; possible {
			if s.Object != nil && s.Rests() {
				s.Object.Calm()
			}
			s.input(p, e.Try(c.Wants))
		}
	case scenario.Cancel:
		if possible = e.Cancels(); possible {
			s.input(p, protocol.Input{Kind: protocol.Cancel})
		}
	case scenario.Downgrade:
		if possible = s.Downgrades(e.Section, e.Group); possible {
			s.input(p, protocol.NewDowngrade(e.Group.Below()))
		}
	case scenario.Exit:
		if possible = s.Exits(e); possible {
			s.input(p, protocol.Input{Kind: protocol.Exit})
		}
	case scenario.Issue:
		if possible = s.Weak && e.Section == protocol.InCrit; possible {
			s.input(p, s.Issue(e, p))
		}
	case scenario.Hear:
		return p < s.Config.N && s.hear(p)
	case scenario.Read, scenario.Begin, scenario.Write:
		return s.access(c)
	case scenario.Timeout:
		if possible = slices.Contains(e.Timers, c.Timer) && !s.Waiting(p); possible {
			s.input(p, e.Fire(c.Timer))
		}
	case scenario.Drain:
		if possible = p < s.Config.N; possible {
			s.input(p, protocol.Input{Kind: protocol.Drain})
		}
	case scenario.Lapse:
		switch possible = s.Notices(p, q)&(ToLapse|MayLapse) != 0; {
		case possible && e.Paused:
			s.cut(p, q, true)
			s.Miss(e, q)
		case possible:
			s.told(p, q, true)
		}
	case scenario.Restore:
		if possible = s.Notices(p, q)&ToRestore != 0; possible {
			s.input(p, s.Restore(e, q, s.ends[q].Life))
		}
	case scenario.Amnesia:
		if possible = p < s.Config.N; possible {
			s.amnesia(p)
		}
	case scenario.Crash:
		if possible = s.Mortal(p); possible {
			s.crash(p)
		}
	default:
		return false
	}
	return possible
}

// Notices is what process p may be told of process q.
func (s *State) Notices(p, q int) Notices { return s.Rules.Notices(s.Ends, p, q) }

// suspect tells process p that it suspects q.
func (s *State) suspect(p, q int) bool {
	if s.Notices(p, q)&(ToSuspect|MaySuspect) == 0 {
		return false
	}
	switch {
	case s.Leases && s.Procs[q] != nil:
		s.ends[q].Ended |= 1 << p
	case !s.Mutual && s.Procs[q] != nil && s.ends[q].Paused:
		s.ends[q].Noticed(p)
	}
	s.told(p, q, false)
	return true
}

// told tells process p that q is suspected.
func (s *State) told(p, q int, lapses bool) {
	s.cut(p, q, lapses)
	s.input(p, s.Suspect(&s.ends[p], q, lapses))
}

// cut takes those messages out of flight that are lost then.
func (s *State) cut(p, q int, lapses bool) {
	from, to := s.Cuts(s.Ends, p, q, lapses)
	s.Flight = slices.DeleteFunc(s.Flight, func(m Message) bool {
		f, t := int(m.From), int(m.To)
		return from && f == q && t == p || to && f == p && t == q
	})
}

func (s *State) recovers(i int) bool {
	if i >= s.Config.N || s.Procs[i] != nil || !Has(s.Info, scenario.Recover) {
		return false
	}
	s.begin(i)
	return true
}

// begin begins the next life of process i.
func (s *State) begin(i int) {
	s.ends[i] = s.Reborn(&s.ends[i], i)
	s.Ends[i] = &s.ends[i]
	s.meets(i)
	s.make(i)
	s.input(i, s.ends[i].Start())
}

func (s *State) amnesia(j int) {
	for u := range s.ends {
		if s.Procs[u] != nil {
			s.Forgotten(&s.ends[u], u, j)
		}
	}
	s.Forgot |= 1 << j
	s.begin(j)
}

func (s *State) crash(p int) {
	s.Flight = slices.DeleteFunc(s.Flight, func(m Message) bool { return s.Buried(s.Ends, p, int(m.From), int(m.To)) })
	s.ends[p], s.Ends[p], s.Procs[p] = s.Crashed(&s.ends[p]), nil, nil
	if s.Object != nil {
		s.Object.Crash(protocol.ID(p))
	}
	if s.Votes != nil {
		s.Votes.Leave(p)
	}
}

// input gives an event without a message to a process.
func (s *State) input(i int, in protocol.Input) { s.step(i, in, nil) }

func (s *State) step(i int, in protocol.Input, msg any) {
	s.part = 0
	s.react(i, in, msg)
	s.ends[i].Rest()
}

// react gives an event to a process, as a step or as a part of one.
func (s *State) react(i int, in protocol.Input, msg any) {
	id, e, captures := protocol.ID(i), &s.ends[i], false
	if f := s.Input(e, i, in); f != (history.Fault{}) {
		s.report(f)
		return
	}
	if s.Object != nil {
		s.Judged(s.Object.Input(id, in))
	}
	s.forget()
	s.out.Reset()
	s.stepping = true
	s.Procs[i].Step(protocol.Event[any]{Input: in, Msg: msg}, &s.out)
	s.stepping = false
	for k := range s.out.Effects {
		f := &s.out.Effects[k]
		switch f.Do {
		case protocol.Send:
			if f.To == id || f.To >= protocol.ID(s.Total) {
				s.report(s.wrong("%s sends %s to process %d", s.Names.Of(id), s.Algorithm.Text(f.Msg), f.To))
				return
			}
			s.send(i, int(f.To), f.Msg)
			continue
		case protocol.Broadcast:
			for j := range s.Config.N {
				if j != i {
					s.send(i, j, f.Msg)
				}
			}
			continue
		}
		wrong := s.Effect(e, i, f.Act)
		s.report(wrong)
		if wrong.Property == Model {
			return
		}
		if s.Object != nil && f.Do != protocol.Capture && wrong == (history.Fault{}) {
			s.Judged(s.Object.Act(id, f.Act))
		}
		switch f.Do {
		case protocol.Crit:
			s.Entries++
		case protocol.Capture:
			captures = true
		case protocol.Propose:
			s.propose(i, f.Arg, f.Msg)
		case protocol.Resume:
			s.Votes.Resume(i, f.Arg)
		case protocol.Leader:
			if err := s.Terms.Add(history.Term{Epoch: f.Arg, Leader: f.To}, s.Names.Of); err != nil && s.Elects() {
				s.Report(history.Epochs, err.Error())
			}
		}
	}
	if captures {
		s.react(i, protocol.NewCaptured(s.Object.Copy(id)), nil)
	}
}

// # Messages

// send puts a message in flight, unless its receiver is absent or there is no lease between
// the two.
func (s *State) send(from, to int, msg any) {
	if s.Memory != nil {
		s.report(s.wrong("%s sends a message, and its algorithm shares memory", s.Names.Of(protocol.ID(from))))
		return
	}
	// At the start somebody may not have begun yet.
	absent := s.Procs[to] == nil && (s.now >= 0 || slices.Contains(s.Down, protocol.ID(to)))
	if absent || s.Severed(s.Ends, from, to) {
		return
	}
	m := Message{msg, int32(from), int32(to), int32(s.Algorithm.KindOf(msg)), s.now, s.part, 1}
	s.part++
	if s.idempotent(msg) {
		if o := s.equal(&m); o != nil {
			o.Copies++
			return
		}
	}
	s.Flight = append(s.Flight, m)
}

func (s *State) idempotent(msg any) bool {
	return s.Algorithm.Idempotent != nil && s.Algorithm.Idempotent(msg)
}

// equal returns the message in flight that equals m, or nil: where channels are FIFO only if
// it is the last one of its channel.
func (s *State) equal(m *Message) *Message {
	for k := len(s.Flight) - 1; k >= 0; k-- {
		o := &s.Flight[k]
		if o.From != m.From || o.To != m.To {
			continue
		}
		if o.Kind == m.Kind && s.alike(o.Msg, m.Msg) {
			return o
		}
		if s.FIFO {
			return nil
		}
	}
	return nil
}

// alike compares two messages.
func (s *State) alike(a, b any) bool {
	s.Algorithm.Fields(a, s.codec.Appending(s.text1[:0]))
	s.text1 = s.codec.Bytes()
	s.Algorithm.Fields(b, s.codec.Appending(s.text2[:0]))
	s.text2 = s.codec.Bytes()
	return bytes.Equal(s.text1, s.text2)
}

// Pending is how many messages are in flight.
func (s *State) Pending() (k int) {
	for i := range s.Flight {
		k += int(s.Flight[i].Copies)
	}
	return k
}

// Stale reports whether message k of those in flight can do nothing any more: for the checker
// it is not there.
func (s *State) Stale(k int) bool {
	if s.Algorithm.Stale == nil {
		return false
	}
	m := &s.Flight[k]
	return s.Algorithm.Stale(s.Procs[m.From], s.Procs[m.To], protocol.Channel{From: protocol.ID(m.From), To: protocol.ID(m.To)}, m.Msg)
}

// forget takes the stale messages out of flight, now and then.
func (s *State) forget() {
	const few = 100
	if s.Algorithm.Stale == nil || len(s.Flight) < max(few, s.crowded) {
		return
	}
	kept := s.Flight[:0]
	for k := range s.Flight {
		if !s.Stale(k) {
			kept = append(kept, s.Flight[k])
		}
	}
	clear(s.Flight[len(kept):])
	s.Flight = kept
	s.crowded = 2 * len(kept)
}

// Arrives reports whether message k of those in flight may arrive next.
func (s *State) Arrives(k int) bool {
	m := &s.Flight[k]
	if s.ends[m.To].Paused || s.Withheld(s.Ends, int(m.From), int(m.To)) {
		return false
	}
	return !s.FIFO || !slices.ContainsFunc(s.Flight[:k], func(o Message) bool { return o.From == m.From && o.To == m.To })
}

// Find returns the place of the message in flight that c names, or -1.
func (s *State) Find(c *Action) int {
	oldest := -1
	for k := range s.Flight {
		m := &s.Flight[k]
		switch {
		case m.From != c.A || m.To != c.B:
		case s.FIFO && m.Kind != c.Kind:
			return -1
		case s.FIFO, m.Kind == c.Kind && m.Sent == c.Sent && m.Part == c.Part:
			return k
		case m.Kind == c.Kind && oldest < 0 && !s.Stale(k):
			oldest = k
		}
	}
	return oldest
}

func (s *State) deliver(c *Action) bool {
	k := s.Find(c)
	if k < 0 || s.Procs[c.B] == nil || s.ends[c.B].Paused || s.Stale(k) || s.Withheld(s.Ends, int(c.A), int(c.B)) {
		return false
	}
	s.Receive(k, c)
	return true
}

// Receive delivers message k of those in flight, which may arrive, as action c. c names it
// then.
func (s *State) Receive(k int, c *Action) {
	defer s.caught()
	m := s.Flight[k]
	switch s.now = c.ID; {
	case c.Keep:
	case m.Copies > 1:
		s.Flight[k].Copies--
	default:
		s.Flight = slices.Delete(s.Flight, k, k+1)
	}
	*c = Action{ID: c.ID, Verb: scenario.Deliver, A: m.From, B: m.To, Kind: m.Kind, Sent: m.Sent, Part: m.Part, Keep: c.Keep}
	s.step(int(m.To), protocol.NewReceive(protocol.ID(m.From)), m.Msg)
}

// fail loses a message, or puts one more copy of it in flight.
func (s *State) fail(c *Action) bool {
	k := s.Find(c)
	if k < 0 || s.Stale(k) {
		return false
	}
	m := s.Flight[k]
	c.Kind, c.Sent, c.Part = m.Kind, m.Sent, m.Part
	switch {
	case c.Verb == scenario.Lose:
		s.Flight = slices.Delete(s.Flight, k, k+1)
	case s.idempotent(m.Msg):
		return false // it may arrive again as it is
	default:
		s.Flight = slices.Insert(s.Flight, k, m)
	}
	return true
}

// Waiting reports whether a timer of process i does not fire yet because time-outs exceed a
// round trip: see Info.Synchronous.
func (s *State) Waiting(i int) bool {
	if !s.Synchronous {
		return false
	}
	near := func(m Message) bool { return int(m.From) == i || int(m.To) == i }
	return slices.ContainsFunc(s.Flight, near) || s.Peers && !s.Told(s.Ends, i)
}

// # Registers

// Next is what may happen to an access of a process, "" if it waits; found is what a read finds
// that overlaps a write.
func (s *State) Next(o *protocol.Access, found uint64) scenario.Verb {
	c := s.Cells[o.Register]
	v := c.Next(*o, s.Safe)
	if v == scenario.Read && c.Writers > 0 && !o.Ends(s.bounded(o, found)) {
		return ""
	}
	return v
}

// bounded is a value that a read may find which overlaps a write.
func (s *State) bounded(o *protocol.Access, found uint64) uint64 {
	return min(found, s.Memory[o.Register].Most)
}

// access takes the access that c names, or another one of the same process.
func (s *State) access(c *Action) bool {
	e := &s.ends[c.A]
	o := e.Open.Of(int(c.Kind))
	if o == nil || s.Next(o, c.Found) == "" {
		k := slices.IndexFunc(e.Open, func(o protocol.Access) bool { return s.Next(&o, c.Found) != "" })
		if k < 0 {
			return false
		}
		o = &e.Open[k]
	}
	cell, found := &s.Cells[o.Register], uint64(0)
	c.Verb, c.Kind = s.Next(o, c.Found), int32(o.Register)
	switch c.Verb {
	case scenario.Begin:
		cell.Begin(e, o.Register)
		return true
	case scenario.Write:
		cell.Write(*o)
	default:
		if found = cell.Value; cell.Writers > 0 {
			c.Found = s.bounded(o, c.Found)
			found = c.Found
		}
	}
	s.input(int(c.A), e.Value(o.Register, found))
	return true
}

// # Consensus

func (s *State) propose(i int, instance uint64, msg any) {
	if _, decided := s.Votes.Decided(instance); decided {
		return
	}
	s.Votes.Propose(Ballot{Instance: instance, Msg: uint32(len(s.proposed))})
	s.proposed = append(s.proposed, proposal{msg, int32(i), s.now, s.part})
	s.part++
}

// Ballot returns the proposal that c decides: the one that it names, or else another one of
// the same process, or the first that there is; and whether there is any.
func (s *State) Ballot(c *Action) (found Ballot, any bool) {
	for _, b := range s.Votes.Proposals {
		p := &s.proposed[b.Msg]
		switch {
		case !s.Votes.Awaited(b.Instance):
		case p.from == c.A && p.sent == c.Sent && p.part == c.Part:
			return b, true
		case !any, p.from == c.A && s.proposed[found.Msg].from != c.A:
			found, any = b, true
		}
	}
	return found, any
}

// Decision is the action that decides a proposal.
func (s *State) Decision(b Ballot) Action {
	p := s.proposed[b.Msg]
	return Action{Verb: scenario.Decide, A: p.from, Sent: p.sent, Part: p.part}
}

// BallotText is how a scenario writes a proposal that is decided.
func (s *State) BallotText(b Ballot) string {
	return fmt.Sprint(b.Instance, " ", s.Text(s.proposed[b.Msg].msg))
}

func (s *State) decide(c *Action) bool {
	if s.Votes == nil {
		return false
	}
	b, ok := s.Ballot(c)
	if !ok {
		return false
	}
	d := s.Decision(b)
	c.A, c.Sent, c.Part = d.A, d.Sent, d.Part
	s.Votes.Decide(b)
	return true
}

// Hears reports whether there is a decision that member i has to hear of.
func (s *State) Hears(i int) bool {
	if s.Votes == nil || s.Procs[i] == nil || s.ends[i].Paused {
		return false
	}
	_, hears := s.Votes.Hears(i)
	return hears
}

func (s *State) hear(i int) bool {
	if !s.Hears(i) {
		return false
	}
	b, _ := s.Votes.Hears(i)
	s.Votes.Hear(i)
	s.step(i, protocol.NewDecide(b.Instance), s.proposed[b.Msg].msg)
	return true
}

// # The whole

// Rests reports whether nothing is left to happen before a user tries, and the detectors
// suspect exactly those that crashed.
func (s *State) Rests() bool {
	if len(s.Flight) > 0 || s.Votes != nil && slices.ContainsFunc(s.Votes.Proposals, func(b Ballot) bool { return s.Votes.Awaited(b.Instance) }) {
		return false
	}
	for i := range s.Config.N {
		e := &s.ends[i]
		if s.Procs[i] == nil {
			continue
		}
		if e.Paused || len(e.Timers) > 0 || s.Hears(i) || s.Exits(e) {
			return false
		}
		for j := range s.Config.N {
			gone := s.Procs[j] == nil
			if i != j && (!gone && s.Notices(i, j)&ToRestore != 0 || gone && !e.doubts(j)) {
				return false
			}
		}
	}
	return true
}

// Unsettled is Algorithm.Unsettled now, 0 where the algorithm has none.
func (s *State) Unsettled() int {
	if s.Algorithm.Unsettled == nil {
		return 0
	}
	return s.Algorithm.Unsettled(protocol.States(s.Procs))
}

// Losses is Unsettled, and what those that pause have missed.
func (s *State) Losses() int { return s.Unsettled() + s.Missing(s.Ends) }

// Text is how a scenario writes a message.
func (s *State) Text(msg any) string { return s.Names.Text(s.Algorithm.Text(msg)) }

// View is the state as invariants see it, valid until the next step.
func (s *State) View() *protocol.View {
	v := &s.view
	if v.Procs == nil {
		v.Config, v.Procs, v.Lost = s.Config, make([]protocol.Stateful, s.Total), make([][]bool, s.Total)
		v.Users = make([]protocol.Section, s.Total)
		v.InFlight = func(yield func(protocol.Channel, any) bool) {
			for k := range s.Flight {
				m := &s.Flight[k]
				if !yield(protocol.Channel{From: protocol.ID(m.From), To: protocol.ID(m.To)}, m.Msg) {
					return
				}
			}
		}
		for i := range v.Lost {
			v.Lost[i] = make([]bool, s.Config.N)
		}
	}
	v.Registers = v.Registers[:0]
	for _, c := range s.Cells {
		v.Registers = append(v.Registers, c.Value)
	}
	for i := range s.ends {
		v.Users[i], v.Procs[i] = s.ends[i].Section, s.Procs[i]
		if s.ends[i].Unaware() { // what it believes does not count before it looks at its leases
			v.Users[i], v.Procs[i] = protocol.InRem, nil
		}
		for j := range v.Lost[i] {
			v.Lost[i][j] = s.ends[i].Lost>>j&1 != 0
		}
	}
	return v
}

// Step returns the scenario line of an action that may be taken now.
func (s *State) Step(c Action) scenario.Step {
	procs := []protocol.ID{protocol.ID(c.A), protocol.ID(c.B)}
	st := scenario.Step{Verb: c.Verb, Procs: procs[:c.Verb.Processes()], Timer: c.Timer}
	switch c.Verb {
	case scenario.Try:
		st.Text = string(c.Wants)
	case scenario.Deliver, scenario.Lose, scenario.Duplicate:
		st.Text = s.Text(s.Flight[s.Find(&c)].Msg)
	case scenario.Read, scenario.Begin, scenario.Write:
		st.Text = s.Memory[c.Kind].Name
		if c.Verb == scenario.Read && s.Cells[c.Kind].Writers > 0 {
			st.Text = scenario.Found(st.Text, c.Found)
		}
	case scenario.Issue:
		st.Text = s.Operation(int(c.A), s.ends[c.A].Issued+1)
	case scenario.Decide:
		b, _ := s.Ballot(&c)
		st.Text = s.BallotText(b)
	}
	return st
}

// Exclusion says which users are inside that do not share, "": none.
func (s *State) Exclusion() string {
	var groups []protocol.Group
	if s.Grouped {
		groups = s.Granted()
	}
	if s.Weak {
		return ""
	}
	return history.Users(s.View().Users).Exclusion(s.Names.Of, groups)
}
