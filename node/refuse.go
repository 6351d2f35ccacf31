package node

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// otherKind says that a name cannot be used as another kind than it is.
func otherKind(i *instance, asked Kind) string {
	return fmt.Sprintf("lock %q is in use as %s here, and was asked for as %s", i.name, i.kind.noun(), asked.noun())
}

// unserved says why a message is not for a process here: i is the one of its name, of
// another kind, or nil. The name of an instance that exists was looked at before.
func (s *shard) unserved(i *instance, e *event) string {
	if s.n.c.Hosts[e.kind] == nil {
		return fmt.Sprintf("lock %.100q was asked for as %s, which is not served here", e.name, e.kind.noun())
	}
	if i != nil {
		return otherKind(i, e.kind)
	}
	if most := s.n.c.MaxInstances; s.n.instances.Load() >= int64(most) && s.n.isMember(s.n.c.ID) {
		return fmt.Sprintf("the server is full: its limit on locks is %d", most)
	}
	name := string(e.name)
	if err := transport.CheckName(name); err != nil {
		return err.Error()
	}
	if s.n.c.Owns != nil {
		if err := s.n.c.Owns(name); err != nil {
			return err.Error()
		}
	}
	return ""
}

// refuseName tells a client that this member does not serve a lock. The session and
// its other locks go on. A client drops what a member should not have sent.
func (s *shard) refuseName(e *event, why string) {
	if !s.n.isMember(s.n.c.ID) {
		return
	}
	s.n.complain("refused a name", "peer", s.n.name(e.sess.id), "reason", why)
	s.push(e.sess, transport.RefuseNameItem, e.kind, string(e.name), []byte(why))
}

// refused makes a user that tries give up because a member does not serve its lock.
// One that is inside, or has left, is not concerned: enough others served it. The name
// may be tried again at once, and a refusal that is still under way then counts again.
func (s *shard) refused(e *event) {
	name := string(e.name)
	u := s.user(name)
	if e.sess.dead.Load() || u == nil || u.kind != e.kind || u.section != protocol.InTry {
		return
	}
	why := s.n.name(e.sess.id) + ": " + string(e.msg[:min(len(e.msg), transport.MaxName)])
	if s.cancels(u.kind) {
		u.refusal = why
		s.stepUser(name, protocol.Input{Kind: protocol.Cancel})
		return
	}
	if i := s.instances.Get(name); i != nil { // it can never leave
		s.fail(i, why)
	}
}

// drains reports whether the algorithm of a kind knows Drain.
func (s *shard) drains(k Kind) bool { return s.n.c.Hosts[k].Info().Drains }

// cancels reports whether the algorithm of a kind can give up a Try.
func (s *shard) cancels(k Kind) bool { return s.n.c.Hosts[k].Info().Cancels }
