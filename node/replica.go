package node

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// An Object is what a lock of kind Replica protects: each member has a copy, and all copies execute
// the same operations in the same order. So what Apply does must depend on the copy and on the
// operation alone. It must not keep op, nor change what it has returned.
//
// Calls come from the goroutine of a shard, which does nothing else meanwhile: not for this lock,
// and not for others. A panic there, or a snapshot that cannot be restored, closes the node.
type Object interface {
	Apply(op []byte) (result []byte)
	// Snapshot returns all that there is to a copy.
	Snapshot() []byte
	// Restore replaces the copy by the one that a snapshot was made of.
	Restore(snapshot []byte) error
}

// An ObjectUser is the User of a replica. Its section ends with Rem after its Exit, and with Ejected
// when it was lost: then an operation that is open was not executed, and never will be. Rem without
// Exit says that this process is gone, for the reason given: what became of an open operation,
// nobody here knows.
type ObjectUser interface {
	User
	// Outcome: the open operation was executed, with this result.
	Outcome(result []byte)
}

// MaxOperation is how many bytes an operation of a replica may have, and a result.
const MaxOperation = 256 << 10

// Issue asks for an operation on the object called name, whose user is inside and has none open.
// The user is told Outcome, Ejected, or Rem. An Issue that crosses Ejected does nothing.
func (n *Node) Issue(name string, op []byte) error {
	if len(op) > MaxOperation {
		return fmt.Errorf("node: an operation of %d bytes exceeds %d", len(op), MaxOperation)
	}
	n.shard(name).post(event{op: opIssue, text: name, msg: append(binary.AppendUvarint(nil, uint64(n.c.ID)), op...)})
	return nil
}

// checkObject says why a user cannot try to enter.
func (c *Config) checkObject(kind Kind, name string, u User) error {
	if kind != Replica {
		return nil
	}
	if c.Objects[name] == nil {
		return fmt.Errorf("node: there is no object %q here", name)
	}
	if _, ok := u.(ObjectUser); !ok {
		return fmt.Errorf("node: the user of %q takes no outcomes", name)
	}
	return nil
}

// A replica is the copy of an object, and what users are told of operations on it.
type replica struct {
	object   Object
	results  [][]byte // by member: of its last operation
	captures bool     // the process wants to have the copy
}

// beginReplicas makes the processes of the objects whose names belong to this shard.
func (s *shard) beginReplicas() {
	for name, object := range s.n.c.Objects {
		if s.n.shard(name) == s {
			i := &instance{kind: Replica, name: name, process: s.n.c.Hosts[Replica].New(s.n.c.ID, s.system(Replica))}
			i.replica = &replica{object: object, results: make([][]byte, s.n.c.System.N)}
			s.add(i)
			s.start(i)
		}
	}
}

func (s *shard) issue(e *event) {
	if u := s.user(e.text); u != nil && u.kind == Replica && u.section == protocol.InCrit {
		u.section = protocol.InIssue
		s.stepUser(e.text, protocol.Input{Kind: protocol.Issue, Data: string(e.msg)})
	}
}

// guard calls code of an object. A panic is a crash of its process.
func (s *shard) guard(i *instance, f func() error) {
	var err error
	if !s.call("object", i.name, func() { err = f() }) {
		err = fmt.Errorf("its object panicked")
	}
	if err != nil {
		s.fail(i, err.Error())
	}
}

// invoke executes an operation: who issued it, and what it is.
func (s *shard) invoke(i *instance, data string) {
	s.guard(i, func() error {
		r := protocol.Reader{Rest: []byte(data)}
		issuer := r.Max(uint64(s.n.c.System.N - 1))
		if r.Err != nil {
			return r.Err
		}
		result := i.replica.object.Apply(r.Rest)
		if len(result) > MaxOperation {
			return fmt.Errorf("the result of an operation has %d bytes, more than %d", len(result), MaxOperation)
		}
		i.replica.results[issuer] = result
		return nil
	})
}

// outcome tells the user the result of its operation, which was the last one of this member.
func (s *shard) outcome(i *instance) {
	if u := s.user(i.name); u != nil && u.section == protocol.InIssue {
		u.section = protocol.InCrit
		s.tellOrFail(i, func() { u.User.(ObjectUser).Outcome(i.replica.results[s.n.c.ID]) })
	}
}

// captured gives the process its copy of the object.
func (s *shard) captured(i *instance) {
	i.replica.captures = false
	var b []byte
	s.guard(i, func() error {
		for _, r := range i.replica.results {
			b = protocol.AppendText(b, string(r))
		}
		b = append(b, i.replica.object.Snapshot()...)
		return nil
	})
	if !i.removed {
		s.stepKeep(i, protocol.Input{Kind: protocol.Captured, Data: string(b)}, nil, nil)
	}
}

// install makes data the copy.
func (s *shard) install(i *instance, data string) {
	s.guard(i, func() error {
		r := protocol.Reader{Rest: []byte(data)}
		for k := range i.replica.results {
			i.replica.results[k] = []byte(r.Text())
		}
		if r.Err != nil {
			return r.Err
		}
		return i.replica.object.Restore(r.Rest)
	})
}
