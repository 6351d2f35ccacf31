package node

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// names is the rule about which names are locks here: a member refuses those that it does not serve, and a client
// bears with the members that refuse one.
type names struct {
	loop *loop
	by   map[*instance]*refusals // at clients: those that members refuse
}

// restored takes back all refusals of a member, with which a new session has begun.
func (p *names) restored(id protocol.ID) {
	for _, r := range p.by {
		r.remove(id)
	}
}

// left notes that the user of an instance has left, and says why, should that be the refusal of a member.
func (p *names) left(i *instance) (why string) {
	if r := p.by[i]; r != nil {
		r.over, why = true, r.why
	}
	return why
}

// otherKind says that a name cannot be used as another kind than it is.
func otherKind(i *instance, asked Kind) string {
	return fmt.Sprintf("lock %q is in use as %s here, and was asked for as %s", i.name, i.kind.noun(), asked.noun())
}

// unserved says why a message is not for a process here: i is the one of its name, of
// another kind, or nil. The name of an instance that exists was looked at before.
func (p *names) unserved(i *instance, e *message) string {
	if p.loop.n.c.Hosts[e.kind] == nil {
		return fmt.Sprintf("lock %.100q was asked for as %s, which is not served here", e.name, e.kind.noun())
	}
	if i != nil {
		return otherKind(i, e.kind)
	}
	if e.kind == Replica || e.kind == Election {
		return fmt.Sprintf("there is no %s %.100q here", e.kind, e.name)
	}
	if most := p.loop.n.c.MaxInstances; p.loop.n.instances.Load() >= int64(most) && p.loop.n.roles.member() {
		return fmt.Sprintf("the %s is full: its limit on locks is %d", p.loop.n.roles.noun(), most)
	}
	name := string(e.name)
	if err := transport.CheckName(name); err != nil {
		return err.Error()
	}
	if p.loop.n.c.Owns != nil {
		if err := p.loop.n.c.Owns(name); err != nil {
			return err.Error()
		}
	}
	return ""
}

// refuse tells a client that this member does not serve a lock. The session and
// its other locks go on. What asks for nothing, such as the release that follows, is not
// refused: the next Try would take that for its own. A client drops what a member should
// not have sent.
func (p *names) refuse(e *message, why string) {
	if !p.loop.n.roles.member() || !p.asks(e) {
		return
	}
	p.loop.n.book.warn(e.sess.host, "refused a name", "peer", p.loop.n.roles.name(e.sess.id), "reason", why)
	p.loop.out.send(e.sess, transport.RefuseNameItem, e.kind, string(e.name), []byte(why), false)
}

// asks reports whether a message is more than nothing to a process that knows nothing:
// it leaves something behind, or is answered.
func (p *names) asks(e *message) bool {
	if p.loop.n.c.Hosts[e.kind] == nil {
		return true
	}
	process, fresh := p.loop.make.trial(e.kind, new(noticed))
	if process == nil {
		return true
	}
	var answer noticed
	in := protocol.Input{Kind: protocol.Receive, From: e.sess.id, Now: p.loop.n.clock.now()}
	if err := process.Step(in, e.body, &answer); err != nil {
		return true
	}
	state, err := process.AppendState(nil)
	return err != nil || bool(answer) || !bytes.Equal(state, fresh)
}

// noticed is a Sink that only notices whether there is an effect.
type noticed bool

func (*noticed) Received(int)                       {}
func (*noticed) Snapshot(string) error              { return nil }
func (n *noticed) Effect(protocol.Act, int, []byte) { *n = true }

// refusals are the members that refuse the name of one instance to its user. They are
// as good as away to it, so that others may let the user in.
type refusals struct {
	by   []protocol.ID
	why  string // the user has to leave, "": it has not
	over bool   // it has left
}

// of are those of an instance.
func (p *names) of(i *instance) *refusals {
	r := p.by[i]
	if r == nil {
		r = &refusals{}
		p.by[i] = r
	}
	return r
}

func (r *refusals) remove(id protocol.ID) bool {
	k := slices.Index(r.by, id)
	if k >= 0 {
		r.by = slices.Delete(r.by, k, k+1)
	}
	return k >= 0
}

// refused takes a member that does not serve a lock for away, and makes a user that
// tries give up when too few others are left. One that is inside, or has left, is not
// concerned: enough others served it. The name may be tried again at once, and a refusal
// that is still under way then counts again.
func (p *names) refused(e *message) {
	name := string(e.name)
	u := p.loop.users.get(name)
	if u == nil || u.kind != e.kind || u.section != protocol.InTry {
		return
	}
	why := p.loop.n.roles.name(e.sess.id) + ": " + string(e.body[:min(len(e.body), transport.MaxName)])
	if p.bears(name, u.kind, e.sess) {
		return
	}
	switch i := p.loop.instances.Get(name); {
	case i == nil:
	case p.loop.cancels(u.kind):
		p.of(i).why = why
		p.loop.step(i, protocol.Input{Kind: protocol.Cancel}, nil, nil)
	case p.loop.n.roles.mutual(): // the others wait for the process of this name, which nobody has: their other locks go on
		p.loop.closeLock(i, why)
	default: // it can never leave
		p.loop.fail(i, why)
	}
}

// bears notes one more member that refuses a name, and reports whether the others may
// still let the user in.
func (p *names) bears(name string, k Kind, from *session) bool {
	i, info := p.loop.instances.Get(name), p.loop.n.c.Hosts[k].Info()
	if i == nil || info.Quorum == "" || !p.loop.n.roles.restores(from.id) {
		return false
	}
	r := p.of(i)
	if slices.Contains(r.by, from.id) {
		return true
	}
	if len(r.by) >= p.loop.n.c.System.N-int(info.Option(p.loop.make.system(k), info.Quorum)) {
		return false
	}
	r.by = append(r.by, from.id)
	p.loop.step(i, protocol.NewSuspect(from.id), nil, nil)
	return true
}

// served takes back that a member refuses the name of an instance: a message came from
// there.
func (p *names) served(i *instance, by protocol.ID) {
	if r := p.by[i]; r != nil && r.remove(by) {
		p.loop.trust(i, by)
	}
}

// trust takes back that a member was away to an instance.
func (l *loop) trust(i *instance, id protocol.ID) {
	if l.make.live[id] != 0 && !i.removed {
		l.stepKeep(i, protocol.NewRestore(id, l.make.live[id]), nil, nil)
	}
}

// reset forgets who refused an instance when its user has left.
func (p *names) reset(i *instance) {
	r := p.by[i]
	if r == nil || !r.over {
		return
	}
	delete(p.by, i)
	for _, id := range r.by {
		p.loop.trust(i, id)
	}
}

// cancels reports whether the algorithm of a kind can give up a Try.
func (l *loop) cancels(k Kind) bool { return l.n.c.Hosts[k].Info().Cancels }
