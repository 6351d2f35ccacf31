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
			switch e := &queue[i]; e.op {
			case opClose:
				s.close(append(asked, queue[i+1:]...))
				return
			case opAsk: // everything that was received is handled then
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
	case opTry:
		s.tryEvent(e)
	case opCancel:
		if u := s.users.get(e.name); u != nil && u.section == protocol.InTry && s.cancels(u.kind) {
			s.stepUser(e.name, protocol.Input{Kind: protocol.Cancel})
		}
	case opExit:
		if u := s.users.get(e.name); u != nil && u.section >= protocol.InCrit && u.section != protocol.InIssue {
			s.stepUser(e.name, protocol.Input{Kind: protocol.Exit})
		}
	case opIssue:
		s.issue(e)
	default:
		e.do(s)
	}
}

// tell has all shards do something, after what waits for them.
func (n *Node) tell(do func(*shard)) {
	for _, s := range n.shards {
		s.inbox.post(event{op: opDo, do: do})
	}
}

// hurry has all shards do something before what waits for them.
func (n *Node) hurry(do func(*shard)) {
	for _, s := range n.shards {
		s.inbox.hurry(event{op: opDo, do: do})
	}
}

// each has all shards do something, and waits until those have that are not closed.
func (n *Node) each(do func(*shard)) {
	ask(n.shards, func(s *shard) struct{} {
		do(s)
		return struct{}{}
	})
}

// ask returns the answers of those shards that are not closed. They answer when they have dealt with what was queued before.
func ask[T any](shards []*shard, f func(*shard) T) (all []T) {
	answers := make(chan T, len(shards))
	waiting := 0
	for _, s := range shards {
		if s.inbox.post(event{op: opAsk, do: func(s *shard) {
			var answer T
			if s != nil {
				answer = f(s)
			}
			answers <- answer
		}}) {
			waiting++
		}
	}
	for range waiting {
		all = append(all, <-answers)
	}
	return all
}

// open notes the session that messages to a peer go to from now on. Where a lease begins with it, or a member is
// suspected no more, the processes are told.
func (s *shard) open(sess *session, told bool) {
	if sess.dead.Load() {
		return // dead has been called or will be, and must be the last word
	}
	s.sessions[sess.id] = sess
	if !told {
		return
	}
	sess.mu.Lock()
	life := s.n.roles.life(sess.incarnation)
	sess.mu.Unlock()
	s.make.trusts(sess.id, life)
	s.names.restored(sess.id)
	s.stepAll(protocol.NewRestore(sess.id, life))
}

// suspect tells all processes that a member is suspected, or that its lease is over.
func (s *shard) suspect(id protocol.ID) {
	s.make.loses(id)
	s.stepAll(protocol.NewSuspect(id))
}

// dead tells the processes concerned that a session has ended: those of a client
// about the member, those of a member about the client. Where the algorithm does
// not know such an event, its locks fail closed. next takes over where there is always a session.
func (s *shard) dead(sess, next *session, why string) {
	switch {
	case next != nil:
		s.sessions[sess.id] = next
	case s.sessions[sess.id] == sess:
		delete(s.sessions, sess.id)
	}
	concerned := s.limits.end(sess)
	switch {
	case s.n.roles.watched() && s.n.roles.isMember(sess.id), s.n.roles.restores(sess.id):
		s.suspect(sess.id)
	case s.n.roles.member() && !s.n.roles.isMember(sess.id) && s.n.roles.info.Detector != protocol.NoDetector:
		for i := range concerned.All() {
			i.forget(sess)
			s.step(i, protocol.NewSuspect(sess.id), nil, nil)
			s.labels.set(i, sess.id, nil)
		}
	default:
		for i := range concerned.All() {
			s.fail(i, fmt.Sprintf("%s: %s", s.n.roles.name(sess.id), why))
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
