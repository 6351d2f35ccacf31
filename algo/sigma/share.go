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
	return g != 0 && w.group() == g && w.time <= s.queue.shared.began
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
	for i := 0; i < s.queue.len() && (begins || s.queue.waiters[i].group() == g); {
		if s.queue.waiters[i].group() == g {
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
	if !c.group.Exclusive() || g.Exclusive() {
		return
	}
	c.group, c.relaxed = g, true
	out.Broadcast(c.lower())
}

// lower tells a server in which group the client is.
func (c *Client) lower() Message { return Message{Kind: Downgrade, Time: c.time, Token: c.wants()} }

// onDowngrade: a client that is inside, and was alone, shares with those of a group. If it is the owner a session begins
// for it and for all who wait for that group. If its request waits here it does not wait for its own group.
func (s *Server) onDowngrade(own *entry, stored entry, group uint64, now int64, out *protocol.Out[Message]) {
	switch {
	case stored == (entry{}):
	case own == nil:
		if alone(s.queue.waiters[s.queue.find(stored.client)].group()) {
			s.wait(waiter{entry: stored, mode: group}, now, out)
		}
	case alone(s.group()):
		if s.queue == nil {
			s.queue = new(queue)
		}
		if s.group() != 0 { // its own
			out.Parted(stored.client, stored.time)
		}
		out.Joined(stored.client, stored.time, named(group))
		s.begin(group, now, out)
		if s.queue.len() > 0 {
			s.tell(stored, out)
		}
	}
}

// wants is the group that the client wants, or is in; 0: it is alone.
func (c *Client) wants() uint64 {
	switch {
	case c.group == "":
		return 0
	case c.group.Keeps():
		return kept | uint64(c.id)%kept
	}
	return share(c.group)
}

// spare is how many tokens the client wants beside the one that it enters with.
func (c *Client) spare() uint64 {
	if c.group.Keeps() {
		return protocol.KeptTokens - 1
	}
	return 0
}

// sideOf stands for a group in places where a request stands for a client that is alone.
func sideOf(group uint64) request { return request{client: protocol.ID(1<<63 | group)} }

// side is whom a server said it supports: one request, or those of a group.
func (s *view) side() request {
	if s.token != 0 && s.serial == 0 {
		return sideOf(s.token)
	}
	return s.request
}
