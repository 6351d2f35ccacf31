package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// A simulator is one run: an engine, and what depends on the type of messages. That is compiled for
// each type anew, so what need not be here is the engine's, and the engine is not embedded: the methods that
// come with it would be compiled as often.
type simulator[M any] struct {
	engine  engine
	alg     protocol.Algorithm[M]
	cores   []protocol.Process[M] // by id
	out     protocol.Out[M]
	flights []flight[M]
	free    uint32 // first free flight, none if there is none
	decided []M    // by consensus, by Ballot.Msg: who comes back resumes with one of which others have heard long ago
}

// steps are what an engine leaves to its simulator.
type steps interface {
	create(id uint32) // makes a process, in its initial state
	drop(id uint32)   // forgets it
	event(id uint32, in protocol.Input)
	unsettled() int       // as Algorithm.Unsettled
	spare(id uint32) bool // as Algorithm.Spare
}

// An engine is one run without its messages.
type engine struct {
	world.Rules
	steps
	cfg Config

	now      int64
	seq      uint64
	queue    *queue
	procs    []process
	users    []user
	active   int   // users that still have entries to make
	total    int   // entries to make
	ninety   int64 // when nine tenths of them were made
	monitor  history.Monitor
	faults   faults
	losses   workload.Stream // of messages: its own, so that users meet the same workload whatever is lost
	load     workload.Users
	memory   memory
	says     history.Leaders // of an election, by member
	terms    history.Terms   // of it: they grow with the number of epochs
	weak     weak
	log      *log // nil: none
	measured measured

	// even says that all messages take equally long: they arrive in the order in which
	// they leave.
	even bool
	// oneItem says that all copies of a broadcast arrive at one time, so that
	// one item of the queue stands for all of them.
	oneItem bool
	// ordered says that channels are FIFO and that messages would not be in order anyway.
	ordered bool
	bit32   float64 // ns that 32 bits take by Config.Bandwidth

	totals Totals
	counts
	overhead []bool // by kind of message
	own      int    // messages that are no overhead, from the start

	// A grant is slow when its user sent setToken between try and crit: it took
	// one more round to get its fencing token. Counted from settled on, since
	// before it every grant after a start is slow.
	setToken int // kind, -1: the algorithm has none
	settled  int64

	events   int64
	idle     int64 // items of the queue since the last entry
	reported int64 // events at the last call of report
	stepping bool  // inside the algorithm: a panic is its
	dead     bool  // the run cannot go on
	refused  error // why it takes more than a machine has

	asleep []uint32 // where a pause is more than slowness: processes that pause
}

// A process is one id. Ids are never reused, so there are more of them when clients
// crash.
type process struct {
	up          bool // false: never was, or crashed
	pausedUntil int64
	missed      []uint32 // members at which its lease lapsed while it paused
	offset      int64    // own clock minus virtual time
	user        int32    // -1: none
	incarnation uint64
	timers      []timer
	last        []int64 // FIFO: the latest arrival at each process
	died        uint64  // sequence number at the last crash of a member, 0: it never crashed
	suspectedBy []bool  // members whose detector suspects this one; nil: none
	open        protocol.OpenAccesses
	born        uint64 // sequence number at the begin of this life
	random      *randoms
}

// randoms are the streams of a process.
type randoms struct{ delay, jitter, clock workload.Stream }

// begin starts a life of a process.
func (s *engine) begin(id uint32) {
	p := &s.procs[id]
	s.create(id)
	p.up = true
	p.timers = p.timers[:0]
	s.leaveMemory(id)
	p.offset = clockBase
	if o := int64(s.cfg.ClockOffset); o > 0 {
		p.offset += p.random.clock.Int64N(2*o+1) - o
	}
	if s.Peers && s.Tolerates&protocol.Recovery != 0 {
		p.incarnation++
	} else if s.Incarnations || s.Detector == protocol.LeaseDetector {
		was := p.incarnation
		p.incarnation = max(was+1, uint64(max(1, s.now+p.offset)))
	}
	if s.Consensus { // others may have proposed when they started
		s.willHear(id)
	}
	s.input(id, protocol.NewStart(p.incarnation))
}

// start starts every process and schedules the users and the faults.
func (s *engine) start() {
	down := make([]bool, s.cfg.N)
	for _, id := range s.cfg.Down {
		down[id] = true
	}
	for range s.cfg.N {
		s.open()
	}
	for id := range s.cfg.N {
		if s.Info.Users == protocol.Members {
			s.procs[id].user = int32(id)
			s.users[id].proc = uint32(id)
		}
		if !down[id] {
			s.begin(uint32(id))
			s.faults.up = append(s.faults.up, uint32(id))
		}
	}
	if s.Mutual {
		s.beginSessions()
	}
	for u := range s.users {
		if s.Info.Users == protocol.Clients {
			s.newClient(u)
		}
	}
	for u := range s.users {
		if s.load.Left(u) == 0 {
			s.active--
			continue
		}
		s.schedule(u, userTry, int64(s.load.First(u)))
	}
	s.startFaults()
}

// newClient starts a process of the client user u.
func (s *engine) newClient(u int) {
	id := s.open()
	s.procs[id].user = int32(u)
	s.users[u].proc = id
	s.begin(id)
	if s.Detector == protocol.LeaseDetector {
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
	e := &s.engine
	defer e.caught()
	e.start()
	for (e.active > 0 || e.Elects()) && !e.dead {
		if e.queue.len() == 0 {
			e.rest()
			return
		}
		if e.idle++; e.idle > e.cfg.Patience {
			e.stuck(fmt.Sprintf("%s in %d events", e.progress(), e.cfg.Patience))
			return
		}
		it := e.queue.pop()
		if end := int64(e.cfg.Until); end > 0 && it.at > end {
			e.end(it, end)
			return
		}
		e.now = it.at
		if len(e.asleep) > 0 {
			e.awake()
		}
		switch it.key & (1<<kindBits - 1) {
		case deliver:
			s.arrive(it)
		case broadcast:
			s.arriveAtAll(it)
		case hear:
			s.hears(it)
		default:
			e.happen(it)
		}
		if e.events-e.reported >= 1<<16 {
			s.report()
		}
	}
}

// happen handles an item that has nothing to do with messages.
func (s *engine) happen(it item) {
	switch it.key & (1<<kindBits - 1) {
	case timeout:
		s.timeout(it)
	case access:
		s.accessed(it)
	case userTry:
		s.try(it)
	case userExit:
		s.exit(it)
	case userDown:
		s.downgrade(it)
	case birth:
		if s.users[it.to].pending == it.key {
			s.newClient(int(it.to))
			s.schedule(int(it.to), userTry, 0)
		}
	default:
		s.fault(it)
	}
}

// report is for what is to be done now and then.
func (s *simulator[M]) report() {
	e := &s.engine
	e.reported = e.events
	if !e.crowded(len(s.flights)) && e.cfg.Progress != nil {
		e.cfg.Progress(Progress{Entries: int(e.monitor.Entries()), Total: e.total, Events: e.events, Now: time.Duration(e.now)})
	}
}

// caught turns a panic of a process, which its model makes impossible, into a
// violation. A panic of the simulator itself stays one.
func (s *engine) caught() {
	if !s.stepping {
		return
	}
	s.found("panic", fmt.Sprint(recover()))
}

func (s *engine) found(property, text string) {
	s.monitor.Found(s.now, property, text)
}

// judged records what a rule or a judge found, if it is a fault.
func (s *engine) judged(f history.Fault) {
	if f != (history.Fault{}) {
		s.found(f.Property, strings.TrimPrefix(s.Names.Text(f.Text), f.Property+": "))
	}
}

// progress is what there is none of in a run that is stuck.
func (s *engine) progress() string {
	switch {
	case s.Elects():
		return "no leader named"
	case s.Weak:
		return "no entry and no outcome"
	}
	return "no entry"
}

func (s *engine) stuck(why string) {
	if s.Elects() {
		s.found("stuck", why+", and the election goes on")
		return
	}
	var who []string
	for u := range s.users {
		if history.Wait(s.monitor.Section(u)) != "" || s.users[u].issuing {
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
func (s *engine) push(at int64, kind uint64, to, slot uint32) uint64 {
	it := s.item(at, kind, to, slot)
	s.queue.push(it)
	return it.key
}

// item makes the next item. Its time may be before now only when the clock ran out.
func (s *engine) item(at int64, kind uint64, to, slot uint32) item {
	if at < s.now && !s.dead {
		s.dead = true
		s.found("time", "the virtual clock, which has 292 years, ran out")
	}
	s.seq++
	return item{at, s.seq<<kindBits | kind, to, slot}
}

// again puts it back until time at. It keeps its key, so that what a pause or a
// partition holds up comes in its old order.
func (s *engine) again(it item, at int64) {
	it.at = at
	s.queue.push(it)
}

// step gives one event to process id, which must be up, and does what it asks.
func (s *simulator[M]) step(id uint32, in protocol.Input, msg *M) {
	p := &s.engine.procs[id]
	s.engine.events++
	s.out.Reset()
	s.engine.stepping = true
	// Field by field, because a copy of all would have to wait for each of them to
	// be stored: that would take longer than the step.
	var ev protocol.Event[M]
	ev.Kind, ev.Timer, ev.From, ev.Arg, ev.Now = in.Kind, in.Timer, in.From, in.Arg, s.engine.now+p.offset
	ev.Data = in.Data
	ev.Msg = *msg
	s.cores[id].Step(ev, &s.out)
	s.engine.stepping = false
	captures := false
	for i := range s.out.Effects {
		e := &s.out.Effects[i]
		switch e.Do {
		case protocol.Send:
			s.send(id, e.To, &e.Msg, e.Arg == 1)
		case protocol.Broadcast:
			s.broadcast(id, &e.Msg)
		case protocol.SetTimer:
			s.engine.setTimer(p, id, e.Act)
		case protocol.StopTimer:
			for k := range p.timers {
				if p.timers[k].name == e.Timer {
					p.timers[k].at = -1
				}
			}
		case protocol.Read, protocol.Write, protocol.Await:
			s.engine.access(id, e.Act)
		default:
			switch s.engine.effect(id, e.Act) {
			case protocol.Propose:
				s.propose(e.Arg, &e.Msg)
			case protocol.Capture:
				captures = true
			}
		}
	}
	if captures {
		s.engine.input(id, protocol.NewCaptured(s.engine.weak.judge.Copy(protocol.ID(id))))
	}
}

// effect does what a process asks for beside messages, timers and registers. What is left to do it returns: Propose, or
// Capture, when the process is to be told what its copy of the object is, behind all that it asks for in this step.
func (s *engine) effect(id uint32, a protocol.Act) (left protocol.Do) {
	if wrong := s.Meaning(int(id), a); wrong != nil {
		s.judged(*wrong)
		return 0
	}
	if s.weak.judge != nil && a.Do != protocol.Capture {
		s.judged(s.weak.judge.Act(protocol.ID(id), a))
	}
	switch a.Do {
	case protocol.Crit, protocol.Rem, protocol.Ejected:
		s.tell(id, a)
	case protocol.Outcome:
		s.outcome(id, a)
	case protocol.Leader:
		s.lead(id, a)
	case protocol.Revoke:
		s.revoke(id, uint32(a.To))
	case protocol.Resume:
		s.weak.votes.Resume(int(id), a.Arg)
		s.willHear(id)
	}
	return a.Do
}

// input gives an event without message to a process.
func (s *engine) input(id uint32, in protocol.Input) {
	if s.weak.judge != nil {
		s.judged(s.weak.judge.Input(protocol.ID(id), in))
	}
	s.event(id, in)
}

func (s *simulator[M]) event(id uint32, in protocol.Input) {
	var zero M
	s.step(id, in, &zero)
}

func (s *simulator[M]) create(id uint32) {
	for int(id) >= len(s.cores) {
		s.cores = append(s.cores, nil)
	}
	s.engine.stepping = true
	s.cores[id] = s.alg.New(protocol.ID(id), s.engine.cfg.Config)
	s.engine.stepping = false
}

func (s *simulator[M]) drop(id uint32) { s.cores[id] = nil }

func (s *simulator[M]) unsettled() int { return s.alg.Unsettled(s.processes()) }

func (s *simulator[M]) spare(id uint32) bool { return s.alg.Spare(s.processes(), protocol.ID(id)) }

// processes are those that are up, by id.
func (s *simulator[M]) processes() []protocol.Stateful {
	procs := make([]protocol.Stateful, len(s.engine.procs))
	for id := range s.engine.procs {
		if s.engine.procs[id].up {
			procs[id] = s.cores[id]
		}
	}
	return procs
}
