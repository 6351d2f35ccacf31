package node

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/compact"
	"github.com/poundlock/poundlock/internal/measure"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A shard's readers wait for it when this much waits already.
const (
	maxQueue = 1 << 14  // events
	maxBytes = 16 << 20 // of frames with messages in the queue

	// The memory of a queue of more events is not kept for longer than this after it was
	// needed: a burst must not be paid for ever.
	keepQueue = 1 << 10
	keepFor   = time.Second
)

// An op says what an event asks of a shard.
type op uint8

const (
	opMessage op = iota // msg of the lock name arrived in sess
	opRefused           // the peer of sess does not serve the lock name; msg says why
	opOpen              // sess is the session with its peer
	opDead              // sess has ended
	opTry
	opCancel
	opExit
	opNames
	opLocks
	opHeld // once: at most one
	opDrain
	opPark  // stands still in park
	opHeard // answers once all that was urgent before is dealt with
	opTally // answers once what was counted so far can be read
	opClose
)

type event struct {
	op    op
	kind  Kind // opMessage, opRefused, opTry
	once  bool // opTry, opHeld
	sess  *session
	next  *session // opDead: takes over where there is always a session
	name  []byte   // opMessage
	msg   []byte
	text  string // name of the lock; opDead: the reason
	page  *Page  // opNames, opLocks
	locks chan<- []Lock
	park  func()
}

// An instance is one process of one lock. There may be very many: it is kept small.
type instance struct {
	kind    Kind
	inside  bool  // its user is in the critical section
	removed bool  // the shard has forgotten it
	waiting int32 // requests in its queue
	name    string
	process Instance
	timers  *timer     // the first of those that are armed
	peers   []*session // that have business with it: where shard.business has it
	owner   owner      // whom it supports
}

// A business is the instances that a peer has business with.
type business struct {
	compact.Map[*instance, struct{}]
	full time.Duration // after the node's start: until then they were too many
}

// A user is the user of one lock, from Try to Rem.
type user struct {
	User
	kind     Kind
	refusal  string                 // of a member that does not serve the lock: the reason of Rem
	section  protocol.Section       // the shard's
	supports map[protocol.ID]uint64 // what it was told last; shared
}

// A shard owns the instances whose names hash to it. Only its goroutine touches
// what does not stand below mu.
type shard struct {
	n         *Node
	instances compact.Map[string, *instance]
	sessions  map[protocol.ID]*session // by peer, as far as this shard has heard
	live      []uint64                 // at clients with leases: incarnations of the members, 0: not trusted
	business  map[*session]*business
	timers    timers
	measured  map[Kind]measured // see system
	random    *rand.Rand
	current   *instance  // whose effects come
	dirty     []*session // to be kicked
	draining  bool
	counted   map[string]map[protocol.ID]uint64 // see supports
	refusals  map[*instance]*refusals           // at clients: those that members refuse
	fresh     map[Kind][]byte                   // the states of instances just made, as far as they are known
	state     []byte                            // scratch
	tally     tally
	held      measure.Histogram     // how long supports lasted
	latest    atomic.Pointer[tally] // a copy for others
	done      chan struct{}
	wake      chan struct{}

	mu     sync.Mutex
	space  sync.Cond // there is room in queue
	urgent []event   // before the queue
	queue  []event
	bytes  int // of the frames that the messages in queue keep in memory
	users  compact.Map[string, *user]
	failed map[string]string // why a lock is dead at this node; written by the shard
	closed bool
}

func newShard(n *Node) *shard {
	s := &shard{
		n:        n,
		sessions: map[protocol.ID]*session{},
		business: map[*session]*business{},
		live:     make([]uint64, n.c.System.N),
		measured: map[Kind]measured{},
		counted:  map[string]map[protocol.ID]uint64{},
		refusals: map[*instance]*refusals{},
		random:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		done:     make(chan struct{}),
		wake:     make(chan struct{}, 1),
		fresh:    map[Kind][]byte{},
		failed:   map[string]string{},
	}
	s.space.L = &s.mu
	s.tally.sent, s.tally.received = make([]uint64, len(n.messages)), make([]uint64, len(n.messages))
	s.copyTally()
	return s
}

// deliver queues the messages of a frame of size bytes, and waits while too much
// is queued: a peer that sends faster than the shard steps is slowed down.
func (s *shard) deliver(batch []event, size int) {
	s.mu.Lock()
	for (len(s.queue) >= maxQueue || s.bytes >= maxBytes) && !s.closed {
		s.space.Wait()
	}
	if !s.closed {
		s.queue = append(s.queue, batch...)
		s.bytes += size
	}
	s.mu.Unlock()
	s.signal()
}

// post queues an event and never waits, so that users may call it from their
// callbacks. It reports false when the shard is closed. What is posted is
// bounded by the numbers of users and of sessions.
func (s *shard) post(e event) bool {
	s.mu.Lock()
	if !s.closed {
		s.queue = append(s.queue, e)
	}
	ok := !s.closed
	s.mu.Unlock()
	s.signal()
	return ok
}

// hurry queues an event before all others that are not urgent.
func (s *shard) hurry(e event) {
	s.mu.Lock()
	s.urgent = append(s.urgent, e)
	s.mu.Unlock()
	s.signal()
}

func (s *shard) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) try(kind Kind, name string, u User, once bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if why, ok := s.failed[name]; ok {
		return fmt.Errorf("%w: %q: %s", ErrFailed, name, why)
	}
	if s.users.Has(name) {
		return fmt.Errorf("%w: %q", ErrBusy, name)
	}
	s.users.Set(name, &user{User: u, kind: kind})
	s.queue = append(s.queue, event{op: opTry, text: name, once: once})
	s.signal()
	return nil
}

// run is the goroutine of the shard.
func (s *shard) run() {
	defer close(s.done)
	var urgent, queue []event
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	var needed time.Time // when the queue was long
	yield := false       // the last pass has not kicked anybody yet
	for {
		s.n.lapse()
		s.mu.Lock()
		urgent, s.urgent = s.urgent, urgent[:0]
		queue, s.queue = s.queue, queue[:0]
		s.bytes = 0
		s.space.Broadcast()
		s.mu.Unlock()
		idle := len(urgent)+len(queue) == 0
		for i := range urgent {
			s.handle(&urgent[i])
		}
		for i := range queue {
			if queue[i].op == opClose {
				s.close(queue[i+1:])
				return
			}
			s.handle(&queue[i])
		}
		clear(urgent)
		clear(queue)
		wait := s.runTimers()
		if len(queue) > keepQueue {
			needed = time.Now()
		}
		if cap(queue) > keepQueue {
			wait = min(wait, keepFor)
			if cap(queue) > 2*maxQueue || idle && time.Since(needed) > keepFor {
				queue = nil
			}
		}
		if yield = !yield && !idle && len(s.dirty) > 0 && !s.n.isMember(s.n.c.ID); yield {
			// What users do at once, such as the next Try after an Exit, goes into the same
			// frames. At a member it would only come between a request and its answer.
			runtime.Gosched()
			continue
		}
		for _, p := range s.dirty {
			p.kick()
		}
		clear(s.dirty)
		s.dirty = s.dirty[:0]
		if !idle {
			continue
		}
		alarm.Reset(wait)
		select {
		case <-s.wake:
		case <-alarm.C:
		}
	}
}

func (s *shard) handle(e *event) {
	switch e.op {
	case opMessage:
		s.message(e)
	case opRefused:
		s.refused(e)
	case opOpen:
		s.open(e.sess)
	case opDead:
		s.dead(e)
	case opTry:
		s.tryEvent(e)
	case opCancel:
		if u := s.user(e.text); u != nil && u.section == protocol.InTry && s.cancels(u.kind) {
			s.stepUser(e.text, protocol.Input{Kind: protocol.Cancel})
		}
	case opExit:
		if u := s.user(e.text); u != nil && u.section >= protocol.InCrit {
			s.stepUser(e.text, protocol.Input{Kind: protocol.Exit})
		}
	case opNames:
		e.locks <- s.names(e.page)
	case opLocks:
		e.locks <- s.locks(e.page.names)
	case opHeld:
		e.locks <- s.holders(e.once)
	case opDrain:
		s.drain()
		e.locks <- nil
	case opPark:
		e.park()
	case opHeard:
		e.locks <- nil
	case opTally:
		s.copyTally()
		e.locks <- nil
	}
}

// message delivers a message of a session that is not dead.
func (s *shard) message(e *event) {
	if e.sess.dead.Load() {
		return
	}
	i := s.instances.View()[string(e.name)]
	if i == nil && len(s.failed) > 0 && s.failed[string(e.name)] != "" {
		return
	}
	if i == nil || i.kind != e.kind {
		if why := s.unserved(i, e); why != "" {
			s.refuseName(e, why)
			return
		}
		i = s.create(e.kind, string(e.name))
	}
	if !s.note(i, e.sess) {
		s.refuseName(e, fmt.Sprintf("a client may hold or want %d locks at once, and this one does", s.n.c.MaxLocks))
		s.dropIfIdle(i)
		return
	}
	if s.served(i, e.sess.id); i.removed {
		return
	}
	s.step(i, protocol.Input{Kind: protocol.Receive, From: e.sess.id}, e.msg, e.sess)
}

// open notes the session that messages to a peer go to from now on. A client is
// told that the lease at a member has begun.
func (s *shard) open(sess *session) {
	if sess.dead.Load() {
		return // opDead has come or will come, and must be the last word
	}
	s.sessions[sess.id] = sess
	if !s.restores(sess) {
		return
	}
	sess.mu.Lock()
	incarnation := sess.incarnation
	sess.mu.Unlock()
	s.live[sess.id] = incarnation
	clear(s.fresh)
	for _, r := range s.refusals {
		r.remove(sess.id)
	}
	s.stepAll(protocol.Input{Kind: protocol.Restore, From: sess.id, Arg: incarnation})
}

// restores reports whether processes are told about this session.
func (s *shard) restores(sess *session) bool {
	return s.n.info.Detector == protocol.LeaseDetector && !s.n.isMember(s.n.c.ID) && s.n.isMember(sess.id)
}

// dead tells the processes concerned that a session has ended: those of a client
// about the member, those of a member about the client. Where the algorithm does
// not know such an event, its locks fail closed.
func (s *shard) dead(e *event) {
	sess := e.sess
	switch {
	case e.next != nil:
		s.sessions[sess.id] = e.next
	case s.sessions[sess.id] == sess:
		delete(s.sessions, sess.id)
	}
	concerned := s.business[sess]
	delete(s.business, sess)
	if concerned == nil {
		concerned = &business{}
	}
	suspect := protocol.Input{Kind: protocol.Suspect, From: sess.id}
	switch {
	case s.restores(sess):
		s.live[sess.id] = 0
		clear(s.fresh)
		s.stepAll(suspect)
	case s.n.isMember(s.n.c.ID) && !s.n.isMember(sess.id) && s.n.info.Detector != protocol.NoDetector:
		for i := range concerned.All() {
			i.forget(sess)
			s.step(i, suspect, nil, nil)
		}
	default:
		for i := range concerned.All() {
			s.fail(i, fmt.Sprintf("%s: %s", s.n.name(sess.id), e.text))
		}
	}
}

func (s *shard) stepAll(in protocol.Input) {
	for _, i := range s.instances.All() {
		s.step(i, in, nil, nil)
	}
}

func (s *shard) tryEvent(e *event) {
	u := s.user(e.text)
	u.section = protocol.InTry
	why := s.failed[e.text]
	if i := s.instances.Get(e.text); i != nil && i.kind != u.kind {
		why = otherKind(i, u.kind)
	}
	if why != "" {
		s.leave(e.text)
		s.tell(e.text, func() { u.Rem(why) })
		return
	}
	in := protocol.Input{Kind: protocol.Try, Arg: protocol.TryWait}
	if e.once {
		in.Arg = protocol.TryOnce
	}
	s.stepUser(e.text, in)
}

// stepUser gives an event of the user to the instance of its lock.
func (s *shard) stepUser(name string, in protocol.Input) {
	i := s.instances.Get(name)
	if i != nil || in.Kind == protocol.Try {
		if i == nil {
			i = s.create(s.user(name).kind, name)
		}
		s.step(i, in, nil, nil)
		return
	}
	// The lock failed under a user that had to leave first.
	if u := s.user(name); u != nil {
		s.leave(name)
		s.tell(name, func() { u.Rem(s.failed[name]) })
	}
}

// create makes an instance: Start, and what it must know of the members and of this
// one.
func (s *shard) create(kind Kind, name string) *instance {
	i := &instance{kind: kind, name: name, process: s.n.c.Hosts[kind].New(s.n.c.ID, s.system(kind))}
	s.add(i)
	s.begin(kind, func(in protocol.Input) error {
		if !i.removed {
			s.stepKeep(i, in, nil, nil)
		}
		return nil
	})
	return i
}

// add makes i the instance of its name.
func (s *shard) add(i *instance) {
	s.instances.Set(i.name, i)
	s.n.instances.Add(1)
}

// begin feeds the first events of an instance.
func (s *shard) begin(kind Kind, feed func(protocol.Input) error) error {
	err := feed(protocol.Input{Kind: protocol.Start, Arg: s.n.incarnation})
	for id, incarnation := range s.live {
		if incarnation != 0 && err == nil {
			err = feed(protocol.Input{Kind: protocol.Restore, From: protocol.ID(id), Arg: incarnation})
		}
	}
	if s.draining && s.drains(kind) && err == nil {
		err = feed(protocol.Input{Kind: protocol.Drain})
	}
	return err
}

// step gives an event to an instance, and drops the instance when that leaves it
// idle.
func (s *shard) step(i *instance, in protocol.Input, msg []byte, from *session) {
	s.stepKeep(i, in, msg, from)
	s.pardon(i)
	s.dropIfIdle(i)
}

func (s *shard) stepKeep(i *instance, in protocol.Input, msg []byte, from *session) {
	in.Now = s.n.clock.now()
	s.current = i
	err := i.process.Step(in, msg, s)
	s.current = nil
	switch {
	case err == nil:
		s.noteWaiting(i, i.process.Waiting())
		s.tellSupports(i, in.Kind)
	case errors.Is(err, ErrMessage):
		s.n.complain("malformed message", "lock", i.name, "request", i.owner.name(), "peer", s.n.name(from.id), "error", err)
		s.n.end(from, err, fault(err))
	default:
		s.fail(i, err.Error())
	}
}

// fail closes a lock: its process has lost or broken its state, and a new one in
// its place could grant what the old one had given away. The name stays refused
// for the rest of this node's life.
func (s *shard) fail(i *instance, why string) {
	if i.removed {
		return
	}
	s.n.c.Log.Error("lock failed and stays closed", "lock", i.name, "request", i.owner.name(), "reason", why)
	s.remove(i)
	// A member may support this client's process, which will never leave: new sessions
	// say that nothing of the old ones goes on.
	for _, p := range s.sessions {
		if s.restores(p) {
			s.n.end(p, errFailed, nil)
		}
	}
	if line := bytes.IndexByte([]byte(why), '\n'); line >= 0 {
		why = why[:line] // the stack is for the log
	}
	s.mu.Lock()
	s.failed[i.name] = why
	u := s.users.Get(i.name)
	s.mu.Unlock()
	if u == nil {
		return
	}
	switch u.section {
	case protocol.InTry:
		s.leave(i.name)
		s.tell(i.name, func() { u.Rem(why) })
	case protocol.InCrit:
		u.section = protocol.InLost // Exit and Rem follow
		s.tell(i.name, u.Ejected)
	}
}

// tell calls a user back. One that panics does not take the node with it; false
// says that it may not know where it is.
func (s *shard) tell(name string, callback func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.n.c.Log.Error("a user panicked", "lock", name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	callback()
	return true
}

// remove forgets an instance.
func (s *shard) remove(i *instance) {
	s.instances.Delete(i.name)
	delete(s.refusals, i)
	s.n.instances.Add(-1)
	s.owned(i, 0, 0)
	s.noteWaiting(i, 0)
	i.removed = true
	for t := i.timers; t != nil; t = t.next {
		s.timers.remove(t)
	}
	i.timers = nil
	for _, p := range i.peers {
		if locks := s.business[p]; locks != nil {
			locks.Delete(i)
		}
	}
	i.peers = nil
}

// dropIfIdle forgets an instance that nothing distinguishes from a new one.
func (s *shard) dropIfIdle(i *instance) {
	if i.timers != nil || i.removed || s.user(i.name) != nil {
		return
	}
	fresh := s.fresh[i.kind]
	if fresh == nil {
		if fresh = s.makeFresh(i.kind); fresh == nil {
			return
		}
	}
	var err error
	if s.state, err = i.process.AppendState(s.state[:0]); err != nil {
		s.fail(i, err.Error())
	} else if bytes.Equal(s.state, fresh) {
		s.remove(i)
	}
}

// makeFresh computes the state of an instance made now; nil if there is none.
func (s *shard) makeFresh(kind Kind) []byte {
	_, fresh := s.trial(kind)
	if fresh != nil {
		s.fresh[kind] = fresh
	}
	return fresh
}

// trial makes a process as create does, for no lock, and its state; nil if that fails.
func (s *shard) trial(kind Kind) (p Instance, fresh []byte) {
	p = s.n.c.Hosts[kind].New(s.n.c.ID, s.system(kind))
	err := s.begin(kind, func(in protocol.Input) error {
		in.Now = s.n.clock.now()
		return p.Step(in, nil, nowhere{})
	})
	fresh, stateErr := p.AppendState([]byte{})
	if err != nil || stateErr != nil {
		return nil, nil
	}
	return p, fresh
}

type nowhere struct{}

func (nowhere) Effect(protocol.Act, int, []byte) {}
func (nowhere) Received(int)                     {}

// note records that a peer has business with an instance, where the end of its
// session concerns only those. It reports false for a client that has too much already.
func (s *shard) note(i *instance, p *session) bool {
	if s.restores(p) {
		return true
	}
	locks := s.business[p]
	if locks != nil && locks.Has(i) {
		return true
	}
	if locks != nil && !s.n.isMember(p.id) && s.tooMany(p, locks) {
		return false
	}
	s.connect(i, p)
	return true
}

func (s *shard) connect(i *instance, p *session) {
	if s.business[p] == nil {
		s.business[p] = &business{}
	}
	s.business[p].Set(i, struct{}{})
	i.peers = append(i.peers, p)
}

// tooMany reports whether a client has business with too many instances. Those that
// do not know it any more do not count; enough of them are forgotten at once to pay
// for the search.
func (s *shard) tooMany(p *session, locks *business) bool {
	most := s.n.c.MaxLocks/len(s.n.shards) + 1
	if locks.Len() < most {
		return false
	}
	now := time.Since(s.n.started)
	if now < locks.full {
		return true
	}
	for i := range locks.All() {
		if st, err := i.process.Standing(); err == nil && !names(st.Holders, p.id) && !names(st.Waiters, p.id) {
			locks.Delete(i)
			i.forget(p)
		}
	}
	if locks.Len() < most-most/4 {
		return false
	}
	locks.full = now + time.Second // the next search is then
	return true
}

func names(all []protocol.Request, id protocol.ID) bool {
	return slices.ContainsFunc(all, func(r protocol.Request) bool { return r.User == id })
}

func (i *instance) forget(p *session) {
	if k := slices.Index(i.peers, p); k >= 0 {
		i.peers = slices.Delete(i.peers, k, k+1)
	}
}

// Received implements Sink.
func (s *shard) Received(kind int) { s.tally.received[s.n.firstMessage[s.current.kind]+kind]++ }

// Effect implements Sink for the current instance.
func (s *shard) Effect(a protocol.Act, kind int, msg []byte) {
	i := s.current
	if i.removed {
		return // an earlier effect of this step made the lock fail
	}
	switch a.Do {
	case protocol.Send:
		s.send(i, a.To, kind, msg)
	case protocol.Broadcast:
		for id := range s.n.c.System.N {
			if id := protocol.ID(id); id != s.n.c.ID {
				s.send(i, id, kind, msg)
			}
		}
	case protocol.Crit:
		if u := s.user(i.name); u != nil {
			u.section, i.inside = protocol.InCrit, true
			e := Entry{Token: a.Arg}
			e.Sessions, e.Request = s.supports(i)
			u.supports = e.Sessions
			s.tellOrFail(i, func() { u.Crit(e) })
		}
	case protocol.Ejected:
		i.inside = false
		if u := s.user(i.name); u != nil {
			u.section = protocol.InLost
			s.tellOrFail(i, u.Ejected)
		}
	case protocol.Rem:
		i.inside = false
		if u := s.user(i.name); u != nil {
			s.leave(i.name)
			if r := s.refusals[i]; r != nil {
				r.over = true
			}
			s.tell(i.name, func() { u.Rem(cmp.Or(u.refusal, a.Reason)) }) // it has left, whatever it does
		}
	case protocol.SetTimer:
		after := time.Duration(a.After)
		if a.Arg > 0 {
			after += time.Duration(s.random.Uint64N(a.Arg + 1))
		}
		s.setTimer(i, a.Timer, after)
	case protocol.StopTimer:
		if t := i.timer(a.Timer); t != nil {
			s.stopTimer(t)
		}
	case protocol.Owner:
		s.owned(i, a.To, a.Arg)
	default:
		panic(fmt.Sprintf("node: unknown effect %d", a.Do))
	}
}

// supports are the numbers of the sessions with the members that the critical
// section of an instance counts on, and the time of the request that got it. One
// whose state cannot be read counts on none. Most locks count on one of a few sets:
// equal ones are one map, which nobody may change.
func (s *shard) supports(i *instance) (numbers map[protocol.ID]uint64, request uint64) {
	const most = 16
	standing, err := i.process.Standing()
	if err != nil {
		s.n.c.Log.Error("no standing", "lock", i.name, "error", err)
	}
	s.state = s.state[:0]
	for _, id := range standing.Supports {
		if sess := s.sessions[id]; sess != nil {
			sess.mu.Lock()
			s.state = binary.AppendUvarint(binary.AppendUvarint(s.state, uint64(id)), sess.number)
			sess.mu.Unlock()
		}
	}
	if numbers = s.counted[string(s.state)]; numbers == nil {
		if len(s.counted) >= most {
			clear(s.counted)
		}
		numbers = make(map[protocol.ID]uint64, len(standing.Supports))
		for r := (protocol.Reader{Rest: s.state}); len(r.Rest) > 0; {
			id := protocol.ID(r.Uint())
			numbers[id] = r.Uint()
		}
		s.counted[string(s.state)] = numbers
	}
	return numbers, uint64(standing.Since)
}

// tellSupports tells a user that is inside what it counts on now, if an event
// about a member has changed that.
func (s *shard) tellSupports(i *instance, about protocol.Kind) {
	switch about {
	case protocol.Receive, protocol.Suspect, protocol.Restore:
	default:
		return
	}
	if !i.inside || i.removed {
		return
	}
	u := s.user(i.name)
	now, _ := s.supports(i)
	if u != nil && !maps.Equal(u.supports, now) {
		u.supports = now
		s.tellOrFail(i, func() { u.Supported(now) })
	}
}

// tellOrFail closes the lock of a user that panics while it has something to do
// with it: nobody else would Exit.
func (s *shard) tellOrFail(i *instance, callback func()) {
	if !s.tell(i.name, callback) {
		s.fail(i, "its user panicked")
	}
}

// send appends a message to the session with a peer. Without one it is lost: the
// process has been told, or nobody will ever need it.
func (s *shard) send(i *instance, to protocol.ID, kind int, msg []byte) {
	p := s.sessions[to]
	if p == nil {
		return
	}
	if len(msg) > transport.MaxMessage {
		s.fail(i, fmt.Sprintf("a message of %d bytes exceeds %d", len(msg), transport.MaxMessage))
		return
	}
	s.note(i, p)
	s.tally.sent[s.n.firstMessage[i.kind]+kind]++
	s.push(p, transport.MessageItem, i.kind, i.name, msg)
}

// push appends an item to the window of a session, which is dropped when it is full.
func (s *shard) push(p *session, t transport.Type, kind Kind, name string, body []byte) {
	if err := p.send(t, kind, name, body); err != nil {
		s.n.drop(p, err, nil)
		return
	}
	if p.kicked.CompareAndSwap(false, true) {
		s.dirty = append(s.dirty, p)
	}
}

func (s *shard) user(name string) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users.Get(name)
}

// leave forgets the user of a lock, before it is told Rem: it may Try again at
// once.
func (s *shard) leave(name string) {
	s.mu.Lock()
	s.users.Delete(name)
	s.mu.Unlock()
}

func (i *instance) timer(id uint32) *timer {
	t := i.timers
	for t != nil && t.id != id {
		t = t.next
	}
	return t
}

func (s *shard) setTimer(i *instance, id uint32, after time.Duration) {
	t := i.timer(id)
	if t == nil {
		t = &timer{inst: i, id: id, next: i.timers}
		i.timers = t
	} else {
		s.timers.remove(t)
	}
	t.at = time.Since(s.n.started) + after
	s.timers.add(t)
}

func (s *shard) stopTimer(t *timer) {
	s.timers.remove(t)
	place := &t.inst.timers
	for *place != t {
		place = &(*place).next
	}
	*place = t.next
}

// runTimers fires what is due, and returns how long to wait for the next one.
func (s *shard) runTimers() time.Duration {
	const most = time.Hour
	if len(s.timers) == 0 {
		return most
	}
	now := time.Since(s.n.started)
	for len(s.timers) > 0 && s.timers[0].at <= now {
		t := s.timers[0]
		s.stopTimer(t)
		s.step(t.inst, protocol.Input{Kind: protocol.Timeout, Timer: t.id}, nil, nil)
	}
	if len(s.timers) == 0 {
		return most
	}
	return min(most, s.timers[0].at-now)
}

// close tells the users that it is over. rest is what will not be handled.
func (s *shard) close(rest []event) {
	s.copyTally()
	s.mu.Lock()
	s.closed = true
	users := s.users
	s.users = compact.Map[string, *user]{}
	for _, e := range append(rest, s.queue...) {
		switch {
		case e.locks != nil:
			e.locks <- nil
		case e.park != nil:
			e.park()
		}
	}
	s.urgent, s.queue = nil, nil
	s.space.Broadcast()
	s.mu.Unlock()
	for name, u := range users.All() {
		if u.section == protocol.InCrit {
			s.tell(name, u.Ejected)
		} else {
			s.tell(name, func() { u.Rem(ErrClosed.Error()) })
		}
	}
	for _, p := range s.dirty {
		p.kick()
	}
}
