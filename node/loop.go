package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
)

// keepQueue is for how many events the memory of a queue is kept: a burst must not be paid for ever.
const keepQueue = 1 << 10

// A loop is an event loop with the instances whose names hash to it. Whoever has steps may touch it: its goroutine, or a
// reader while that has nothing to do (hearNow). Its inbox and its users are for everybody.
type loop struct {
	n         *Node
	steps     baton
	instances shrinkmap.Map[string, *instance]
	sessions  map[protocol.ID]*session // by peer, as far as this loop has heard
	make      factory                  // and idling: who is like a new one is dropped
	lull      lull                     // as an instance begins
	trial     trial
	alone     bool // nobody else kept the last user waiting whose trial ended
	gate      gate
	journal   *journal // nil: the member is not durable
	names     names
	limits    limits
	labels    labels // at members: of the users of clients
	audit     audit
	counts    supports
	out       outbox
	timers    timers
	alarm     time.Duration // when its goroutine runs them next
	random    *rand.Rand
	current   *instance // whose effects come
	done      chan struct{}
	inbox     inbox
	users     users
}

func newLoop(n *Node) *loop {
	l := &loop{
		n:        n,
		steps:    newBaton(),
		make:     newFactory(n),
		out:      outbox{n: n},
		counts:   supports{known: map[string]map[protocol.ID]uint64{}},
		sessions: map[protocol.ID]*session{},
		random:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		done:     make(chan struct{}),
		inbox:    newInbox(),
		users:    users{failed: map[string]string{}, left: n.demand.done},
	}
	l.labels.most = maxLabels / runtime.GOMAXPROCS(0)
	l.names = names{loop: l, by: map[*instance]*refusals{}}
	l.limits = limits{n: n, place: len(n.loops), labels: &l.labels}
	l.audit = newAudit(n, &l.labels)
	l.gate = gate{l: l, shut: n.Gathering()}
	l.journal = newJournal(l)
	l.copyTally()
	return l
}

// run is the goroutine of the loop.
func (l *loop) run() {
	defer close(l.done)
	var urgent, queue, asked []event
	var messages []message
	due := never // the alarm
	alarm := time.AfterFunc(never, l.inbox.signal)
	defer alarm.Stop()
	l.steps.take()
	if !l.gate.shut && !l.journal.began() {
		l.journal.noteBegin()
		l.beginReplicas()
	}
	l.beginElection()
	var dirty []*session
	yield := false // the last pass has not signaled anybody yet
	for {
		urgent, queue, messages = l.inbox.take(urgent, queue, messages, l.gate.shut)
		idle := len(urgent)+len(queue)+len(messages) == 0
		now := l.now()
		if t := l.timers.first(); l.n.roles.holds() && (!idle || t != nil && t.at <= now) {
			l.n.sessions.lapse()
			urgent = l.inbox.takeUrgent(urgent) // that of it
		}
		for i := range urgent {
			l.handle(&urgent[i])
		}
		for i := range queue {
			switch e := &queue[i]; e.op {
			case opClose:
				l.journal.end()
				l.close(append(asked, queue[i+1:]...))
				l.unlockAndFlush(&dirty)
				return
			case opAsk: // everything that was received is handled then
				asked = append(asked, *e)
			default:
				l.handle(e)
			}
		}
		messages = l.hear(messages) // of sessions that were announced in the queue
		l.runTimers(now)
		l.journal.commit()
		for i := range asked {
			l.handle(&asked[i])
		}
		clear(asked)
		asked = asked[:0]
		clear(urgent)
		clear(queue)
		if cap(queue) > keepQueue {
			queue = nil
		}
		if yield = !yield && !idle && len(l.out.dirty) > 0 && !l.n.roles.member(); yield {
			// What users do at once, such as the next Try after an Exit, goes into the same
			// frames. At a member it would only come between a request and its answer.
			l.steps.give()
			runtime.Gosched()
			l.steps.take()
			continue
		}
		next := l.timers.next()
		l.alarm = next
		l.unlockAndFlush(&dirty)
		switch {
		case next == due && due > now: // it is set
		case next == never:
			alarm.Stop()
		default: // also where it is later: an alarm that is early would wake the loop for nothing
			alarm.Reset(next - l.now())
		}
		due = next
		<-l.inbox.wake
		l.steps.take()
	}
}

func (l *loop) handle(e *event) {
	switch e.op {
	case opTry:
		if !l.gate.holds(e) {
			l.beginTry(e)
		}
	case opCancel:
		if l.gate.lets(e.name) || l.takesBack(e.name) {
			return
		}
		if u := l.users.get(e.name); u != nil && u.section == protocol.InTry && l.cancels(u.kind) {
			l.journal.noteUser(e.name, protocol.Cancel, nil)
			l.stepUser(e.name, protocol.Input{Kind: protocol.Cancel})
		}
	case opDowngrade:
		if u := l.users.get(e.name); u != nil && u.section == protocol.InCrit && l.n.c.Hosts[u.kind].Info().Shares {
			l.stepUser(e.name, protocol.NewDowngrade(protocol.Group(e.msg)))
		}
	case opExit:
		if u := l.users.get(e.name); u != nil && u.section >= protocol.InCrit && u.section != protocol.InIssue {
			l.journal.noteUser(e.name, protocol.Exit, nil)
			l.stepUser(e.name, protocol.Input{Kind: protocol.Exit})
		}
	case opIssue:
		l.issue(e)
	default:
		e.do(l)
	}
}

// post has all loops do something, after what waits for them.
func (n *Node) post(do func(*loop)) {
	for _, l := range n.loops {
		l.inbox.post(event{op: opDo, do: do})
	}
}

// postUrgent has all loops do something before what waits for them.
func (n *Node) postUrgent(do func(*loop)) {
	for _, l := range n.loops {
		l.inbox.postUrgent(event{op: opDo, do: do})
	}
}

// each has all loops do something, and waits until those have that are not closed.
func (n *Node) each(do func(*loop)) {
	ask(n.loops, func(l *loop) struct{} {
		do(l)
		return struct{}{}
	})
}

// ask returns the answers of those loops that are not closed. They answer when they have dealt with what was queued before.
func ask[T any](loops []*loop, f func(*loop) T) (all []T) {
	answers := make(chan T, len(loops))
	waiting := 0
	for _, l := range loops {
		if l.inbox.post(event{op: opAsk, do: func(l *loop) {
			var answer T
			if l != nil {
				answer = f(l)
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
func (l *loop) open(sess *session, told bool) {
	if sess.dead.Load() {
		return // dead has been called or will be, and must be the last word
	}
	l.journal.noteOpen(sess, told)
	l.sessions[sess.id] = sess
	if !told {
		return
	}
	life := l.n.roles.life(sess.life())
	l.ended(sess.id)
	l.make.trusts(sess.id, life)
	l.names.restored(sess.id)
	l.stepAll(protocol.NewRestore(sess.id, life))
	if l.n.roles.mutual() {
		for name := range l.instances.All() {
			l.wake(name, sess.id)
		}
	}
}

// suspected: the detector suspects a member.
func (l *loop) suspected(id protocol.ID) {
	l.journal.noteSuspected(id)
	l.suspect(id)
}

// suspect tells all processes that a member is suspected, or that its lease is over.
func (l *loop) suspect(id protocol.ID) {
	if !l.make.loses(id) {
		return
	}
	l.stepAll(protocol.NewSuspect(id))
}

// dead tells the processes concerned that a session has ended: those of a client
// about the member, those of a member about the client. Where the algorithm does
// not know such an event, its locks fail closed. next takes over where there is always a session.
func (l *loop) dead(sess, next *session, why string) {
	l.journal.noteDead(sess, next)
	switch {
	case next != nil:
		l.sessions[sess.id] = next
	case l.sessions[sess.id] == sess:
		delete(l.sessions, sess.id)
	}
	concerned := l.limits.end(sess)
	switch {
	case l.n.roles.watched() && l.n.roles.isMember(sess.id), l.n.roles.restores(sess.id):
		l.suspect(sess.id)
	case l.n.roles.member() && !l.n.roles.isMember(sess.id) && l.n.roles.info.Detector != protocol.NoDetector:
		for i := range concerned.all() {
			i.forget(sess)
			l.step(i, protocol.NewSuspect(sess.id), nil, nil)
			l.labels.set(i, sess.id, nil)
		}
	default:
		for i := range concerned.all() {
			l.fail(i, fmt.Sprintf("%s: %s", l.n.roles.name(sess.id), why))
		}
	}
}

// close tells the users that it is over. rest is what will not be handled.
func (l *loop) close(rest []event) {
	l.copyTally()
	users := l.users.close()
	l.inbox.close(rest)
	for name, u := range users.All() {
		if u.section == protocol.InCrit && u.kind != Replica {
			l.tell(name, u.Ejected)
		} else {
			l.tell(name, func() { u.Rem(ErrClosed) })
		}
	}
}
