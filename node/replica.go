package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// An Object is what a lock of kind Replica protects: each member has a copy, and all copies execute
// the same operations in the same order. So what Apply does must depend on the copy and on the
// operation alone. It must not keep op, nor change what it has returned.
//
// Calls but Check come from the goroutine of a loop, which does nothing else meanwhile: not for this lock,
// and not for others. A panic there closes the node, but for one of Restore.
type Object interface {
	// Check says why op is no operation of the object; nil: it is one. It depends on op alone and changes
	// nothing, and many goroutines may call it at once. All members must judge alike: what Check refuses does
	// nothing to any copy, and Apply is never given it. A panic refuses, too.
	Check(op []byte) error
	Apply(op []byte) (result []byte)
	// Snapshot returns all that there is to a copy.
	Snapshot() []byte
	// Restore reads a snapshot, and changes nothing. Only what it returns makes the copy the one that the snapshot
	// was made of; that cannot fail, and is called at once or never. An error says why the snapshot is none. Then,
	// or after a panic, the session with the member that has sent it ends, and another member is asked.
	Restore(snapshot []byte) (replace func(), err error)
}

// An ObjectUser is the User of a replica. Its section ends with Rem after its Exit, and with Ejected
// when it was lost: then an operation that is open was not executed, and never will be. Rem without
// Exit says that this process is gone, for the reason given: what became of an open operation,
// nobody here knows.
type ObjectUser interface {
	User
	// Outcome: the open operation was executed, with this result. An error that wraps ErrResultTooLarge
	// says that it was executed and that its result is withheld; one that wraps ErrOperation that the copies
	// refused it when its turn came, although it had passed where it was issued: nothing was done.
	Outcome(result []byte, err error)
}

// MaxOperation is how many bytes an operation of a replica may have.
const MaxOperation = 256 << 10

// MaxResult is how many bytes a result may have: a larger one is withheld, see ErrResultTooLarge. It is those of an operation
// that is several, and of one more.
const MaxResult = 2 * MaxOperation

// ErrOperation says that something is no operation of an object: see Object.Check. No copy has changed.
var ErrOperation = errors.New("node: not an operation of the object")

// ErrResultTooLarge says that an operation was executed, and that its result, which has more than
// MaxResult bytes, is withheld: no copy keeps it.
var ErrResultTooLarge = errors.New("node: the operation was executed, and its result is too large")

// Issue asks for an operation on the object called name, which CheckOperation lets pass, and whose user is inside and has none open.
// The user is told Outcome, Ejected, or Rem. An Issue that crosses Ejected does nothing.
func (n *Node) Issue(name string, op []byte) {
	n.loop(name).inbox.post(event{op: opIssue, name: name, msg: append(binary.AppendUvarint(nil, uint64(n.c.ID)), op...)})
}

// checkObject says why a user cannot try to enter.
func (c *Config) checkObject(kind Kind, name string, u User) error {
	if kind != Replica {
		return nil
	}
	if c.Objects[name] == nil {
		return noObject(name)
	}
	if _, ok := u.(ObjectUser); !ok {
		return fmt.Errorf("node: the user of %q takes no outcomes", name)
	}
	return nil
}

func noObject(name string) error { return fmt.Errorf("node: there is no object %q here", name) }

// CheckOperation says why op is no operation of an object. Who issues it asks, and so does each copy before it
// executes it, because a peer may have issued anything.
func CheckOperation(o Object, op []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: Check panicked: %v", ErrOperation, p)
		}
	}()
	if len(op) > MaxOperation {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrOperation, len(op), MaxOperation)
	}
	if err := o.Check(op); err != nil {
		return fmt.Errorf("%w: %w", ErrOperation, err)
	}
	return nil
}

// A replica is the copy of an object, and what users are told of operations on it.
type replica struct {
	object   Object
	results  []result     // by member: of its last operation
	captures bool         // the process wants to have the copy
	states   bool         // what it sends in this step has the copy
	here     bool         // the copy is that of the system
	next     func() error // makes the copy that the message of this step brings the one here
}

var errNoIssuer = fmt.Errorf("%w: it names no issuer", ErrOperation)

// invoke executes an operation: who issued it, and what it is. One that is not an operation does nothing, at all copies
// alike, and no says why: one that closed instead would take all others with it.
func (c *replica) invoke(data string) (issuer uint64, no error) {
	r := protocol.Reader{Rest: []byte(data)}
	if issuer = r.Max(uint64(len(c.results) - 1)); r.Err != nil {
		return 0, errNoIssuer
	}
	if no = CheckOperation(c.object, r.Rest); no != nil {
		c.results[issuer] = result{refused: true}
		return issuer, no
	}
	c.results[issuer] = newResult(c.object.Apply(r.Rest))
	return issuer, nil
}

// copy is the copy of the object with the last results, and its size. One of more than most bytes is withheld.
func (c *replica) copy(most int) (b []byte, size int) {
	b = []byte{0} // it is not withheld
	for _, r := range c.results {
		b = r.append(b)
	}
	b = append(b, c.object.Snapshot()...)
	if size = len(b) - 1; size > most {
		b = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(most))
	}
	return b, size
}

// read reads a copy that a message brings, of at most so many bytes. Nothing changes yet: install makes it the one here.
func (c *replica) read(data string, most int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("Restore panicked: %v", p)
		}
	}()
	r := protocol.Reader{Rest: []byte(data)}
	size, limit, where := r.Uint(), uint64(most), "here"
	if size > 0 {
		limit, where = r.Uint(), "at the member that has it"
	} else {
		size = uint64(len(r.Rest))
	}
	if r.Err != nil {
		return fmt.Errorf("the size of the state: %w", r.Err)
	}
	if size > limit {
		c.next = func() error { return tooLarge("state", size, where, limit) }
		return nil
	}
	results := make([]result, len(c.results))
	for k := range results {
		results[k] = readResult(&r)
	}
	if r.Err != nil {
		return fmt.Errorf("the results of the last operations: %w", r.Err)
	}
	replace, err := c.object.Restore(r.Rest)
	if err != nil {
		return err
	}
	c.next = func() error {
		replace()
		c.results, c.here = results, true
		return nil
	}
	return nil
}

// install makes the copy that was read the one here.
func (c *replica) install() error {
	if c.next == nil {
		return errors.New("the copy to install has come with no message")
	}
	return c.next()
}

// A result is what became of an operation.
type result struct {
	value    []byte
	refused  bool   // it was no operation: nothing was done
	withheld uint64 // how many bytes it has, where they are too many to keep; else 0
}

// newResult is the result of an operation that was executed.
func newResult(value []byte) result {
	if len(value) > MaxResult {
		return result{withheld: uint64(len(value))}
	}
	return result{value: value}
}

func (r result) err() error {
	switch {
	case r.refused:
		return fmt.Errorf("%w: the copies refused it", ErrOperation)
	case r.withheld > 0:
		return fmt.Errorf("%w: %d bytes, and the limit is %d: ask for less at a time", ErrResultTooLarge, r.withheld, MaxResult)
	}
	return nil
}

func (r result) append(b []byte) []byte {
	b = binary.AppendUvarint(protocol.AppendBool(b, r.refused), r.withheld)
	return protocol.AppendText(b, r.value)
}

func readResult(r *protocol.Reader) result {
	return result{refused: r.Bool(), withheld: r.Uint(), value: []byte(r.Text())}
}

// election is the name of the one election of a node.
const election = "leader"

// beginElection makes the process of the election. Like that of a replica it is there from the start, for others wait for it.
func (l *loop) beginElection() {
	if l.n.c.Hosts[Election] != nil && l.n.roles.member() && l.n.loop(election) == l {
		l.create(Election, election, nil)
	}
}

// beginReplicas makes the processes of the objects whose names belong to this loop.
func (l *loop) beginReplicas() {
	for _, name := range slices.Sorted(maps.Keys(l.n.c.Objects)) { // in an order that is the same when it is done again
		if l.n.loop(name) == l {
			l.create(Replica, name, l.n.newReplica(name))
		}
	}
}

func (n *Node) newReplica(name string) *replica {
	return &replica{object: n.c.Objects[name], results: make([]result, n.c.System.N), here: !joins(n.incarnation)}
}

func (l *loop) issue(e *event) {
	if u := l.users.get(e.name); u != nil && u.kind == Replica && u.section == protocol.InCrit {
		l.journal.noteUser(e.name, protocol.Issue, e.msg)
		u.section = protocol.InIssue
		l.stepUser(e.name, protocol.NewIssue(string(e.msg)))
	}
}

// guard calls code of an object. A panic is a crash of its process.
func (l *loop) guard(i *instance, f func() error) {
	var err error
	if !l.call("object", i.name, func() { err = f() }) {
		err = fmt.Errorf("its object panicked")
	}
	if err != nil {
		l.fail(i, err.Error())
	}
}

// invoke executes an operation.
func (l *loop) invoke(i *instance, data string) {
	l.guard(i, func() error {
		switch issuer, no := i.replica.invoke(data); no {
		case nil:
			l.journal.executed(i.replica.results[issuer].value)
		case errNoIssuer:
			l.n.book.warn("", "refused an operation", "lock", i.name, "error", no)
		default:
			l.n.book.warn("", "refused an operation", "lock", i.name, "issuer", l.n.roles.name(protocol.ID(issuer)), "error", no)
		}
		return nil
	})
}

// outcome tells the user the result of its operation, which was the last one of this member.
func (l *loop) outcome(i *instance) {
	if u := l.users.get(i.name); u != nil && u.section == protocol.InIssue {
		u.section = protocol.InCrit
		r := i.replica.results[l.n.c.ID]
		l.tellOrFail(i, func() { u.User.(ObjectUser).Outcome(r.value, r.err()) })
	}
}

// captured gives the process its copy of the object.
func (l *loop) captured(i *instance) {
	i.replica.captures = false
	var b []byte
	size := 0
	l.guard(i, func() error {
		b, size = i.replica.copy(l.n.c.MaxState)
		return nil
	})
	if size > l.n.c.MaxState {
		l.n.book.warn("", "withheld a state from who asked for it, which closes: raise MaxState at all members",
			"lock", i.name, "bytes", size, "limit", l.n.c.MaxState)
	}
	if !i.removed {
		i.replica.states = true
		l.stepKeep(i, protocol.NewCaptured(string(b)), nil, nil)
		i.replica.states = false
	}
}

// Snapshot implements Sink: the message of this step brings a copy.
func (l *loop) Snapshot(data string) error { return l.current.replica.read(data, l.n.c.MaxState) }

// tooLarge is why a member closes that cannot get the object.
func tooLarge(what string, size uint64, where string, limit uint64) error {
	return fmt.Errorf("the %s has %d bytes, and the limit %s is %d: raise MaxState at all members", what, size, where, limit)
}

// besideState is how many bytes more than its state a message of a replica may have: operations that follow on it.
// Votes and records, which have no state, are within it.
const besideState = 32 << 20

// maxMessage is how many bytes a message of a replica may have.
func (n *Node) maxMessage() int { return n.c.MaxState + besideState }

// announced: a message of size bytes was announced that is too large to be received, so that its replica would lack it.
func (l *loop) announced(from *session, name string, size uint64) {
	if i := l.instances.Get(name); i != nil && i.replica != nil {
		l.fail(i, tooLarge("message with the state", size, "here", uint64(l.n.maxMessage())).Error())
		return
	}
	l.n.sessions.end(from, errTooLarge, fault(errTooLarge).Append(nil))
}

var errTooLarge = errors.New("node: a message that is larger than any of a replica here")
