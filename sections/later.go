package sections

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// Objects that are made after the start. A process of the algorithm has to be there from the beginning of the system, or has to join: one
// that began later, at members of which some have come back since, would not know what to count on. So the system begins with some
// processes that have no object yet, the slots. Which slot is that of which name is an object itself, the registry. The first
// section of a slot makes its copies, by an operation as any other one.

// own begins the names of the registry and the slots, which no other object may have.
const own = "+"

const maxSlots = 256

var errNotMade = errors.New("the object is not made yet")

func isOwn(name string) bool { return strings.HasPrefix(name, own) }

func slotName(k int) string { return fmt.Sprint(own, k+1) }

// checkName says what is wrong with the name of an object.
func checkName(name string) error {
	if err := transport.CheckName(name); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if isOwn(name) {
		return fmt.Errorf("object %q: names with %s are those of this package", name, own)
	}
	return nil
}

// addSlots adds the registry and the slots to a member that makes objects later.
func (m *Member) addSlots() {
	if m.c.More == nil {
		return
	}
	m.replicas[own] = newReplica(own, &registry{})
	for k := range m.c.Slots {
		r := newReplica(slotName(k), nil)
		r.more = m.c.More
		m.replicas[r.name] = r
	}
}

// Open makes an object, unless there is one of this name: it is one of all members then, also of those that have not called Open, and of
// those that come back later. It begins as Config.More makes it.
func (m *Member) Open(ctx context.Context, object string) error {
	if err := m.open(ctx, object); err != nil {
		return fmt.Errorf("sections: open %q: %w", object, err)
	}
	return nil
}

// ErrNoSlot says that no object can be made any more: there are as many as Config.Slots.
var ErrNoSlot = errors.New("there is no slot for another object")

func (m *Member) open(ctx context.Context, object string) error {
	if _, err := m.object(object); err == nil {
		if m.n.Settle() != nil { // that it is made might be lost still
			return closed(nil)
		}
		return nil
	}
	switch err := checkName(object); {
	case err != nil:
		return err
	case m.c.More == nil:
		return fmt.Errorf("%w, and no Config.More that makes some: %q", ErrNoObject, m.names())
	case m.c.More(object) == nil:
		return fmt.Errorf("%w: Config.More makes none of this name", ErrNoObject)
	}
	op := append(binary.AppendUvarint([]byte{one}, uint64(m.c.Slots)), object...)
	for {
		s, err := m.enterAt(ctx, m.replicas[own])
		if err != nil {
			return err
		}
		results, err := s.execute(ctx, op)
		s.Exit()
		switch {
		case errors.Is(err, ErrEjected): // it was not executed
		case err != nil:
			return err
		case len(results[0]) > 0:
			return fmt.Errorf("%w: %s", ErrNoSlot, results[0])
		default:
			return nil
		}
	}
}

// object finds an object of which this member knows.
func (m *Member) object(name string) (*replica, error) {
	if r := m.replicas[name]; r != nil && !isOwn(name) {
		return r, nil
	}
	if r := m.replicas[own]; r != nil {
		r.mu.RLock()
		k := slices.Index(r.copy.(*registry).names, name)
		r.mu.RUnlock()
		if k >= m.c.Slots {
			return nil, fmt.Errorf("it has slot %d, and Slots is %d here: want as many as at the other members", k+1, m.c.Slots)
		}
		if k >= 0 {
			return m.replicas[slotName(k)], nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrNoObject, m.names())
}

// find finds an object, also one that was made elsewhere just now.
func (m *Member) find(ctx context.Context, name string) (*replica, error) {
	r, err := m.object(name)
	if registry := m.replicas[own]; errors.Is(err, ErrNoObject) && registry != nil && checkName(name) == nil {
		if err := m.barrier(ctx, registry); err != nil {
			return nil, err
		}
		return m.object(name)
	}
	return r, err
}

// names are those of the objects that this member knows.
func (m *Member) names() []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(m.replicas)), isOwn)
	if r := m.replicas[own]; r != nil {
		r.mu.RLock()
		names = append(names, r.copy.(*registry).names...)
		r.mu.RUnlock()
	}
	slices.Sort(names)
	return names
}

// begin makes the copy. r.mu is held.
func (r *replica) begin(name string) {
	if r.copy != nil {
		return
	}
	o, err := r.titled(name)
	if err != nil {
		r.broken = err
		panic(err) // it cannot execute what others do: this member closes
	}
	r.copy, r.title = o, name
}

// titled is a new copy where the object is made later and has this name, nil where it has none yet, and elsewhere the copy.
func (r *replica) titled(name string) (Object, error) {
	switch {
	case r.more == nil:
		return r.copy, nil // which never becomes another one
	case name == "":
		return nil, nil
	}
	o := r.more(name)
	if o == nil {
		return nil, fmt.Errorf("Config.More makes no object %q here, and that of another member has", name)
	}
	return o, nil
}

// shown is the name of the object.
func (r *replica) shown() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return cmp.Or(r.title, r.name)
}

// A registry has the names of the objects that were made later, in the order of their slots.
type registry struct{ names []string }

// Check implements Object: how many slots there are at who asks, and a name.
func (*registry) Check(op []byte) error {
	r := protocol.Reader{Rest: op}
	if r.Max(maxSlots); r.Err != nil {
		return r.Err
	}
	return checkName(string(r.Rest))
}

// Apply implements Object. The result is what is wrong.
func (g *registry) Apply(op []byte) []byte {
	r := protocol.Reader{Rest: op}
	slots := int(r.Uint())
	name := string(r.Rest)
	switch {
	case slices.Contains(g.names, name):
	case len(g.names) >= slots:
		return fmt.Appendf(nil, "%d are made already, and Slots is %d: raise it when the system begins anew", len(g.names), slots)
	default:
		g.names = append(g.names, name)
	}
	return nil
}

// Snapshot implements Object.
func (g *registry) Snapshot() (b []byte) {
	for _, name := range g.names {
		b = protocol.AppendText(b, name)
	}
	return b
}

// Restore implements Object.
func (g *registry) Restore(snapshot []byte) (replace func(), err error) {
	r := protocol.Reader{Rest: snapshot}
	var names []string
	for len(r.Rest) > 0 && r.Err == nil {
		names = append(names, r.Text())
	}
	return func() { g.names = names }, r.Err
}
