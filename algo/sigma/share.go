package sigma

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// # Groups
//
// Holders of one group share the lock. A server supports a set of owners that share one group, and their session
// lasts until all of them have left. A request that does not share closes the session to those behind it. A mutex is
// the case in which nobody shares.

// hashed marks the code of a group whose name is longer than a code.
const hashed = 1 << 61

// kept marks the code of a client that is alone, and wants to hear who waits: a group of its own.
const kept = 1 << 60

// share is a group as servers compare it: a name of up to seven bytes is itself, of a longer one it is a hash.
// 0 is no group: its holder is alone.
func share(g protocol.Group) (code uint64) {
	if g.Exclusive() {
		return 0
	}
	if len(g) <= 7 {
		for _, b := range []byte(g) {
			code = code<<8 | uint64(b)
		}
		return code
	}
	h := fnv.New64a()
	h.Write([]byte(g))
	return hashed | h.Sum64()>>3
}

// named is what people are shown of a group: its name where that is the code, else ~ and the end of the hash. No name
// of a group that is shown as it is looks like that: it would be too long.
func named(code uint64) string {
	if alone(code) {
		return ""
	}
	name := strings.TrimLeft(string(binary.BigEndian.AppendUint64(make([]byte, 0, 8), code)), "\x00")
	if _, err := protocol.ParseGroups(name); err != nil || code&hashed != 0 { // a client may have made up any code
		return fmt.Sprintf("~%08x", uint32(code))
	}
	return name
}

// names is what people are shown of a choice.
func names(groups choice) string {
	text := named(groups[0])
	for _, g := range groups[1:] {
		if g != 0 {
			text += "," + named(g)
		}
	}
	return text
}

// keeps reports whether code is that of one client.
func keeps(code uint64) bool { return code&(hashed|kept) == kept }

// alone reports whether a code is that of nobody who shares.
func alone(code uint64) bool { return code == 0 || keeps(code) }

// shared are the owners that share, of whom Server.owner is the earliest, and their group.
type shared struct {
	group  uint64
	others []entry // by client, beside Server.owner
	// rest is the largest token that clients outside the group may have had when the session began. Tokens that
	// are recorded later are those of the group.
	rest uint64
	// began is when the session did, as clients count time: a request that was made before it shares it even where
	// it arrives later.
	began uint64
	asked int // how many have been asked by CHECK, of all but the last turn: see Server.check
}

// group is that of the owners, 0: the owner is alone.
func (s *Server) group() uint64 {
	if s.queue == nil || s.queue.shared == nil {
		return 0
	}
	return s.queue.shared.group
}

// sharers are the owners beside the earliest one, by client.
func (s *Server) sharers() []entry {
	if s.queue == nil || s.queue.shared == nil {
		return nil
	}
	return s.queue.shared.others
}

// owners yields all owners, the earliest one first.
func (s *Server) owners() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		if s.owner == (entry{}) || !yield(s.owner) {
			return
		}
		for _, e := range s.sharers() {
			if !yield(e) {
				return
			}
		}
	}
}

// crowd is how many of those who share with the earliest owner are asked by CHECK at once. More are asked in turns.
const crowd = 64

// turns is after how many CHECKs all owners have been asked.
func (s *Server) turns() int { return max(1, (len(s.sharers())+crowd-1)/crowd) }

// check asks owners whether they still want the support: all of them, or the next of many, each about once in the period
// (lines 48-49). To ask 10 000 at once would hold up everybody else.
func (s *Server) check(out *protocol.Out[Message]) {
	some, from := s.sharers(), 0
	if s.turns() > 1 {
		if from = s.queue.shared.asked; from >= len(some) { // they were more
			from = 0
		}
		end := min(from+crowd, len(some))
		s.queue.shared.asked = end % len(some)
		some = some[from:end]
	}
	if from == 0 {
		out.Send(s.owner.client, Message{Kind: Check, Time: s.owner.time})
	}
	for _, e := range some {
		out.Send(e.client, Message{Kind: Check, Time: e.time})
	}
}

// owned is what the server keeps of its support for client c; nil: it supports somebody else.
func (s *Server) owned(c protocol.ID) *entry {
	if s.owner.client == c {
		return &s.owner
	}
	return s.sharer(c)
}

func (s *Server) sharer(c protocol.ID) *entry {
	if i, found := slices.BinarySearchFunc(s.sharers(), c, entry.compare); found {
		return &s.sharers()[i]
	}
	return nil
}

// compare orders entries by client.
func (e entry) compare(c protocol.ID) int { return cmp.Compare(e.client, c) }

// supports reports whether r is the request of an owner.
func (s *Server) supports(r request) bool {
	e := s.owned(r.client)
	return e != nil && e.request == r
}

// join makes e one of the owners, who share.
func (s *Server) join(e entry) {
	if s.owner == (entry{}) {
		s.owner = e
		return
	}
	if e.before(s.owner.request) {
		s.owner, e = e, s.owner
	}
	i, _ := slices.BinarySearchFunc(s.sharers(), e.client, entry.compare)
	s.queue.shared.others = slices.Insert(s.sharers(), i, e)
}

// part takes the support of an owner back.
func (s *Server) part(e entry, out *protocol.Out[Message]) {
	if s.group() == 0 {
		s.owner = entry{}
		return
	}
	out.Parted(e.client, e.time)
	if s.owner.client == e.client {
		if len(s.sharers()) == 0 {
			s.owner, s.queue.shared = entry{}, nil
			return
		}
		e = slices.MinFunc(s.sharers(), func(e, f entry) int { return e.stamp().Compare(f.stamp()) })
		s.owner = e
	}
	i, _ := slices.BinarySearchFunc(s.sharers(), e.client, entry.compare)
	s.queue.shared.others = slices.Delete(s.sharers(), i, i+1)
}

// shares reports whether a request comes with the session, whoever waits: it was made before that began.
func (s *Server) shares(w waiter) bool {
	g := s.group()
	return g != 0 && w.takes(g) && w.time <= s.queue.shared.began
}

// admit supports whoever comes next of those who wait: where there is no owner the first one, and then a session
// begins for all who wait for its group; where there are owners, those who share with them, up to the first
// that does not.
//
// last is how the owner before left.
func (s *Server) admit(last farewell, now int64, out *protocol.Out[Message]) {
	switch {
	case s.owner != (entry{}):
		s.letIn(false, now, out)
	case s.queue.waiters[0].group() == 0:
		s.grant(s.queue.remove(0).entry, last, now, out)
	default:
		s.begin(s.queue.waiters[0].group(), now, out)
	}
}

// begin begins a session of a group.
func (s *Server) begin(group uint64, now int64, out *protocol.Out[Message]) {
	// A clock that is ahead of theirs must not keep the session open until theirs have come so far.
	newest := s.owner.time
	for _, w := range s.queue.waiters {
		newest = max(newest, w.time)
	}
	s.queue.shared = &shared{
		group: group, rest: s.others(sideOf(group).client, now),
		began: min(uint64(now), newest+uint64(2*s.terms.Value().eps)),
	}
	s.letIn(true, now, out)
}

// letIn supports those who wait for the group of the owners: all as their session begins, later those before whom
// nobody waits who does not share.
func (s *Server) letIn(begins bool, now int64, out *protocol.Out[Message]) {
	g := s.group()
	if g == 0 {
		return
	}
	var all []entry
	for i := 0; i < s.queue.len() && (begins || s.queue.waiters[i].takes(g)); {
		if s.queue.waiters[i].takes(g) {
			all = append(all, s.queue.remove(i).entry)
		} else {
			i++
		}
	}
	for _, e := range all {
		s.grant(e, farewell{}, now, out)
	}
}

// downgrade lets those of group g in beside the client, who is inside alone.
func (c *Client) downgrade(g protocol.Group, out *protocol.Out[Message]) {
	if !protocol.Group(c.groups).Exclusive() || g.Exclusive() {
		return
	}
	c.groups, c.relaxed = protocol.Groups(g), true
	out.Broadcast(c.lower())
}

// lower tells a server which group the client wants from now on, or is in.
func (c *Client) lower() Message {
	return Message{Kind: Downgrade, Time: c.time, Group: c.wants()[0], After: c.head}
}

// narrow makes the group in which most servers support the client the only one that it wants. It gives back what it has
// in others. With all it tells each server that does not support it in that group, otherwise only those.
func (c *Client) narrow(all bool, out *protocol.Out[Message]) {
	g, _ := c.favourite()
	c.groups = protocol.Groups(g)
	for j := range c.servers {
		s := &c.servers[j]
		switch {
		case s.serves(c.code(g)):
			continue
		case s.supports():
			s.given, s.response = s.serial, response{}
		case !all:
			continue
		}
		out.Send(protocol.ID(j), c.lower())
	}
}

// favourite is the group in which most servers support the client, and how many do. Of two it is the one that the client
// likes less: a server at which nobody was gave the other one.
func (c *Client) favourite() (group protocol.Group, supporters int) {
	for g := range c.groups.All() {
		code := c.code(g)
		if k := c.count(func(s *view) bool { return s.serves(code) }); k >= supporters {
			group, supporters = g, k
		}
	}
	return group, supporters
}

// hopes reports whether the client may have a quorum in one group.
func (c *Client) hopes() bool {
	for g := range c.groups.All() {
		code := c.code(g)
		if c.count(func(s *view) bool { return s.serves(code) || s.awaited() && !s.refused }) >= c.m {
			return true
		}
	}
	return false
}

// takes reports whether the client wants a support that was given in a group. One of who was alone is as good as any.
func (c *Client) takes(group uint64) bool {
	groups := c.wants()
	return alone(group) || slices.Contains(groups[:], group)
}

// serves reports whether we count the server for a group. A support that was given to who was alone counts for the group
// that it came down to.
func (s *view) serves(group uint64) bool {
	return s.supports() && (s.group == group || alone(s.group))
}

// onDowngrade: a client wants this group only, or is in it. If it is inside alone, and the owner, a session begins
// for it and for all who wait for that group. If it is an owner in another group it gives that support back. If its
// request waits here it does so for this group.
func (s *Server) onDowngrade(own *entry, stored entry, m Message, now int64, out *protocol.Out[Message]) {
	w := waiter{entry: stored, mode: m.Group, head: m.After}
	switch {
	case stored == (entry{}), keeps(m.Group):
	case own == nil:
		if known := s.queue.waiters[s.queue.find(stored.client)]; known.groups() != w.groups() {
			s.wait(w, now, out)
		}
	case s.group() == m.Group:
	case !alone(s.group()):
		s.yield(w, now, out)
	default:
		if s.queue == nil {
			s.queue = new(queue)
		}
		if s.group() != 0 { // its own
			out.Parted(stored.client, stored.time)
		}
		out.Joined(stored.client, stored.time, named(m.Group))
		s.begin(m.Group, now, out)
		if s.queue.len() > 0 {
			s.tell(stored, out)
		}
	}
}

// A choice is up to three groups of which a client wants any one, in order of preference; 0 first: it is alone.
type choice [3]uint64

// shortlist leaves out of several groups those of one who is alone, which are never needed, and what is more than a choice.
func shortlist(wanted protocol.Groups) protocol.Groups {
	if wanted.Len() == 1 {
		return wanted
	}
	var some []string
	for g := range wanted.All() {
		if !g.Exclusive() && len(some) < len(choice{}) {
			some = append(some, string(g))
		}
	}
	if len(some) == 0 {
		first, _, _ := strings.Cut(string(wanted), ",")
		return protocol.Groups(first)
	}
	return protocol.Groups(strings.Join(some, ","))
}

// of reports whether a client may name the groups: the code of one that keeps is that one's only.
func (groups choice) of(client protocol.ID) bool {
	for i, g := range groups {
		if keeps(g) && (i > 0 || g != keeper(client)) {
			return false
		}
	}
	return true
}

// keeper is the code of a client that keeps.
func keeper(client protocol.ID) uint64 { return kept | uint64(client)%kept }

// wants is what the client wants, or the group that it is in.
func (c *Client) wants() (groups choice) {
	k := 0
	for g := range c.groups.All() {
		groups[k] = c.code(g)
		k++
	}
	return groups
}

// code is a group of the client as servers know it.
func (c *Client) code(g protocol.Group) uint64 {
	if g.Keeps() {
		return keeper(c.id)
	}
	return share(g)
}

// spare is how many tokens the client wants beside the one that it enters with.
func (c *Client) spare() uint64 {
	if protocol.Group(c.groups).Keeps() {
		return protocol.KeptTokens - 1
	}
	return 0
}

// sideOf stands for a group in places where a request stands for a client that is alone.
func sideOf(group uint64) request { return request{client: protocol.ID(1<<63 | group)} }

// side is whom a server said it supports: one request, or those of a group.
func (s *view) side() request {
	if s.group != 0 {
		return sideOf(s.group)
	}
	return s.request
}
