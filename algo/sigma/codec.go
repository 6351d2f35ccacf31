package sigma

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// most bounds all times, tokens and numbers of supports in messages, so that a sum of two
// fits into 64 bits with a sign. In ns it is the year 2116.
const most = 1 << 62

func (m Message) fields(c *protocol.Codec) Message {
	m.kind(c)
	if m.Kind != Draining {
		protocol.Upto(c, &m.Time, most)
	}
	switch m.Kind {
	case Request: // the stage of one that wants a group is three more, and of one that wants any of several six more
		m.serial(c, c.To, c.From)
		c.Want(m.Serial <= most/2) // the server counts on from there
		const stages = Inside + 1
		switch {
		case m.Token != 0:
			m.Stage += 2 * stages
		case m.Group != 0:
			m.Stage += stages
		}
		protocol.Upto(c, &m.Stage, 3*stages-1)
		if m.Stage >= stages {
			m.group(c)
		}
		if m.Stage >= 2*stages {
			protocol.Upto(c, &m.Token, most-1)
			c.Want(m.Token != 0)
			protocol.Upto(c, &m.Inc, most-1)
		}
		m.Stage %= stages
		m.head(c)
	case Yield:
		m.serial(c, c.To, c.From)
		m.head(c)
	case Response:
		c.AnyID(&m.Owner)
		protocol.Upto(c, &m.Inc, most)
		if !c.Moving() || m.Owner == c.To && m.Serial != 0 { // a support of the reader's
			m.serial(c, c.From, c.To)
		}
		if m.Group == 0 || m.Serial != 0 {
			protocol.Upto(c, &m.Token, most)
		}
		if m.Group != 0 {
			m.group(c)
		}
	case Release:
		if m.After != 0 {
			protocol.Upto(c, &m.Token, most)
		}
	case Transfer:
		c.AnyID(&m.Owner)
	case Promise:
		c.AnyID(&m.Owner)
		protocol.Upto(c, &m.After, most)
		protocol.Upto(c, &m.Inc, most)
		m.serial(c, c.From, c.To)
		protocol.Upto(c, &m.Token, most)
	case SetToken:
		m.serial(c, c.To, c.From)
		protocol.Upto(c, &m.Token, most)
	case Downgrade:
		m.group(c)
		protocol.Upto(c, &m.After, protocol.MaxHeadStart)
	case Recorded, Refused:
		protocol.Upto(c, &m.Token, most)
	case Recall:
		protocol.Upto(c, &m.Inc, most)
		m.serial(c, c.From, c.To)
	case Draining:
		protocol.Upto(c, &m.Inc, most)
	}
	return m
}

// kind visits the kind, which in the encoding tells more of those up to PROMISE: what a RESPONSE says beside, whether a
// RELEASE is that of a holder, and whether there is a head start.
func (m *Message) kind(c *protocol.Codec) {
	const (
		wanted     = Promise + 1 + iota // RESPONSE, of a group
		ended                           // RELEASE
		followed                        // RESPONSE, of nobody who shares
		grouped                         // RESPONSE, of a group
		early                           // REQUEST
		earlyYield                      // YIELD
		transfer
	)
	k := m.Kind
	switch {
	case k == Response && m.Stage == Wanted:
		k = wanted
	case k == Release && m.After != 0:
		k = ended
	case k == Response && m.After != 0:
		k = followed
	case k == Response && m.Group != 0:
		k = grouped
	case k == Request && m.After != 0:
		k = early
	case k == Yield && m.After != 0:
		k = earlyYield
	case k == Transfer:
		k = transfer
	}
	protocol.Upto(c, &k, transfer)
	if !c.Reading() {
		return
	}
	switch m.Kind = k; k {
	case wanted:
		m.Kind, m.Stage, m.Group = Response, Wanted, 1
	case ended:
		m.Kind, m.After = Release, 1
	case followed:
		m.Kind, m.After = Response, 1
	case grouped:
		m.Kind, m.Group = Response, 1
	case early:
		m.Kind, m.After = Request, 1
	case earlyYield:
		m.Kind, m.After = Yield, 1
	case transfer:
		m.Kind = Transfer
	}
}

// group visits the code of a group, where there is one.
func (m *Message) group(c *protocol.Codec) {
	protocol.Upto(c, &m.Group, most-1)
	c.Want(m.Group != 0)
}

// head visits a head start, where there is one. No server reads more than a minute.
func (m *Message) head(c *protocol.Codec) {
	if m.After != 0 {
		protocol.Upto(c, &m.After, protocol.MaxHeadStart)
		c.Want(m.After != 0)
	}
}

func (m *Message) serial(c *protocol.Codec, server, client protocol.ID) {
	c.Count(&m.Serial, serials(server, client, m.Time))
	c.Want(m.Serial <= most)
}

// serials counts the supports of one request at one server.
func serials(server, client protocol.ID, time uint64) protocol.Counter {
	return protocol.Counter{Member: server, User: client, Time: time}
}

// fits reports whether a process of n members can have sent m: each request has a time, and
// owners are clients.
func fits(m Message, n int, _ bool) bool {
	switch {
	case m.Kind == Draining:
		return true
	case (m.Kind == Response || m.Kind == Promise || m.Kind == Transfer) && m.Owner < protocol.ID(n):
		return false
	case m.Kind == Promise && m.After == 0:
		return false
	}
	return m.Time > 0
}

// ints counts the timestamp and the fields that are set.
func ints(m Message) int {
	k := 1
	for _, v := range [...]uint64{uint64(m.Owner), m.Inc, m.Serial, m.Token, m.Group, m.After} {
		if v != 0 {
			k++
		}
	}
	return k
}

// text is NAME(timestamp) or RESPONSE(owner@timestamp), then the fields that are
// set. DRAINING is about no request.
func text(m Message) string {
	var b strings.Builder
	switch m.Kind {
	case Response:
		fmt.Fprintf(&b, "RESPONSE(#%d@%d", m.Owner, m.Time)
	case Draining:
		return fmt.Sprintf("DRAINING(inc=%d)", m.Inc)
	default:
		fmt.Fprintf(&b, "%s(%d", messages[m.Kind].Name, m.Time)
	}
	switch {
	case m.Kind == Promise:
		fmt.Fprintf(&b, " after #%d@%d", m.Owner, m.After)
	case m.Kind == Transfer:
		fmt.Fprintf(&b, " to #%d", m.Owner)
	case m.After != 0 && (m.Kind == Request || m.Kind == Yield || m.Kind == Downgrade):
		fmt.Fprintf(&b, " head=%d", m.After)
	case m.After != 0:
		b.WriteString(" ended")
	}
	groups := choice{m.Group}
	if m.Kind == Request {
		groups[1], groups[2], m.Token, m.Inc = m.Token, m.Inc, 0, 0
	}
	for _, f := range [...]struct {
		name  string
		value uint64
	}{{"inc", m.Inc}, {"serial", m.Serial}, {"token", m.Token}} {
		if f.value != 0 {
			fmt.Fprintf(&b, " %s=%d", f.name, f.value)
		}
	}
	if m.Group != 0 {
		fmt.Fprintf(&b, " group=%s", names(groups))
	}
	switch {
	case m.Kind == Response && m.Stage == Wanted:
		b.WriteString(" wanted")
	case m.Stage == Again:
		b.WriteString(" again")
	case m.Stage == Inside:
		b.WriteString(" inside")
	}
	return b.String() + ")"
}

// Show tells a client's request and what it knows of each server.
func (c *LiteralClient) Show() string { return showClient(c.section, c.timestamp, c.resp) }

// Show tells a client's request and what it knows of each server.
func (c *Client) Show() string {
	known := make([]request, len(c.servers))
	for j, s := range c.servers {
		known[j] = s.request
	}
	return showClient(c.section, c.time, known)
}

// Show tells whom a server supports and who waits there.
func (s *LiteralServer) Show() string { return showServer(s) }

// Show tells whom a server supports and who waits there.
func (s *Server) Show() string {
	if s.draining {
		return showServer(s) + ", grants nothing new"
	}
	return showServer(s)
}

func showClient(s protocol.Section, time uint64, known []request) string {
	if s == protocol.InRem {
		return ""
	}
	text := fmt.Sprintf("request @%d", time)
	sep := "; heard of "
	for j, r := range known {
		if r != (request{}) {
			text += fmt.Sprintf("%s#%d: %v", sep, j, r)
			sep = ", "
		}
	}
	return text
}

func showServer(s server) string {
	owners, queue := s.table()
	if len(owners) == 0 {
		return "supports nobody"
	}
	text := ""
	for i, r := range owners {
		text += [...]string{"supports ", ", "}[min(i, 1)] + r.String()
	}
	for i, r := range queue {
		text += [...]string{"; waiting ", ", "}[min(i, 1)] + r.String()
	}
	return text
}

// String is the request in texts for people: see protocol.Algorithm.Text.
func (r request) String() string {
	if r == (request{}) {
		return "nobody"
	}
	return fmt.Sprintf("#%d@%d", r.client, r.time)
}

// Waiting implements protocol.Queuer.
func (s *Server) Waiting() int { return s.queue.len() }

// Inspect implements protocol.Inspector.
func (c *Client) Inspect() (st protocol.Standing) {
	if c.section != protocol.InCrit {
		return st
	}
	st.Since = int64(c.time)
	st.Supports = make([]protocol.ID, 0, len(c.servers))
	for j := range c.servers {
		if c.servers[j].supports() {
			st.Supports = append(st.Supports, protocol.ID(j))
		}
	}
	return st
}

// Inspect implements protocol.Inspector. A client of this form forgets its answers when it
// enters.
func (s *LiteralServer) Inspect() protocol.Standing { return inspect(s) }

// Inspect implements protocol.Inspector.
func (s *Server) Inspect() protocol.Standing {
	st := inspect(s)
	group := named(s.group())
	for i := range st.Holders {
		h := &st.Holders[i]
		switch h.Group = group; s.largest {
		case 0:
		case h.User:
			h.Token = s.tokens[0]
		case s.fenced(h.User): // the largest of all that share: each has at least the time of its request
			if h.Token = uint64(h.Since); keeps(s.group()) {
				h.Token -= min(h.Token, protocol.KeptTokens-1)
			}
		}
	}
	slices.SortFunc(st.Holders, func(r, q protocol.Request) int {
		return cmp.Or(cmp.Compare(r.Since, q.Since), cmp.Compare(r.User, q.User))
	})
	for i, w := range s.queue.all() {
		st.Waiters[i].Group = names(w.groups())
	}
	return st
}

// inspect is what a server of either form knows.
func inspect(s server) (st protocol.Standing) {
	owners, queue := s.table()
	for _, r := range owners {
		st.Holders = append(st.Holders, protocol.Request{User: r.client, Since: int64(r.time)})
	}
	for _, r := range queue {
		st.Waiters = append(st.Waiters, protocol.Request{User: r.client, Since: int64(r.time)})
	}
	return st
}

func (r *request) fields(c *protocol.Codec) {
	c.AnyID(&r.client)
	c.Uint(&r.time)
}

// State implements protocol.Process.
func (c *LiteralClient) State(v *protocol.Codec) {
	v.Uint(&c.timestamp)
	protocol.Upto(v, &c.section, protocol.InCrit)
	for j := range c.resp {
		c.resp[j].fields(v)
	}
}

// State implements protocol.Process.
func (s *LiteralServer) State(c *protocol.Codec) {
	s.owner.fields(c)
	for i := range protocol.List(c, &s.queue) {
		s.queue[i].fields(c)
	}
}

// State implements protocol.Process.
func (c *Client) State(v *protocol.Codec) {
	protocol.Upto(v, &c.section, protocol.InLost)
	v.Uints(&c.head, &c.time, &c.last, &c.clock, &c.token, &c.rounds)
	v.Bools(&c.once, &c.resting, &c.relaxed)
	v.Uint(&c.later)
	protocol.Text(v, &c.groups)
	v.Want(c.groups.Len() <= len(choice{}))
	if c.direct != nil {
		c.direct.ended.fields(v)
		v.Uint(&c.direct.token)
	}
	if v.Reading() {
		c.backOff, c.patience = c.delay, safetyDelay*c.delay
	}
	counts := !v.Moving() || c.time != 0 && c.section != protocol.InLost
	for j := range c.servers {
		k, s := serials(protocol.ID(j), c.id, c.time), &c.servers[j]
		v.Uint(&s.inc)
		if counts {
			v.Count(&s.given, k)
		}
		s.fields(v)
		if counts && (!v.Moving() || s.serial != 0) {
			v.Count(&s.serial, k)
		}
		v.Uints(&s.token, &s.group)
		v.Bools(&s.draining, &s.refused, &s.asked, &s.recorded)
		if c.promise != 0 {
			v.Bools(&s.promised, &s.early)
		}
		if c.direct != nil {
			v.AnyID(&c.direct.next[j])
		}
	}
}

// State implements protocol.Process.
func (s *Server) State(c *protocol.Codec) {
	c.Bool(&s.draining)
	c.Uint(&s.inc)
	s.visit(c, &s.owner)
	c.AnyID(&s.largest)
	c.Uints(&s.tokens[0], &s.tokens[1])
	waiters, sharers, session := s.queue.all(), s.sharers(), shared{}
	if s.group() != 0 {
		session = *s.queue.shared
	}
	for i := range protocol.List(c, &waiters) {
		w := &waiters[i]
		s.visit(c, &w.entry)
		g, in := w.groups(), w.inside()
		if protocol.Upto(c, &g[0], most-1); g[0] != 0 {
			if protocol.Upto(c, &g[1], most-1); g[1] != 0 {
				protocol.Upto(c, &g[2], most-1)
			}
		}
		protocol.Upto(c, &w.head, protocol.MaxHeadStart)
		c.Bool(&in)
		next := w.promised()
		if i == 0 && s.terms.Value().promise != 0 {
			c.Bool(&next)
		}
		if c.Reading() {
			*w = newWaiter(w.entry, g, w.head, in)
			if next {
				w.mode |= promised
			}
		}
		c.Want(i == 0 || waiters[i-1].compare(*w) < 0) // in order, and none twice
	}
	if protocol.Upto(c, &session.group, most); session.group != 0 {
		c.Uints(&session.rest, &session.began)
	}
	for i := range protocol.List(c, &sharers) {
		s.visit(c, &sharers[i])
		c.Want(s.owner.before(sharers[i].request) && (i == 0 || sharers[i-1].client < sharers[i].client))
	}
	c.Want(session.group != 0 || len(sharers) == 0)
	if c.Reading() {
		s.queue.clear()
		for _, w := range waiters {
			s.insert(w)
		}
		if session.group != 0 {
			if s.queue == nil {
				s.queue = new(queue)
			}
			s.queue.shared = &shared{group: session.group, others: slices.Clone(sharers), rest: session.rest, began: session.began}
		}
	}
}

// visit visits an entry, whose numbers count where there is one.
func (s *Server) visit(c *protocol.Codec, e *entry) {
	if e.fields(c); !c.Moving() || *e != (entry{}) {
		c.Count(&e.serial, serials(protocol.ID(s.id), e.client, e.time))
	}
}
