package node

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A snapshot is a sequence of parts, each a length of four bytes, a kind and records.
// What it says of time are readings of the boot clock, which goes on meanwhile and is
// one for all processes of a machine.
//
// snapshotFormat is to be raised with every change of this form, and with every change
// of the canonical state of a process that is handed over.
const (
	snapshotFormat = 2
	maxPart        = 16 << 20         // bytes
	fullPart       = 64 << 10         // bytes after which the next part begins
	maxTransit     = 10 * time.Minute // from one boot clock to another: they are not the same
)

// The kinds of parts.
const (
	partHead byte = iota + 1
	partSessions
	partLocks
	partFailed
	partEnd
)

// ErrSnapshot says that a snapshot is malformed.
var ErrSnapshot = errors.New("node: malformed snapshot")

// A Title says whose table it is. Two processes of one title can be two parts of one
// life of a server.
type Title struct {
	Format  int // of the snapshot
	Server  string
	Members []Peer
	Epoch   uint64
	Shards  string
	Kinds   string // and what runs their locks
	Options map[string]int64
}

// Title is that of the table that n has now.
func (n *Node) Title() Title {
	t := n.c.Title()
	t.Epoch, t.Members = n.Table()
	return t
}

// Title is that of the member that c would start.
func (c Config) Title() Title {
	t := Title{
		Format: snapshotFormat, Members: c.Peers, Epoch: c.Epoch, Shards: c.Shards,
		Options: c.System.Options,
	}
	if c.member() {
		t.Server = c.Peers[c.ID].Name
	}
	for i, k := range slices.Sorted(maps.Keys(c.Hosts)) {
		if i > 0 {
			t.Kinds += ", "
		}
		t.Kinds += k.String() + ": " + algorithm(c.Hosts[k])
	}
	return t
}

// Check says how mine differs from theirs.
func (t Title) Check(theirs Title) error {
	p := differ(
		point{"format of the snapshot", t.Format, theirs.Format},
		point{"name of the server", t.Server, theirs.Server},
		point{"epoch", t.Epoch, theirs.Epoch},
		point{"list of servers", t.Members, theirs.Members},
		point{"list of shards", t.Shards, theirs.Shards},
		point{"list of kinds and algorithms", t.Kinds, theirs.Kinds},
		point{"options (clock bound, quorum)", t.Options, theirs.Options},
	)
	if p != nil {
		return fmt.Errorf("%w: %s differs: %v here, %v there", ErrNoHandover, p.what, p.mine, p.theirs)
	}
	return nil
}

// A point is one on which what was written must agree with the process that reads it.
type point struct {
	what         string
	mine, theirs any
}

// differ returns the first point on which they do not agree, nil if there is none.
func differ(points ...point) *point {
	for k := range points {
		if !reflect.DeepEqual(points[k].mine, points[k].theirs) {
			return &points[k]
		}
	}
	return nil
}

// A head is the first part.
type head struct {
	Title       Title
	Incarnation uint64
	At          time.Duration // by the boot clock
}

// A SnapshotSize is what is in a snapshot.
type SnapshotSize struct {
	Bytes                   int64
	Sessions, Locks, Timers int
	failed                  int // locks
}

// counts are what the last part says.
func (s SnapshotSize) counts() []uint64 {
	return []uint64{uint64(s.Sessions), uint64(s.Locks), uint64(s.Timers), uint64(s.failed)}
}

// Write writes the table: sessions with what is unacknowledged, the processes of all
// locks with their timers, and which locks have failed. Nothing of it changes while
// the member is frozen.
func (f *Frozen) Write(out io.Writer) (SnapshotSize, error) {
	n := f.n
	w := &partWriter{out: out}
	first, err := json.Marshal(head{n.Title(), n.incarnation, f.at})
	if err != nil {
		return w.size, fmt.Errorf("node: snapshot: %w", err)
	}
	w.begin(partHead)
	w.b = append(w.b, first...)
	w.begin(partSessions)
	numbers := map[*session]uint64{}
	for k, s := range n.sessions.list() {
		numbers[s] = uint64(k)
		w.session(s)
	}
	w.begin(partLocks)
	for _, l := range n.loops {
		for _, i := range l.instances.All() {
			w.lock(i, &l.audit, numbers, f.at-f.ran)
		}
	}
	w.begin(partFailed)
	for _, l := range n.loops {
		for name, why := range l.users.failed {
			w.b = protocol.AppendText(protocol.AppendText(w.b, name), why)
			w.size.failed++
			w.split()
		}
	}
	w.begin(partEnd)
	for _, k := range w.size.counts() {
		w.b = binary.AppendUvarint(w.b, k)
	}
	w.flush()
	if w.err != nil {
		return w.size, fmt.Errorf("node: snapshot: %w", w.err)
	}
	return w.size, nil
}

// A partWriter writes parts. After the first error it writes nothing.
type partWriter struct {
	out   io.Writer
	b     []byte // the current part
	state []byte // scratch
	size  SnapshotSize
	err   error
}

// begin ends the current part and begins one of another kind.
func (w *partWriter) begin(kind byte) {
	w.flush()
	w.b = append(w.b[:0], 0, 0, 0, 0, kind)
}

// split begins another part of the same kind, when this one is full.
func (w *partWriter) split() {
	if len(w.b) >= fullPart {
		w.begin(w.b[4])
	}
}

func (w *partWriter) flush() {
	if len(w.b) > 4+maxPart && w.err == nil {
		w.err = fmt.Errorf("a record of %d bytes exceeds %d", len(w.b), maxPart)
	}
	if len(w.b) == 0 || w.err != nil {
		return
	}
	binary.BigEndian.PutUint32(w.b, uint32(len(w.b)-4))
	_, w.err = w.out.Write(w.b)
	w.size.Bytes += int64(len(w.b))
}

func (w *partWriter) session(s *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.b = binary.AppendUvarint(w.b, uint64(s.id))
	w.b = binary.AppendUvarint(w.b, s.number)
	w.b = binary.AppendUvarint(w.b, s.incarnation)
	w.b = protocol.AppendText(w.b, s.label)
	w.b = protocol.AppendText(w.b, s.host)
	w.b = binary.AppendUvarint(w.b, uint64(len(s.from)))
	for _, name := range s.from {
		w.b = protocol.AppendText(w.b, name)
	}
	w.b = binary.AppendUvarint(w.b, uint64(s.lease.Length))
	w.b = binary.AppendUvarint(w.b, uint64(s.lease.End()))
	w.b = protocol.AppendBool(w.b, s.dead.Load())
	w.b = protocol.AppendState(w.b, &s.window)
	w.size.Sessions++
	w.split()
}

// lock writes an instance. began is the boot clock at the start of the node.
func (w *partWriter) lock(i *instance, audit *audit, numbers map[*session]uint64, began time.Duration) {
	var err error
	if w.state, err = i.process.AppendState(w.state[:0]); err != nil && w.err == nil {
		w.err = fmt.Errorf("lock %q: %w", i.name, err)
		return
	}
	w.b = append(w.b, byte(i.kind))
	w.b = protocol.AppendText(w.b, i.name)
	w.b = binary.AppendUvarint(w.b, uint64(len(w.state)))
	w.b = append(w.b, w.state...)
	w.b = binary.AppendUvarint(w.b, uint64(len(i.peers())))
	for _, p := range i.peers() {
		w.b = binary.AppendUvarint(w.b, numbers[p])
	}
	owners := audit.owners(i)
	w.b = protocol.AppendText(w.b, audit.group(i))
	w.b = binary.AppendUvarint(w.b, uint64(len(owners)))
	for _, o := range owners {
		w.b = binary.AppendUvarint(w.b, uint64(o.client))
		w.b = binary.AppendUvarint(w.b, o.request)
		w.b = binary.AppendUvarint(w.b, uint64(max(0, began+o.since)))
	}
	armed := 0
	for t := i.timers; t != nil; t = t.next {
		armed++
	}
	w.b = binary.AppendUvarint(w.b, uint64(armed))
	for t := i.timers; t != nil; t = t.next {
		w.b = binary.AppendUvarint(w.b, uint64(t.id))
		w.b = binary.AppendUvarint(w.b, uint64(max(0, began+t.at)))
	}
	w.size.Locks++
	w.size.Timers += armed
	w.split()
}

// Restore makes a member that can go on with the table of a predecessor: it has its
// incarnation, and no client notices. It is frozen, for the predecessor may go on
// itself: Thaw follows once that never will, or Close of its node, which then has
// told nobody anything. It takes the whole table: limits of c are for what is new. c.Listener
// must be nil.
func Restore(c Config, in io.Reader) (*Frozen, SnapshotSize, error) {
	l := &loader{in: bufio.NewReaderSize(in, fullPart)}
	if c.Listener != nil {
		return nil, l.size, errors.New("node: a restored member has no listener yet")
	}
	n, err := newNode(c)
	if err != nil {
		return nil, l.size, err
	}
	l.n = n
	if err := l.load(); err != nil {
		n.cancel()
		return nil, l.size, err
	}
	return n.runFrozen(), l.size, nil
}

// A loader fills a node that does not run yet.
type loader struct {
	n        *Node
	in       io.Reader
	head     head
	began    time.Duration // the start of the node by the boot clock
	sessions []*session    // in the order of the snapshot
	state    []byte        // scratch
	size     SnapshotSize
}

func (l *loader) load() error {
	want := partHead
	for {
		part, err := transport.ReadFrame(l.in, maxPart)
		if err != nil {
			return fmt.Errorf("node: snapshot: %w", err)
		}
		l.size.Bytes += int64(4 + len(part))
		if len(part) == 0 || part[0] < want || part[0] > partEnd || want == partHead && part[0] != partHead {
			return fmt.Errorf("%w: parts out of order", ErrSnapshot)
		}
		want = part[0]
		r := &protocol.Reader{Rest: part[1:]}
		switch want {
		case partHead:
			want++
			err = l.readHead(part[1:])
		case partEnd:
			return l.end(r)
		default:
			for len(r.Rest) > 0 && err == nil {
				err = l.record(want, r)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (l *loader) readHead(b []byte) error {
	if err := json.Unmarshal(b, &l.head); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := l.n.Title().Check(l.head.Title); err != nil {
		return err
	}
	now := l.n.c.Boot()
	if l.head.At < 0 || l.head.At > now || l.head.At < now-maxTransit {
		return fmt.Errorf("%w: the boot clock of its predecessor shows %v, the own one %v: another machine?",
			ErrNoHandover, l.head.At, now)
	}
	if l.head.Incarnation == 0 {
		return fmt.Errorf("%w: no incarnation", ErrSnapshot)
	}
	l.began = now - time.Since(l.n.started)
	l.n.incarnation = l.head.Incarnation
	return nil
}

func (l *loader) record(kind byte, r *protocol.Reader) error {
	switch kind {
	case partSessions:
		return l.session(r)
	case partLocks:
		return l.lock(r)
	}
	name, why := string(r.Bytes(transport.MaxName)), r.Text()
	if r.Err != nil || name == "" || why == "" {
		return fmt.Errorf("%w: a failed lock", ErrSnapshot)
	}
	l.n.loop(name).users.failed[name] = why
	l.size.failed++
	return nil
}

func (l *loader) session(r *protocol.Reader) error {
	n := l.n
	s := newSession(n, protocol.ID(r.Uint()), r.Uint())
	s.incarnation, s.established = r.Uint(), true
	s.label = r.Text()
	s.host = r.Text()
	for range r.Len() {
		s.from = append(s.from, r.Text())
	}
	length := time.Duration(r.Max(uint64(MaxLease)))
	end := time.Duration(r.Max(uint64(l.head.At + MaxLease))) // it may have begun with a longer lease
	dropped := r.Bool()
	if r.Err == nil {
		r.Rest, r.Err = protocol.LoadState(r.Rest, &s.window)
	}
	switch {
	case r.Err != nil:
		return fmt.Errorf("%w: session %d", ErrSnapshot, len(l.sessions))
	case n.roles.isMember(s.id) || s.id != ClientID(s.incarnation) || s.number == 0 || length < MinLease || n.sessions.byPeer[s.id] != nil:
		return fmt.Errorf("%w: session with %s", ErrSnapshot, n.roles.name(s.id))
	}
	s.lease.Length = length
	s.lease.Renew(end - length)
	s.dead.Store(dropped)
	n.sessions.byPeer[s.id] = s
	n.sessions.origins.come(s)
	if !dropped {
		for _, home := range n.loops {
			home.sessions[s.id] = s
		}
	}
	l.sessions = append(l.sessions, s)
	l.size.Sessions++
	return nil
}

func (l *loader) lock(r *protocol.Reader) error {
	n := l.n
	kind := Kind(r.Max(0xff))
	name := string(r.Bytes(transport.MaxName))
	state := r.Bytes(maxPart)
	if r.Err != nil || transport.CheckName(name) != nil {
		return fmt.Errorf("%w: lock %d", ErrSnapshot, l.size.Locks)
	}
	home := n.loop(name)
	if n.c.Hosts[kind] == nil || home.instances.Has(name) {
		return fmt.Errorf("%w: lock %q of kind %s", ErrSnapshot, name, kind)
	}
	i := newInstance(kind, name, true)
	i.process = n.c.Hosts[kind].New(n.c.ID, n.c.System)
	if err := i.process.Load(state); err != nil {
		return fmt.Errorf("%w: lock %q: %w", ErrSnapshot, name, err)
	}
	var err error
	if l.state, err = i.process.AppendState(l.state[:0]); err != nil || !bytes.Equal(l.state, state) {
		return fmt.Errorf("%w: lock %q: not a canonical state", ErrSnapshot, name)
	}
	home.add(i)
	for range r.Len() {
		k := r.Uint()
		if r.Err != nil || k >= uint64(len(l.sessions)) || slices.Contains(i.peers(), l.sessions[k]) {
			return fmt.Errorf("%w: lock %q: its clients", ErrSnapshot, name)
		}
		home.limits.restore(i, l.sessions[k])
	}
	if !l.owners(home, i, r) {
		return fmt.Errorf("%w: lock %q: whom it supports", ErrSnapshot, name)
	}
	for range r.Len() {
		id, at := uint32(r.Max(1<<32-1)), time.Duration(r.Max(1<<62))
		if r.Err != nil || i.timer(id) != nil {
			return fmt.Errorf("%w: lock %q: its timers", ErrSnapshot, name)
		}
		home.timers.set(i, id, at-l.began, 0)
		l.size.Timers++
	}
	if r.Err != nil {
		return fmt.Errorf("%w: lock %q", ErrSnapshot, name)
	}
	l.size.Locks++
	return nil
}

// owners reads whom the member supports, for those who watch.
func (l *loader) owners(home *loop, i *instance, r *protocol.Reader) (ok bool) {
	a := &home.audit
	group, count := r.Text(), r.Len()
	if group != "" {
		a.sharersOf(i).group = group
	}
	for range count {
		client, request, since := protocol.ID(r.Uint()), r.Uint(), time.Duration(r.Max(1<<62))
		o := owner{client, request, since - l.began, l.n.sessions.byPeer[client]}
		if _, twice := a.owner(i, client); twice || o.nobody() || r.Err != nil {
			return false
		}
		a.add(i, o)
	}
	a.waits(i, i.process.Waiting())
	return r.Err == nil && (group != "" || count <= 1) && (group == "" || count > 0)
}

// end checks that nothing is missing.
func (l *loader) end(r *protocol.Reader) error {
	have := l.size.counts()
	want := []uint64{r.Uint(), r.Uint(), r.Uint(), r.Uint()}
	if r.Err != nil || len(r.Rest) > 0 || !slices.Equal(have, want) {
		return fmt.Errorf("%w: it has %v sessions, locks, timers and failed locks, and says %v", ErrSnapshot, have, want)
	}
	return nil
}
