package sim

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// A simulator is one run.
type simulator[M any] struct {
	alg   protocol.Algorithm[M]
	cfg   Config
	names scenario.Names

	now     int64
	seq     uint64
	queue   *queue
	flights []flight[M]
	free    uint32 // first free flight, none if there is none
	procs   []process[M]
	users   []user
	active  int // users that still have entries to make
	total   int // entries to make
	out     protocol.Out[M]
	monitor history.Monitor
	faults  faults
	lossy   lossy
	log     *log // nil: none

	// oneItem says that all copies of a broadcast arrive at one time, so that
	// one item of the queue stands for all of them.
	oneItem bool
	// ordered says that channels are FIFO and that delays may differ: else they
	// are in order anyway.
	ordered bool

	overhead []bool // by kind of message
	byKind   []int
	integers int

	// A grant is slow when its user sent setToken between try and crit: it took
	// one more round to get its fencing token. Counted from settled on, since
	// before it every grant after a start is slow.
	setToken     int // kind, -1: the algorithm has none
	settled      int64
	fenced, slow int

	events    int64
	idle      int64 // items of the queue since the last entry
	reported  int64 // events at the last call of Progress
	stepping  bool  // inside the algorithm: a panic is its
	dead      bool  // the run cannot go on
	crashed   int
	forgotten int // memory losses
}

// A flight is one message on its way, to one process or to all.
type flight[M any] struct {
	msg    M
	from   uint32
	copies uint32 // not yet delivered; of a free one, the next free one
}

const none = ^uint32(0)

// A process is one id. Ids are never reused, so there are more of them when clients
// crash.
type process[M any] struct {
	process     protocol.Process[M] // nil: never up, or crashed
	pausedUntil int64
	offset      int64 // own clock minus virtual time
	user        int32 // -1: none
	incarnation uint64
	timers      []timer
	last        []int64 // FIFO: the latest arrival at each process
	suspectedBy []bool  // members whose detector suspects this one; nil: none
	random      *randoms
}

// randoms are the streams of a process.
type randoms struct{ delay, jitter, clock stream }

// A timer has at most one live item in the queue. When it is set later than that
// item, the item stays and moves on when it comes up: a timer that is set again
// and again, as time-outs are, costs no more than one item.
type timer struct {
	name   uint32
	at     int64  // when it fires, -1: not set
	key    uint64 // of its live item, 0: none
	itemAt int64
}

// The states of a user.
const (
	thinking uint8 = iota
	trying
	inside
	leaving // has called exit, waits for rem
	done
)

// A user is one closed loop, through the lives of its processes.
type user struct {
	proc    uint32
	state   uint8
	left    int    // entries to make
	pending uint64 // key of its next item; another one is stale
	slow    bool
	think   stream
	hold    stream
}

// begin starts a life of a process.
func (s *simulator[M]) begin(id uint32) {
	p := &s.procs[id]
	s.stepping = true
	p.process = s.alg.New(protocol.ID(id), s.cfg.Config)
	s.stepping = false
	p.timers = p.timers[:0]
	p.offset = clockBase
	if o := int64(s.cfg.ClockOffset); o > 0 {
		p.offset += p.random.clock.Int64N(2*o+1) - o
	}
	if s.alg.Incarnations || s.alg.Detector == protocol.LeaseDetector {
		was := p.incarnation
		p.incarnation = max(was+1, uint64(max(1, s.now+p.offset)))
	}
	s.input(id, protocol.Input{Kind: protocol.Start, Arg: p.incarnation})
}

// start starts every process and schedules the users and the faults.
func (s *simulator[M]) start() {
	down := make([]bool, s.cfg.N)
	for _, id := range s.cfg.Down {
		down[id] = true
	}
	for range s.cfg.N {
		s.open()
	}
	for id := range s.cfg.N {
		if s.alg.Users == protocol.Members {
			s.procs[id].user = int32(id)
			s.users[id].proc = uint32(id)
		}
		if !down[id] {
			s.begin(uint32(id))
			s.faults.up = append(s.faults.up, uint32(id))
		}
	}
	for u := range s.users {
		us := &s.users[u]
		us.left = s.cfg.entriesOf(u)
		us.think.begin(s.cfg.Seed, forThink, uint64(u))
		us.hold.begin(s.cfg.Seed, forHold, uint64(u))
		s.total += us.left
		if s.alg.Users == protocol.Clients {
			s.newClient(u)
		}
	}
	for u := range s.users {
		first := float64(s.cfg.Think.Mean()) * float64(u) / float64(len(s.users))
		s.schedule(u, userTry, int64(first))
	}
	s.startFaults()
}

// newClient starts a process of the client user u.
func (s *simulator[M]) newClient(u int) {
	id := s.open()
	s.procs[id].user = int32(u)
	s.users[u].proc = id
	s.begin(id)
	if s.alg.Detector == protocol.LeaseDetector {
		for _, j := range s.faults.up {
			if s.meet(id, j) > s.now {
				s.push(s.meet(id, j)+s.detectorDelay(), news, id, j)
			} else {
				s.restored(id, j)
			}
		}
	}
}

// run handles event after event until every user is done.
func (s *simulator[M]) run() {
	defer s.caught()
	s.start()
	for s.active > 0 && !s.dead {
		if s.queue.len() == 0 {
			s.stuck("nothing more will happen")
			return
		}
		if s.idle++; s.idle > s.cfg.Patience {
			s.stuck(fmt.Sprintf("no entry in %d events", s.cfg.Patience))
			return
		}
		it := s.queue.pop()
		s.now = it.at
		switch it.key & (1<<kindBits - 1) {
		case deliver:
			s.arrive(it)
		case broadcast:
			s.arriveAtAll(it)
		case timeout:
			s.timeout(it)
		case userTry:
			s.try(it)
		case userExit:
			s.exit(it)
		case birth:
			if s.users[it.to].pending == it.key {
				s.newClient(int(it.to))
				s.schedule(int(it.to), userTry, 0)
			}
		default:
			s.fault(it)
		}
		if s.cfg.Progress != nil && s.events-s.reported >= 1<<19 {
			s.reported = s.events
			s.cfg.Progress(int(s.monitor.Entries()), s.total)
		}
	}
}

// caught turns a panic of a process, which its model makes impossible, into a
// violation. A panic of the simulator itself stays one.
func (s *simulator[M]) caught() {
	if !s.stepping {
		return
	}
	s.found("panic", fmt.Sprint(recover()))
}

func (s *simulator[M]) found(property, text string) {
	s.monitor.Found(s.now, property, text)
}

func (s *simulator[M]) stuck(why string) {
	var who []string
	for u := range s.users {
		if st := s.users[u].state; st == trying || st == leaving {
			who = append(who, s.monitor.Name(u))
		}
	}
	const most = 10
	if len(who) > most {
		who = append(who[:most], fmt.Sprintf("%d more", len(who)-most))
	}
	verb := "wait"
	if len(who) == 1 {
		verb = "waits"
	}
	s.found("stuck", fmt.Sprintf("%s, and %s %s", why, strings.Join(who, ", "), verb))
}

// push puts an item into the queue, and returns its key.
func (s *simulator[M]) push(at int64, kind uint64, to, slot uint32) uint64 {
	it := s.item(at, kind, to, slot)
	s.queue.push(it)
	return it.key
}

// item makes the next item. Its time may be before now only when the clock ran out.
func (s *simulator[M]) item(at int64, kind uint64, to, slot uint32) item {
	if at < s.now && !s.dead {
		s.dead = true
		s.found("time", "the virtual clock, which has 292 years, ran out")
	}
	s.seq++
	return item{at, s.seq<<kindBits | kind, to, slot}
}

// schedule makes user u's next item the only one that counts.
func (s *simulator[M]) schedule(u int, kind uint64, after int64) {
	s.users[u].pending = s.push(s.now+after, kind, uint32(u), 0)
}

// again puts it back until time at. It keeps its key, so that what a pause or a
// partition holds up comes in its old order.
func (s *simulator[M]) again(it item, at int64) {
	it.at = at
	s.queue.push(it)
}

// step gives one event to process id, which must be up, and does what it asks.
func (s *simulator[M]) step(id uint32, in protocol.Input, msg *M) {
	p := &s.procs[id]
	s.events++
	s.out.Reset()
	s.stepping = true
	// Field by field, because a copy of all would have to wait for each of them to
	// be stored: that would take longer than the step.
	var ev protocol.Event[M]
	ev.Kind, ev.Timer, ev.From, ev.Arg, ev.Now = in.Kind, in.Timer, in.From, in.Arg, s.now+p.offset
	ev.Msg = *msg
	p.process.Step(ev, &s.out)
	s.stepping = false
	for i := range s.out.Effects {
		e := &s.out.Effects[i]
		switch e.Do {
		case protocol.Send:
			s.send(id, e.To, e.Msg, e.Arg == 1)
		case protocol.Broadcast:
			s.broadcast(id, e.Msg)
		case protocol.SetTimer:
			s.setTimer(p, id, e.Act)
		case protocol.StopTimer:
			for k := range p.timers {
				if p.timers[k].name == e.Timer {
					p.timers[k].at = -1
				}
			}
		case protocol.Crit, protocol.Rem, protocol.Ejected:
			s.tell(id, e.Act)
		case protocol.Owner:
		default:
			s.found(history.WellFormed, fmt.Sprintf("%s asked for effect %d", s.names.Of(protocol.ID(id)), e.Do))
		}
	}
}

// leaves is when what process id sends now leaves it.
func (s *simulator[M]) leaves(id uint32) int64 { return max(s.now, s.procs[id].pausedUntil) }

// count counts copies of a message.
func (s *simulator[M]) count(from uint32, m M, copies int) {
	kind := s.alg.KindOf(m)
	s.byKind[kind] += copies
	if !s.overhead[kind] {
		s.integers += copies * s.alg.Ints(m)
	}
	if kind == s.setToken {
		if u := s.procs[from].user; u >= 0 {
			s.users[u].slow = true
		}
	}
}

func (s *simulator[M]) send(from uint32, to protocol.ID, m M, again bool) {
	if to >= protocol.ID(len(s.procs)) || uint32(to) == from {
		s.found(history.WellFormed, fmt.Sprintf("%s sent to %s: itself, or nobody",
			s.names.Of(protocol.ID(from)), s.names.Of(to)))
		return
	}
	if again {
		s.lossy.resent++
	} else {
		s.count(from, m, 1)
	}
	if s.procs[to].process == nil {
		return
	}
	s.carry(from, deliver, uint32(to), s.flight(from, m, 1))
}

// carry puts a message on its way, to one process or, where one item stands for
// all copies, to all. With a constant delay and no pause it follows those that are
// on their way.
func (s *simulator[M]) carry(from uint32, kind uint64, to, slot uint32) {
	for range s.copies(slot) {
		if s.oneItem && s.procs[from].pausedUntil <= s.now {
			s.queue.follow(s.item(s.now+int64(s.cfg.Delay.A), kind, to, slot))
		} else {
			s.push(s.arrival(from, to), kind, to, slot)
		}
	}
}

func (s *simulator[M]) broadcast(from uint32, m M) {
	copies := s.cfg.N
	if int(from) < s.cfg.N {
		copies--
	}
	if copies == 0 {
		return
	}
	s.count(from, m, copies)
	slot := s.flight(from, m, uint32(copies))
	if s.oneItem && !s.isLossy() {
		s.carry(from, broadcast, 0, slot)
		s.seq += uint64(s.cfg.N) // the copies' numbers, as if they were items
		return
	}
	for to := range uint32(s.cfg.N) {
		if to != from {
			s.carry(from, deliver, to, slot)
		}
	}
}

// arrival draws when a message that process from sends now reaches to.
func (s *simulator[M]) arrival(from, to uint32) int64 {
	p := &s.procs[from]
	at := s.leaves(from) + s.cfg.Delay.draw(&p.random.delay)
	if s.ordered {
		for int(to) >= len(p.last) {
			p.last = append(p.last, 0)
		}
		at = max(at, p.last[to])
		p.last[to] = at
	}
	return at
}

func (s *simulator[M]) flight(from uint32, m M, copies uint32) uint32 {
	slot := s.free
	if slot == none {
		s.flights = append(s.flights, flight[M]{m, from, copies})
		return uint32(len(s.flights) - 1)
	}
	f := &s.flights[slot]
	s.free = f.copies
	*f = flight[M]{m, from, copies}
	return slot
}

// land takes one copy of a message off its way.
func (s *simulator[M]) land(slot uint32) {
	f := &s.flights[slot]
	if f.copies--; f.copies == 0 {
		f.copies, s.free = s.free, slot
	}
}

func (s *simulator[M]) arriveAtAll(it item) {
	from := s.flights[it.slot].from
	for to := range uint32(s.cfg.N) {
		if to != from {
			s.arrive(item{it.at, it.key + uint64(to)<<kindBits - broadcast + deliver, to, it.slot})
		}
	}
}

// arrive delivers a message, unless something still holds it up.
func (s *simulator[M]) arrive(it item) {
	f := &s.flights[it.slot]
	from, p := f.from, &s.procs[it.to]
	if p.process == nil {
		s.land(it.slot)
		return
	}
	if until := s.heldUntil(from, it.to); until > s.now {
		s.again(it, until)
		return
	}
	if len(s.faults.apart) > 0 && s.lost(from, it) {
		s.land(it.slot)
		return
	}
	s.land(it.slot)
	if s.log != nil {
		s.log.deliver(s, from, it.to, s.alg.Text(f.msg))
	}
	s.step(it.to, protocol.Input{Kind: protocol.Receive, From: protocol.ID(from)}, &f.msg)
	if len(s.faults.suspected) == 0 {
		return
	}
	if by := s.procs[from].suspectedBy; int(it.to) < len(by) && by[it.to] {
		s.suspects(it.to, from)
	}
}

func (s *simulator[M]) setTimer(p *process[M], id uint32, a protocol.Act) {
	at := s.now + a.After
	if a.Arg > 0 {
		at += int64(p.random.jitter.Uint64N(a.Arg + 1))
	}
	k := 0
	for k < len(p.timers) && p.timers[k].name != a.Timer {
		k++
	}
	if k == len(p.timers) {
		p.timers = append(p.timers, timer{name: a.Timer})
	}
	t := &p.timers[k]
	t.at = at
	if t.key == 0 || t.itemAt > at {
		t.key, t.itemAt = s.push(at, timeout, id, uint32(k)), at
	}
}

func (s *simulator[M]) timeout(it item) {
	p := &s.procs[it.to]
	if p.process == nil || int(it.slot) >= len(p.timers) {
		return
	}
	t := &p.timers[it.slot]
	switch {
	case t.key != it.key: // of a former life, or replaced by an earlier one
		return
	case t.at < 0:
		t.key = 0
		return
	case p.pausedUntil > s.now:
		t.itemAt = p.pausedUntil
		s.again(it, p.pausedUntil)
		return
	case t.at > s.now:
		t.key, t.itemAt = s.push(t.at, timeout, it.to, it.slot), t.at
		return
	}
	t.at, t.key = -1, 0
	name := t.name
	if s.log != nil {
		s.log.step(s, scenario.Step{Verb: scenario.Timeout, Procs: s.log.procs(it.to), Timer: name})
	}
	s.input(it.to, protocol.Input{Kind: protocol.Timeout, Timer: name})
}

// input gives an event without message to a process.
func (s *simulator[M]) input(id uint32, in protocol.Input) {
	var zero M
	s.step(id, in, &zero)
}

// ready returns user it.to when its item still counts, and otherwise nil. The
// items of a paused process come when the pause ends.
func (s *simulator[M]) ready(it item) *user {
	u := &s.users[it.to]
	if u.pending != it.key {
		return nil
	}
	if until := s.procs[u.proc].pausedUntil; until > s.now {
		s.again(it, until)
		return nil
	}
	return u
}

func (s *simulator[M]) try(it item) {
	u := s.ready(it)
	if u == nil {
		return
	}
	if s.log != nil {
		s.log.step(s, scenario.Step{Verb: scenario.Try, Procs: s.log.procs(u.proc)})
	}
	u.state, u.slow = trying, false
	in := protocol.Input{Kind: protocol.Try, Arg: protocol.TryWait}
	s.monitor.Input(int(it.to), s.now, in)
	s.input(u.proc, in)
}

func (s *simulator[M]) exit(it item) {
	u := s.ready(it)
	if u == nil {
		return
	}
	if s.log != nil {
		s.log.step(s, scenario.Step{Verb: scenario.Exit, Procs: s.log.procs(u.proc)})
	}
	u.state = leaving
	in := protocol.Input{Kind: protocol.Exit}
	s.monitor.Input(int(it.to), s.now, in)
	s.input(u.proc, in)
}

// tell hands crit, rem or ejected to the user of process id.
func (s *simulator[M]) tell(id uint32, a protocol.Act) {
	if s.log != nil {
		s.log.act(s, id, a)
	}
	k := int(s.procs[id].user)
	if k < 0 {
		s.found(history.WellFormed, s.names.Of(protocol.ID(id))+" has no user, and told one something")
		return
	}
	s.monitor.Act(k, s.now, a)
	u := &s.users[k]
	switch {
	case a.Do == protocol.Crit && u.state == trying:
		u.state = inside
		u.left--
		s.idle = 0
		if s.setToken >= 0 && a.Arg != 0 && s.now >= s.settled {
			s.fenced++
			if u.slow {
				s.slow++
			}
		}
		s.schedule(k, userExit, s.cfg.Hold.draw(&u.hold))
	case a.Do == protocol.Ejected && u.state == inside:
		s.schedule(k, userExit, 0)
	case a.Do == protocol.Rem && (u.state == trying || u.state == leaving):
		if u.left == 0 {
			u.state = done
			s.active--
			return
		}
		u.state = thinking
		s.schedule(k, userTry, s.cfg.Think.draw(&u.think))
	}
}
