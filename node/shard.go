package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

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
	make      factory                  // and idling: who is like a new one is dropped
	names     names
	limits    limits
	labels    labels // at members: of the users of clients
	audit     audit
	counts    supports
	out       outbox
	timers    timers
	random    *rand.Rand
	current   *instance // whose effects come
	done      chan struct{}
	inbox     inbox
	users     users
}

func newShard(n *Node) *shard {
	s := &shard{
		n:        n,
		make:     newFactory(n),
		out:      outbox{n: n},
		counts:   supports{known: map[string]map[protocol.ID]uint64{}},
		sessions: map[protocol.ID]*session{},
		random:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		done:     make(chan struct{}),
		inbox:    newInbox(),
		users:    users{failed: map[string]string{}},
	}
	s.labels.most = maxLabels / runtime.GOMAXPROCS(0)
	s.names = names{s: s, by: map[*instance]*refusals{}}
	s.limits = limits{n: n, of: map[*session]*business{}, labels: &s.labels}
	s.audit = newAudit(n, &s.labels)
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
		if !s.n.roles.member() {
			s.n.sessions.lapse()
		}
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
		if yield = !yield && !idle && len(s.out.dirty) > 0 && !s.n.roles.member(); yield {
			// What users do at once, such as the next Try after an Exit, goes into the same
			// frames. At a member it would only come between a request and its answer.
			runtime.Gosched()
			continue
		}
		s.out.flush()
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
		e.locks <- s.listed(e.page)
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

// open notes the session that messages to a peer go to from now on. A client is
// told that the lease at a member has begun.
func (s *shard) open(sess *session) {
	if sess.dead.Load() {
		return // opDead has come or will come, and must be the last word
	}
	s.sessions[sess.id] = sess
	if !s.n.roles.restores(sess.id) {
		return
	}
	sess.mu.Lock()
	incarnation := sess.incarnation
	sess.mu.Unlock()
	s.make.trusts(sess.id, incarnation)
	s.names.restored(sess.id)
	s.stepAll(protocol.NewRestore(sess.id, incarnation))
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
	concerned := s.limits.end(sess)
	suspect := protocol.NewSuspect(sess.id)
	switch {
	case s.n.roles.watched() && s.n.roles.isMember(sess.id):
		s.suspectMember(sess.id)
	case s.n.roles.restores(sess.id):
		s.make.loses(sess.id, false)
		s.stepAll(suspect)
	case s.n.roles.member() && !s.n.roles.isMember(sess.id) && s.n.roles.info.Detector != protocol.NoDetector:
		for i := range concerned.All() {
			i.forget(sess)
			s.step(i, suspect, nil, nil)
			s.labels.set(i, sess.id, nil)
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
	s.out.flush()
}
