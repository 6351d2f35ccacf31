package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A Peer is a member: the slot table is a list of them, in the order of their ids.
type Peer = transport.Slot

// A table is the slot table in use. It is never changed, but replaced.
type table struct {
	transport.Table
	ctx      context.Context // ends when the table is replaced
	replaced context.CancelFunc
}

var (
	errOldTable = errors.New("the slot table is older than the peer's")
	errMoved    = errors.New("the slot table was replaced")
)

// A slotTable is the slot table of a node, and what it knows of newer ones. A table is never changed, but replaced.
type slotTable struct {
	n   *Node
	now atomic.Pointer[table]

	replacing sync.Mutex // one table is replaced at a time; taken before the mutex of sessions

	mu sync.Mutex
	// newer are the epochs of which a member has warned that others have them, the last of many. It is the epoch
	// that is remembered and not the highest one, which anybody may make up.
	newer [16]uint64
	next  int
}

// Table is the slot table in use, and its epoch.
func (n *Node) Table() (epoch uint64, peers []Peer) {
	t := n.table.now.Load()
	return t.Epoch, slices.Clone(t.Slots)
}

// Epoch is that of the slot table that this node has now.
func (n *Node) Epoch() uint64 { return n.table.epoch() }

// checkTable says what is wrong with a slot table, whoever made it.
func (c *Config) checkTable(epoch uint64, peers []Peer) error {
	for i, p := range peers {
		if c.Dial != nil || protocol.ID(i) == c.ID { // any text; where it listens concerns nobody else
			continue
		}
		if err := transport.CheckAddr(p.Addr); err != nil {
			return fmt.Errorf("member %s: %w", p.Name, err)
		}
	}
	return transport.Table{Epoch: epoch, Slots: peers}.Check()
}

// Names are the names of members.
func Names(peers []Peer) []string {
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = p.Name
	}
	return names
}

// memberNames is what the two ends must have in common of their slot tables.
func memberNames(peers []Peer) string { return strings.Join(Names(peers), ",") }

// SetTable replaces the slot table by one of a higher epoch and the same names.
// Other names are refused, because quorums of two sets of members need not have a
// member in common. Connections to addresses that have changed end, and their
// sessions go on at the new ones, if that is the same process.
//
// Who dials need not be told: a member that has a newer table refuses the older one
// with its own, which the dialing end, a client or another member, then adopts. Who is dialed adopts nothing.
func (n *Node) SetTable(epoch uint64, peers []Peer) error {
	st := &n.table
	if err := n.c.checkTable(epoch, peers); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	st.replacing.Lock()
	defer st.replacing.Unlock()
	old := st.now.Load()
	switch {
	case memberNames(peers) != memberNames(old.Slots):
		return fmt.Errorf("node: the members cannot change from %s to %s: quorums of the two sets need not intersect",
			memberNames(old.Slots), memberNames(peers))
	case epoch < old.Epoch:
		return fmt.Errorf("node: the slot table of epoch %d cannot replace that of epoch %d", epoch, old.Epoch)
	case epoch == old.Epoch && slices.Equal(peers, old.Slots):
		return nil
	case epoch == old.Epoch:
		return fmt.Errorf("node: two slot tables have epoch %d: a new one needs a higher epoch", epoch)
	}
	st.replace(epoch, peers)
	old.replaced()
	for id, p := range peers {
		if p.Addr == old.Slots[id].Addr {
			continue
		}
		st.n.c.Log.Info("slot moved", "server", p.Name, "from", old.Slots[id].Addr, "to", p.Addr, "epoch", epoch)
		st.n.sessions.moved(protocol.ID(id))
	}
	return nil
}

func (st *slotTable) replace(epoch uint64, peers []Peer) {
	t := &table{Table: transport.Table{Epoch: epoch, Slots: slices.Clone(peers)}}
	t.ctx, t.replaced = context.WithCancel(st.n.ctx)
	st.now.Store(t)
}

// peer is the slot of a member.
func (st *slotTable) peer(id protocol.ID) Peer { return st.now.Load().Slots[id] }

func (st *slotTable) epoch() uint64 { return st.now.Load().Epoch }

// tooOld is the refusal of an epoch, nil if it is none: this member has a newer table,
// and who still uses the old one may be talking to a slot where it is no more. A newer
// epoch than this member's is none of its concern: the one who has it knows better
// where everybody is, and has the same names.
func (st *slotTable) tooOld(epoch uint64) *transport.Refuse {
	t := st.now.Load()
	if epoch >= t.Epoch {
		return nil
	}
	return &transport.Refuse{
		Code: transport.OldTable, What: "epoch of the slot table",
		Mine: fmt.Sprint(t.Epoch), Yours: fmt.Sprint(epoch), Table: t.Table,
	}
}

// noteNewer warns, once an epoch, that others have a newer table than this member.
func (st *slotTable) noteNewer(epoch uint64, from net.Conn) {
	mine := st.epoch()
	if epoch <= mine {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if slices.Contains(st.newer[:], epoch) {
		return
	}
	if st.n.book.warn(addressOf(from), "another process has a newer slot table than this one",
		"from", from.RemoteAddr(), "epoch", epoch, "mine", mine) {
		st.newer[st.next] = epoch
		st.next = (st.next + 1) % len(st.newer)
	}
}

// adopt takes over the table of a member that this process dials, and that refuses the one here. The error wraps
// errOldTable: only the connection is over.
func (st *slotTable) adopt(from protocol.ID, r transport.Refuse) error {
	if !st.n.roles.dialsTo(from) {
		return fmt.Errorf("%w: %w", errOldTable, r)
	}
	if have := len(r.Table.Slots); have != len(st.n.roles.members) {
		return fmt.Errorf("%w: %w; its table has %d members, not %d", errOldTable, r, have, len(st.n.roles.members))
	}
	if err := st.n.SetTable(r.Table.Epoch, r.Table.Slots); err != nil {
		return fmt.Errorf("%w: %w; its table cannot be adopted: %w", errOldTable, r, err)
	}
	return fmt.Errorf("%w: %w", errOldTable, r)
}
