package node

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// # Durable members
//
// A process is a function of what happens to it, and so is a loop with its processes, objects and sessions: of the messages that it
// takes from sessions, of their beginnings and ends, of suspicions, and of what users ask for. A durable member writes all that
// into its journal, one record for each pass of its loop; and only when the record is on disk does anything leave that the pass has led
// to: a message, an acknowledgement of one, a word to a user. After a crash it does again what is written. Then everything here
// is as it was, with what the peers have not acknowledged, and its sessions go on where the peers say that they are. So to
// all others a crash looks like a connection that was broken for a while: the member is in the same life, has forgotten nothing that
// anybody may count on, and hears again what it has not written down. That holds of any number of members at once.
//
// Only users are gone. Each one that was there has an orphan in its place, which leaves as soon as it can.
//
// What is done again has to be what was done. So a record has a checksum of what was sent, and of the results of operations: a program that does something else,
// because it is another version, is refused before it says anything. A checkpoint, which takes the place of all that was written
// before, has states only, so that another version may go on from there; Close writes one.

// A Journal is what a durable member writes to. Its methods are called one at a time.
type Journal interface {
	// Records are those that were written last: what Replace was given, and what Append was given since. They are read once, at first.
	Records() iter.Seq2[[]byte, error]
	// Where is the place of the record that was read last, for people.
	Where() string
	// Append returns once a record will be there after a crash.
	Append(record []byte) error
	// Replace puts records in the place of all. A crash, or an error, leaves the old ones or the new ones.
	Replace(records iter.Seq2[[]byte, error]) error
}

// journalFormat is to be raised with every change of this form, and with every change of the canonical state of a process that
// is durable.
const journalFormat = 1

// The kinds of records. Those of a checkpoint come in this order.
const (
	recordHead byte = iota + 1
	recordSession
	recordObject
	recordLoop
	recordPass
)

// What a pass consists of.
const (
	entryBegin byte = iota + 1
	entryOpen
	entryDead
	entrySuspected
	entryMessage
	entryUser
)

// Why a journal cannot be gone on with.
var (
	ErrJournal    = errors.New("the journal cannot be used")
	errOldJournal = fmt.Errorf("%w: it lacks what this member has sent already: it is an old copy, or the disk has lost what it said to have "+
		"written: remove it, and start this member without it, to join", ErrJournal)
)

// A journalHead says whose journal it is.
type journalHead struct {
	Format      int
	Member      string
	Members     []string
	Objects     []string
	Algorithm   string
	Incarnation uint64
	Begun       bool // its processes have
}

// check says how a journal differs from that of this member.
func (h journalHead) check(theirs journalHead) error {
	if theirs.Format > h.Format {
		return fmt.Errorf("%w: it has format %d, of a newer version, and this one knows %d: go on with that version", ErrJournal, theirs.Format, h.Format)
	}
	p := differ(
		point{"format", h.Format, theirs.Format},
		point{"member", h.Member, theirs.Member},
		point{"members", h.Members, theirs.Members},
		point{"objects", h.Objects, theirs.Objects},
		point{"algorithm", h.Algorithm, theirs.Algorithm},
	)
	if p != nil {
		return fmt.Errorf("%w: it is not of this member: the %s: %v here, %v there", ErrJournal, p.what, p.mine, p.theirs)
	}
	return nil
}

// A journal is how a loop writes what happens to it. A nil one, of a member that is not durable, does nothing.
type journal struct {
	l       *loop
	out     Journal
	begun   bool
	again   bool  // what is written is being done again
	err     error // nothing is written any more, and nothing leaves
	pass    []byte
	sum     uint32 // of what the pass has led to
	sent    []sending
	told    []telling
	leavers []*user // who are to be told that they have left
	heard   map[*session]*hearing
	doomed  map[*session]error // while it is done again: they were to end
	since   int                // bytes since the last checkpoint
	written int                // by that
}

// What waits until a pass is written.
type (
	sending struct {
		s     *session
		item  transport.Type
		kind  Kind
		name  string
		body  []byte
		state bool
	}
	telling struct {
		name     string
		callback func()
	}
	hearing struct {
		last  uint64 // message
		count int
	}
)

func newJournal(l *loop) *journal {
	if l.n.c.Journal == nil {
		return nil
	}
	j := &journal{l: l, out: l.n.c.Journal, heard: map[*session]*hearing{}, doomed: map[*session]error{}}
	l.out.defers = j.sends
	return j
}

func onlyReplicas(hosts map[Kind]Host) bool { return len(hosts) == 1 && hosts[Replica] != nil }

// notes begins an entry of the pass. It reports whether one is to be written.
func (j *journal) notes(entry byte) bool {
	if j == nil || j.again || j.err != nil {
		return false
	}
	j.pass = append(j.pass, entry)
	return true
}

func (j *journal) uints(list ...uint64) {
	for _, v := range list {
		j.pass = binary.AppendUvarint(j.pass, v)
	}
}

func (j *journal) began() bool { return j != nil && j.begun }

// noteBegin notes that the processes of the objects begin.
func (j *journal) noteBegin() {
	if j.notes(entryBegin) {
		j.begun = true
	}
}

// noteOpen notes that a session takes messages, or takes them again.
func (j *journal) noteOpen(s *session, told bool) {
	if j == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = s.open || told
	if j.notes(entryOpen) {
		j.uints(uint64(s.id), s.number, s.incarnation)
		j.pass = protocol.AppendBool(j.pass, told)
	}
}

// noteDead notes that a session has ended, and which one follows.
func (j *journal) noteDead(s, next *session) {
	if j.notes(entryDead) {
		next.mu.Lock()
		number := next.number
		next.mu.Unlock()
		j.uints(uint64(s.id), number)
	}
}

func (j *journal) noteSuspected(id protocol.ID) {
	if j.notes(entrySuspected) {
		j.uints(uint64(id))
	}
}

// noteMessage notes a message, which is acknowledged with the pass.
func (j *journal) noteMessage(m *message) {
	if !j.notes(entryMessage) {
		return
	}
	j.uints(uint64(m.sess.id), m.seq, uint64(m.kind))
	j.pass = protocol.AppendBool(j.pass, m.refusal)
	j.pass = protocol.AppendText(protocol.AppendText(j.pass, m.name), m.body)
	h := j.heard[m.sess]
	if h == nil {
		h = &hearing{}
		j.heard[m.sess] = h
	}
	h.last = m.seq
	h.count++
}

// noteUser notes what a user asks for.
func (j *journal) noteUser(name string, what protocol.Kind, op []byte) {
	if j.notes(entryUser) {
		j.uints(uint64(what))
		j.pass = protocol.AppendText(protocol.AppendText(j.pass, name), op)
	}
}

// sums adds what the pass leads to. The table is made once, and only where there is a journal.
func (j *journal) sums(parts ...[]byte) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, part := range parts {
		j.sum = crc32.Update(j.sum, castagnoli, part)
	}
}

// sends has an item wait until the pass is written.
func (j *journal) sends(s *session, item transport.Type, kind Kind, name string, body []byte, state bool) bool {
	if j.err == nil {
		j.sent = append(j.sent, sending{s, item, kind, name, slices.Clone(body), state})
		head := binary.AppendUvarint([]byte{byte(item), byte(kind)}, uint64(s.id))
		j.sums(head, []byte(name), body)
	}
	return true
}

// defers has a word to a user wait until the pass is written. It reports whether that is so.
func (j *journal) defers(name string, callback func()) bool {
	if j == nil || j.err != nil {
		return false
	}
	j.told = append(j.told, telling{name, callback})
	j.sums([]byte(name))
	return true
}

// executed has the pass lead to the result of an operation, too.
func (j *journal) executed(result []byte) {
	if j != nil {
		j.sums(result)
	}
}

// commit writes the pass, and then has everything leave that waits for that.
func (j *journal) commit() {
	if j == nil || j.err != nil {
		return
	}
	if len(j.pass) > 0 {
		record := append(binary.BigEndian.AppendUint32([]byte{recordPass}, j.sum), j.pass...)
		if err := j.out.Append(record); err != nil {
			j.fail(err)
			return
		}
		j.since += len(record)
	}
	j.release()
	if j.err == nil && j.since > max(j.l.n.c.JournalCut, j.written) {
		if err := j.checkpoint(); err != nil {
			j.fail(err)
		}
	}
}

// release has everything leave that waits.
func (j *journal) release() {
	j.leave()
	for s, h := range j.heard {
		s.mu.Lock()
		s.settled = h.last
		c := s.conn
		s.mu.Unlock()
		if c != nil {
			c.oweAck(h.count)
		}
	}
	clear(j.heard)
	told := j.told
	j.told, j.leavers = nil, nil // one of them may end this member
	for _, t := range told {
		if !j.l.call("user", t.name, t.callback) && j.l.instances.Has(t.name) && j.l.users.get(t.name) != nil {
			j.l.fail(j.l.instances.Get(t.name), "its user panicked")
		}
	}
}

// left notes that a user has left in this pass.
func (j *journal) left(u *user) {
	if j != nil && j.err == nil {
		j.leavers = append(j.leavers, u)
	}
}

// leave has the messages of a pass leave, and begins the next one.
func (j *journal) leave() {
	for _, s := range j.sent {
		j.l.out.push(s.s, s.item, s.kind, s.name, s.body, s.state)
		j.since += len(s.body)
	}
	clear(j.sent)
	j.sent, j.pass, j.sum = j.sent[:0], j.pass[:0], 0
	if cap(j.pass) > keepQueue<<10 {
		j.pass = nil
	}
}

// fail ends this member: what it does from now on nobody may hear of.
func (j *journal) fail(err error) {
	if j == nil || j.err != nil {
		return
	}
	j.stop(err)
	j.l.breakAll(err.Error())
	go j.l.n.Close()
}

// stop lets nothing be written any more, and nothing leave.
func (j *journal) stop(err error) {
	j.err = err
	for _, u := range j.leavers {
		j.l.call("user", "", func() { u.Rem(err) })
	}
	j.sent, j.told, j.leavers, j.pass = nil, nil, nil, nil
	clear(j.heard)
}

// failed: the process of a lock has failed. What led to it is not written, so that a program without the fault may go on.
func (j *journal) failed(i *instance, why string) (again bool) {
	if j == nil || j.err != nil {
		return false
	}
	j.stop(fmt.Errorf("object %q: %s", i.name, why))
	i.removed = i.removed || j.again
	return j.again
}

// refuses: the message of this step ends its session. While it is done again what became of that may follow.
func (j *journal) refuses(from *session, err error) bool {
	if j != nil && j.again {
		j.doomed[from] = err
	}
	return j != nil && j.again
}

// end writes a checkpoint before the loop closes. What is done then is not written: users are told that it is over.
func (j *journal) end() {
	if j == nil {
		return
	}
	if j.commit(); j.err != nil {
		return
	}
	if err := j.checkpoint(); err != nil { // the records before it are there
		j.l.n.c.Log.Warn("no checkpoint of the journal", "error", err)
	}
	j.stop(ErrClosed)
}

// settle waits until what has happened here until now is in the journal, where there is one. It reports whether it is.
func (n *Node) settle() bool {
	if n.c.Journal == nil {
		return true
	}
	all := ask(n.loops, func(l *loop) bool { return l.journal.err == nil })
	return len(all) == 1 && all[0]
}

// Settle waits until what the copies here have executed until now will be there after a crash. It fails when the node has closed, and does
// nothing without a Journal.
func (n *Node) Settle() error {
	if !n.settle() {
		return ErrClosed
	}
	return nil
}

// First reports whether this is the first life of a member: see Config.Joins.
func (n *Node) First() bool { return !joins(n.incarnation) }

func (j *journal) head() journalHead {
	n := j.l.n
	return journalHead{
		Format: journalFormat, Member: n.roles.name(n.c.ID), Members: n.roles.members, Objects: slices.Sorted(maps.Keys(n.c.Objects)),
		Algorithm: n.agreed(Replica), Incarnation: n.incarnation, Begun: j.begun,
	}
}

// checkpoint puts the present state in the place of all that was written.
func (j *journal) checkpoint() error {
	sessions, ok := j.sessions()
	if !ok { // what follows from its end is to be written first
		return nil
	}
	j.written = 0
	err := j.out.Replace(func(yield func([]byte, error) bool) {
		for b, err := range j.states(sessions) {
			j.written += len(b)
			if !yield(b, err) {
				return
			}
		}
	})
	j.since = 0
	return err
}

// states are the records of a checkpoint.
func (j *journal) states(sessions [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		head, err := json.Marshal(j.head())
		if !yield(append([]byte{recordHead}, head...), err) {
			return
		}
		for _, s := range sessions {
			if !yield(s, nil) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(j.l.instances.View())) {
			if !yield(j.object(j.l.instances.Get(name))) {
				return
			}
		}
		yield(j.loop(), nil)
	}
}

// sessions are the records of sessions, unless one is over of which this loop has not heard: what waited in it is gone.
func (j *journal) sessions() (records [][]byte, ok bool) {
	for id := range j.l.n.roles.members {
		if s := j.l.sessions[protocol.ID(id)]; s != nil {
			b := s.record()
			if b == nil {
				return nil, false
			}
			records = append(records, b)
		}
	}
	return records, true
}

// record is nil where the session is over.
func (s *session) record() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return nil
	}
	b := binary.AppendUvarint([]byte{recordSession}, uint64(s.id))
	b = binary.AppendUvarint(binary.AppendUvarint(b, s.number), s.incarnation)
	b = protocol.AppendBool(protocol.AppendBool(b, s.lossy), s.open)
	w := s.window
	w.Resume(s.settled)
	return protocol.AppendState(b, &w)
}

func (j *journal) object(i *instance) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("object %q: Snapshot panicked: %v", i.name, p)
		}
	}()
	b = protocol.AppendText([]byte{recordObject}, i.name)
	state, err := i.process.AppendState(nil)
	b = protocol.AppendText(b, state)
	if b = protocol.AppendBool(b, i.replica.here); i.replica.here {
		copied, _ := i.replica.copy(math.MaxInt)
		b = append(b, copied...)
	}
	return b, err
}

func (j *journal) loop() []byte {
	b := []byte{recordLoop}
	met := j.l.n.lives.known()
	for id := range j.l.make.live {
		b = binary.AppendUvarint(binary.AppendUvarint(b, met[id]), j.l.make.live[id])
		b = protocol.AppendBool(b, j.l.make.suspects[id])
	}
	users := &j.l.users
	users.mu.Lock()
	defer users.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(users.byName.View())) {
		if u := users.byName.Get(name); u.section != protocol.InRem { // its Try is not handled yet
			b = binary.AppendUvarint(protocol.AppendText(b, name), uint64(u.section))
		}
	}
	return b
}

// load does again what is written, and writes a checkpoint of what that has led to. The node does not run yet.
func (j *journal) load() error {
	j.again = true
	want := recordHead
	for b, err := range j.out.Records() {
		switch {
		case err != nil:
		case len(b) == 0 || b[0] < want || want == recordHead && b[0] != want:
			err = fmt.Errorf("%w: a record out of order", ErrJournal)
		default:
			want = max(b[0], recordSession)
			err = j.read(b[0], &protocol.Reader{Rest: b[1:]})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.out.Where(), err)
		}
	}
	if want != recordHead && want < recordLoop {
		return fmt.Errorf("%s: %w: its checkpoint has no end", j.out.Where(), ErrJournal)
	}
	j.again = false
	j.resume()
	if err := j.checkpoint(); err != nil {
		return err
	}
	for s, why := range j.doomed {
		j.l.n.sessions.end(s, why, nil)
	}
	return nil
}

func (j *journal) read(kind byte, r *protocol.Reader) (err error) {
	switch kind {
	case recordHead:
		return j.readHead(r.Rest)
	case recordSession:
		err = j.readSession(r)
	case recordObject:
		err = j.readObject(r)
	case recordLoop:
		j.readLoop(r)
	case recordPass:
		return j.readPass(r)
	default:
		return fmt.Errorf("%w: a record of kind %d", ErrJournal, kind)
	}
	if err = errors.Join(err, r.Err); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

func (j *journal) readHead(b []byte) error {
	var h journalHead
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if err := j.head().check(h); err != nil {
		return err
	}
	n := j.l.n
	n.incarnation, j.begun = h.Incarnation, h.Begun
	n.lives = newLives(n)
	j.l.gate.shut = n.Gathering()
	if j.begun {
		j.open()
	}
	return nil
}

// open: all members have met this life.
func (j *journal) open() {
	v := j.l.n.lives
	if j.l.gate.shut = false; v.unmet != nil {
		v.unmet = nil
		close(v.all)
	}
}

// session is the present one with a member; of the next number, if there is none.
func (j *journal) session(id, number uint64) (*session, error) {
	n := j.l.n
	if !n.roles.isMember(protocol.ID(id)) || protocol.ID(id) == n.c.ID {
		return nil, fmt.Errorf("%w: a session with %d", ErrJournal, id)
	}
	s := j.l.sessions[protocol.ID(id)]
	if s == nil {
		s = newSession(n, protocol.ID(id), number)
		s.unbound()
	}
	return s, nil
}

func (j *journal) readSession(r *protocol.Reader) error {
	id, number := r.Uint(), r.Uint()
	s, err := j.session(id, number)
	if err != nil {
		return err
	}
	s.incarnation = r.Uint()
	s.established = s.incarnation != 0
	s.lossy, s.open = r.Bool(), r.Bool()
	if r.Err == nil {
		r.Rest, r.Err = protocol.LoadState(r.Rest, &s.window)
	}
	s.settled = s.window.Received()
	j.l.sessions[s.id] = s
	return nil
}

func (j *journal) readObject(r *protocol.Reader) error {
	name, state, here := r.Text(), r.Bytes(math.MaxInt), r.Bool()
	if r.Err != nil || j.l.n.c.Objects[name] == nil || j.l.instances.Has(name) {
		return fmt.Errorf("object %q", name)
	}
	i := &instance{kind: Replica, name: name, process: j.l.make.make(Replica), replica: j.l.n.newReplica(name)}
	if err := i.process.Load(state); err != nil {
		return fmt.Errorf("object %q: the state of its process: %w", name, err)
	}
	if i.replica.here = here; here {
		if err := i.replica.read(string(r.Rest), math.MaxInt); err != nil {
			return fmt.Errorf("object %q: %w", name, err)
		}
		if err := i.replica.install(); err != nil {
			return fmt.Errorf("object %q: %w", name, err)
		}
		i.replica.next = nil
	}
	j.l.add(i)
	return nil
}

func (j *journal) readLoop(r *protocol.Reader) {
	for id := range j.l.make.live {
		j.l.n.lives.met[id], j.l.make.live[id], j.l.make.suspects[id] = r.Uint(), r.Uint(), r.Bool()
	}
	for len(r.Rest) > 0 && r.Err == nil {
		name := r.Text()
		j.l.users.byName.Set(name, &user{User: nobody{}, kind: Replica, section: protocol.Section(r.Max(uint64(protocol.InIssue)))})
	}
}

// readPass does again what a pass consists of.
func (j *journal) readPass(r *protocol.Reader) error {
	var sum uint32
	if b := r.Rest; len(b) >= 4 {
		sum, r.Rest = binary.BigEndian.Uint32(b), b[4:]
	}
	for len(r.Rest) > 0 && r.Err == nil && j.err == nil {
		kind := r.Rest[0]
		r.Rest = r.Rest[1:]
		if err := j.entry(kind, r); err != nil {
			return err
		}
	}
	switch {
	case r.Err != nil:
		return fmt.Errorf("%w: %w", ErrJournal, r.Err)
	case j.err != nil:
		return j.err
	case sum != j.sum:
		return fmt.Errorf("%w: this program does not do what the one that wrote it did: it is another version, of the object perhaps, or has "+
			"another configuration: start the other one, and Close it, before this one goes on", ErrJournal)
	}
	j.leave()
	j.told, j.leavers = nil, nil
	return nil
}

func (j *journal) entry(kind byte, r *protocol.Reader) error {
	l := j.l
	switch kind {
	case entryBegin:
		j.begun = true
		j.open()
		l.beginReplicas()
	case entryOpen:
		id, number, incarnation, told := r.Uint(), r.Uint(), r.Uint(), r.Bool()
		s, err := j.session(id, number)
		if err != nil {
			return err
		}
		if s.number, s.incarnation, s.established = number, incarnation, incarnation != 0; s.established {
			l.n.lives.met[s.id] = incarnation
		}
		l.open(s, told)
	case entryDead:
		id, number := r.Uint(), r.Uint()
		s, err := j.session(id, number)
		if err != nil {
			return err
		}
		delete(j.doomed, s)
		s.dead.Store(true)
		next := newSession(l.n, s.id, number)
		next.lossy = true
		next.unbound()
		l.dead(s, next, "")
	case entrySuspected:
		l.suspected(protocol.ID(r.Max(uint64(len(l.make.live) - 1))))
	case entryMessage:
		id, seq := r.Uint(), r.Uint()
		s, err := j.session(id, 0)
		if err != nil {
			return err
		}
		m := &message{sess: s, seq: seq, kind: Kind(r.Max(0xff)), refusal: r.Bool()}
		m.name, m.body = []byte(r.Text()), []byte(r.Text())
		s.settled = seq
		if r.Err == nil {
			l.deliver(m)
		}
	case entryUser:
		what := protocol.Kind(r.Max(0xff))
		name, op := r.Text(), []byte(r.Text())
		if r.Err != nil || !l.instances.Has(name) {
			return fmt.Errorf("%w: a user of %q", ErrJournal, name)
		}
		if what == protocol.Try {
			l.users.byName.Set(name, &user{User: nobody{}, kind: Replica})
		}
		for _, op := range []event{
			{op: opTry, name: name}, {op: opCancel, name: name}, {op: opExit, name: name}, {op: opIssue, name: name, msg: op},
		} {
			if asks[op.op] == what {
				l.handle(&op)
			}
		}
	default:
		return fmt.Errorf("%w: an entry of kind %d", ErrJournal, kind)
	}
	return nil
}

// asks are the events of users, as processes know them.
var asks = map[op]protocol.Kind{opTry: protocol.Try, opCancel: protocol.Cancel, opExit: protocol.Exit, opIssue: protocol.Issue}

// resume has the node go on from where the journal ends.
func (j *journal) resume() {
	n := j.l.n
	for _, s := range j.l.sessions {
		s.window.Resume(s.settled)
		s.window.MaxItems = s.window.Unacked() + reliable.MaxItems
		s.window.MaxBytes = s.window.UnackedBytes() + n.sessions.usualWindow()
		n.sessions.byPeer[s.id] = s
	}
	for id, suspected := range j.l.make.suspects {
		if suspected {
			n.detector.members[id].Force()
		}
	}
	for name, u := range j.l.users.byName.All() {
		u.User = orphan{n, name, n.c.Orphan(name)}
		switch u.section {
		case protocol.InTry:
			n.Cancel(name)
		case protocol.InCrit, protocol.InLost:
			n.Exit(name)
		}
	}
}

// nobody is in the place of a user that was there when something was done for the first time.
type nobody struct{}

func (nobody) Crit(Entry)                       {}
func (nobody) Supported(map[protocol.ID]uint64) {}
func (nobody) Rem(error)                        {}
func (nobody) Ejected()                         {}
func (nobody) Outcome([]byte, error)            {}

// An orphan is in the place of a user that was there when the journal ended. It leaves as soon as it can.
type orphan struct {
	n    *Node
	name string
	gone func()
}

func (o orphan) Crit(Entry)                       { o.n.Exit(o.name) }
func (o orphan) Supported(map[protocol.ID]uint64) {}
func (o orphan) Rem(error)                        { o.gone() }
func (o orphan) Ejected()                         { o.n.Exit(o.name) }
func (o orphan) Outcome([]byte, error)            { o.n.Exit(o.name) }
