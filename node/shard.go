package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
)

// The memory of a queue of more than keepQueue events is not kept for longer than keepFor after it was
// needed, that of more than dropQueue not at all: a burst must not be paid for ever.
const (
	keepQueue = 1 << 10
	dropQueue = 1 << 15
	keepFor   = time.Second
)

// A shard owns the instances whose names hash to it. Only its goroutine touches it, except its inbox
// and its users.
type shard struct {
	n         *Node
	instances shrinkmap.Map[string, *instance]
	sessions  map[protocol.ID]*session // by peer, as far as this shard has heard
	live      []uint64                 // incarnations of members, where processes are told: 0: not trusted, or not heard of yet
	suspects  []bool                   // by member
	business  map[*session]*business
	timers    timers
	measured  map[Kind]measured // see system
	random    *rand.Rand
	current   *instance  // whose effects come
	dirty     []*session // to be kicked
	draining  bool
	counted   map[string]map[protocol.ID]uint64 // see supports
	refusals  map[*instance]*refusals           // at clients: those that members refuse
	labels    labels                            // at members: of the users of clients
	labelling bool                              // at clients: there has been a user with a label
	fresh     map[Kind][]byte                   // the states of instances just made, as far as they are known
	state     []byte                            // scratch
	tally     tally
	held      histogram.Histogram   // how long supports lasted
	latest    atomic.Pointer[tally] // a copy for others
	done      chan struct{}
	inbox     inbox
	users     users
}

func newShard(n *Node) *shard {
	s := &shard{
		n:        n,
		sessions: map[protocol.ID]*session{},
		business: map[*session]*business{},
		live:     make([]uint64, n.c.System.N),
		suspects: make([]bool, n.c.System.N),
		measured: map[Kind]measured{},
		counted:  map[string]map[protocol.ID]uint64{},
		refusals: map[*instance]*refusals{},
		random:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		done:     make(chan struct{}),
		fresh:    map[Kind][]byte{},
		inbox:    newInbox(),
		users:    users{failed: map[string]string{}},
	}
	s.tally.sent, s.tally.received = make([]uint64, len(n.messages)), make([]uint64, len(n.messages))
	s.copyTally()
	return s
}

// run is the goroutine of the shard.
func (s *shard) run() {
	defer close(s.done)
	var urgent, queue, asked []event
	var messages []message
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	s.beginReplicas()
	var needed time.Time // when the queue was long
	yield := false       // the last pass has not kicked anybody yet
	for {
		s.n.lapse()
		urgent, queue, messages = s.inbox.take(urgent, queue, messages)
		idle := len(urgent)+len(queue)+len(messages) == 0
		for i := range urgent {
			s.handle(&urgent[i])
		}
		for i := range queue {
			switch e := &queue[i]; {
			case e.op == opClose:
				s.close(append(asked, queue[i+1:]...))
				return
			case e.op == opPark: // everything that was received is handled then
				messages = s.hear(messages)
				s.handle(e)
			case e.locks != nil: // so for whoever asks
				asked = append(asked, *e)
			default:
				s.handle(e)
			}
		}
		messages = s.hear(messages) // of sessions that were announced in the queue
		for i := range asked {
			s.handle(&asked[i])
		}
		clear(asked)
		asked = asked[:0]
		clear(urgent)
		clear(queue)
		wait := s.runTimers()
		if len(queue) > keepQueue {
			needed = time.Now()
		}
		if cap(queue) > keepQueue {
			wait = min(wait, keepFor)
			if cap(queue) > dropQueue || idle && time.Since(needed) > keepFor {
				queue = nil
			}
		}
		if yield = !yield && !idle && len(s.dirty) > 0 && !s.n.roles.member(); yield {
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
		case <-s.inbox.wake:
		case <-alarm.C:
		}
	}
}

func (s *shard) handle(e *event) {
	switch e.op {
	case opOpen:
		s.open(e.sess)
	case opDead:
		s.dead(e)
	case opTry:
		s.tryEvent(e)
	case opCancel:
		if u := s.users.get(e.text); u != nil && u.section == protocol.InTry && s.cancels(u.kind) {
			s.stepUser(e.text, protocol.Input{Kind: protocol.Cancel})
		}
	case opExit:
		if u := s.users.get(e.text); u != nil && u.section >= protocol.InCrit && u.section != protocol.InIssue {
			s.stepUser(e.text, protocol.Input{Kind: protocol.Exit})
		}
	case opIssue:
		s.issue(e)
	case opTooLarge:
		s.announced(e)
	case opSuspect:
		s.suspectMember(e.peer)
	case opTrust:
		s.trustMember(e.sess)
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

// hear handles messages that were taken from the line, and forgets them.
func (s *shard) hear(batch []message) []message {
	for i := range batch {
		if m := &batch[i]; m.refusal {
			s.refused(m)
		} else {
			s.message(m)
		}
	}
	clear(batch)
	return batch[:0]
}

// message delivers a message of a session that is not dead.
func (s *shard) message(e *message) {
	if e.sess.dead.Load() {
		return
	}
	i := s.instances.View()[string(e.name)]
	if i == nil && len(s.users.failed) > 0 && s.users.failed[string(e.name)] != "" {
		return
	}
	if i == nil || i.kind != e.kind {
		if why := s.unserved(i, e); why != "" {
			s.refuseName(e, why)
			return
		}
		i = s.create(e.kind, string(e.name))
	}
	if why := s.note(i, e.sess); why != "" {
		s.refuseName(e, why)
		s.dropIfIdle(i)
		return
	}
	if s.served(i, e.sess.id); i.removed {
		return
	}
	label, body := e.parts()
	s.labels.set(i, e.sess.id, label, s.n.mostLabels())
	s.step(i, protocol.NewReceive(e.sess.id), body, e.sess)
	if s.n.roles.watched() && s.suspects[e.sess.id] && !i.removed {
		s.step(i, protocol.NewSuspect(e.sess.id), nil, nil)
	}
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
	s.stepAll(protocol.NewRestore(sess.id, incarnation))
}

// restores reports whether processes are told about this session.
func (s *shard) restores(sess *session) bool {
	return s.n.roles.info.Detector == protocol.LeaseDetector && !s.n.roles.member() && s.n.roles.isMember(sess.id)
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
	s.n.origins.pair(sess, -concerned.Len())
	suspect := protocol.NewSuspect(sess.id)
	switch {
	case s.n.roles.watched() && s.n.roles.isMember(sess.id):
		s.suspectMember(sess.id)
	case s.restores(sess):
		s.live[sess.id] = 0
		clear(s.fresh)
		s.stepAll(suspect)
	case s.n.roles.member() && !s.n.roles.isMember(sess.id) && s.n.roles.info.Detector != protocol.NoDetector:
		for i := range concerned.All() {
			i.forget(sess)
			s.step(i, suspect, nil, nil)
			s.labels.set(i, sess.id, nil, 0)
		}
	default:
		for i := range concerned.All() {
			s.fail(i, fmt.Sprintf("%s: %s", s.n.roles.name(sess.id), e.text))
		}
	}
}

// close tells the users that it is over. rest is what will not be handled.
func (s *shard) close(rest []event) {
	s.copyTally()
	users := s.users.close()
	s.inbox.close(rest)
	for name, u := range users.All() {
		if u.section == protocol.InCrit && u.kind != Replica {
			s.tell(name, u.Ejected)
		} else {
			s.tell(name, func() { u.Rem(ErrClosed) })
		}
	}
	for _, p := range s.dirty {
		p.kick()
	}
}
