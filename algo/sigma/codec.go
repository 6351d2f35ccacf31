package sigma

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind != Draining {
		b = binary.AppendUvarint(b, m.Time)
	}
	switch m.Kind {
	case Request:
		b = append(binary.AppendUvarint(b, m.Serial), byte(m.Stage))
	case Yield:
		b = binary.AppendUvarint(b, m.Serial)
	case Response:
		b = binary.AppendUvarint(b, uint64(m.Owner))
		b = binary.AppendUvarint(b, m.Inc)
		b = binary.AppendUvarint(b, m.Serial)
		b = binary.AppendUvarint(b, m.Token)
	case SetToken:
		b = binary.AppendUvarint(b, m.Serial)
		b = binary.AppendUvarint(b, m.Token)
	case Recorded, Refused:
		b = binary.AppendUvarint(b, m.Token)
	case Recall:
		b = binary.AppendUvarint(b, m.Inc)
		b = binary.AppendUvarint(b, m.Serial)
	case Draining:
		b = binary.AppendUvarint(b, m.Inc)
	}
	return b
}

// most bounds all times, tokens and numbers of supports in messages, so that a sum of two
// fits into 64 bits with a sign. In ns it is the year 2116.
const most = 1 << 62

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	number := func() uint64 { return r.Max(most) }
	m.Kind = uint8(r.Max(uint64(Draining)))
	if m.Kind != Draining {
		m.Time = number()
	}
	switch m.Kind {
	case Request:
		m.Serial = number()
		m.Stage = Stage(r.Max(uint64(Inside)))
	case Yield:
		m.Serial = number()
	case Response:
		m.Owner = protocol.ID(r.Uint())
		m.Inc = number()
		m.Serial = number()
		m.Token = number()
	case SetToken:
		m.Serial = number()
		m.Token = number()
	case Recorded, Refused:
		m.Token = number()
	case Recall:
		m.Inc = number()
		m.Serial = number()
	case Draining:
		m.Inc = number()
	}
	return m, r.Rest, r.Err
}

// fits reports whether a process of n members can have sent m: each request has a time, and
// owners are clients.
func fits(m Message, n int, _ bool) bool {
	switch {
	case m.Kind == Draining:
		return true
	case m.Kind == Response && m.Owner < protocol.ID(n):
		return false
	}
	return m.Time > 0
}

// ints counts the timestamp and the fields that are set.
func ints(m Message) int {
	k := 1
	for _, v := range [...]uint64{uint64(m.Owner), m.Inc, m.Serial, m.Token} {
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
	for _, f := range [...]struct {
		name  string
		value uint64
	}{{"inc", m.Inc}, {"serial", m.Serial}, {"token", m.Token}} {
		if f.value != 0 {
			fmt.Fprintf(&b, " %s=%d", f.name, f.value)
		}
	}
	switch m.Stage {
	case Again:
		b.WriteString(" again")
	case Inside:
		b.WriteString(" inside")
	}
	return b.String() + ")"
}

// show tells whom a server supports and who waits there, and of a client its
// request and what it knows of each server.
func show(p protocol.Process[Message]) string {
	switch p := p.(type) {
	case *LiteralClient:
		return showClient(p.section, p.timestamp, p.resp)
	case *Client:
		known := make([]request, len(p.resp))
		for j, r := range p.resp {
			known[j] = r.request
		}
		return showClient(p.section, p.time, known)
	case *Server:
		if p.draining {
			return showServer(p) + ", grants nothing new"
		}
	}
	return showServer(p)
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

func showServer(p protocol.Process[Message]) string {
	owner, queue := table(p)
	if owner == (request{}) {
		return "supports nobody"
	}
	text := "supports " + owner.String()
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

func (r request) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.client)), r.time)
}

func readRequest(r *protocol.Reader) request {
	return request{protocol.ID(r.Uint()), r.Uint()}
}

func (e entry) append(b []byte) []byte {
	return binary.AppendUvarint(e.request.append(b), e.serial)
}

func readEntry(r *protocol.Reader) entry {
	return entry{readRequest(r), r.Uint()}
}

// AppendState implements protocol.Process.
func (c *LiteralClient) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, c.timestamp)
	b = append(b, byte(c.section))
	for _, r := range c.resp {
		b = r.append(b)
	}
	return b
}

// LoadState implements protocol.Process.
func (c *LiteralClient) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	c.timestamp = r.Uint()
	c.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	for j := range c.resp {
		c.resp[j] = readRequest(&r)
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (c *LiteralClient) State(v *protocol.Codec) { v.Other(c.AppendState, c.LoadState) }

// AppendState implements protocol.Process.
func (s *LiteralServer) AppendState(b []byte) []byte {
	b = s.owner.append(b)
	b = binary.AppendUvarint(b, uint64(len(s.queue)))
	for _, r := range s.queue {
		b = r.append(b)
	}
	return b
}

// LoadState implements protocol.Process.
func (s *LiteralServer) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	s.owner = readRequest(&r)
	s.queue = s.queue[:0]
	for range r.Len() {
		s.queue = append(s.queue, readRequest(&r))
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (s *LiteralServer) State(c *protocol.Codec) { c.Other(s.AppendState, s.LoadState) }

// AppendState implements protocol.Process.
func (c *Client) AppendState(b []byte) []byte {
	b = append(b, byte(c.section))
	b = binary.AppendUvarint(b, c.time)
	b = binary.AppendUvarint(b, c.last)
	b = binary.AppendUvarint(b, c.clock)
	b = binary.AppendUvarint(b, c.token)
	b = binary.AppendUvarint(b, c.rounds)
	b = protocol.AppendBool(b, c.once)
	b = protocol.AppendBool(b, c.resting)
	for j := range c.resp {
		b = binary.AppendUvarint(b, c.incs[j])
		b = binary.AppendUvarint(b, c.given[j])
		b = c.resp[j].append(b)
		b = binary.AppendUvarint(b, c.resp[j].serial)
		b = binary.AppendUvarint(b, c.resp[j].token)
		b = protocol.AppendBool(b, c.draining[j])
		b = protocol.AppendBool(b, c.refused[j])
		b = protocol.AppendBool(b, c.asked[j])
		b = protocol.AppendBool(b, c.recorded[j])
	}
	return b
}

// LoadState implements protocol.Process.
func (c *Client) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	c.section = protocol.Section(r.Max(uint64(protocol.InLost)))
	c.time = r.Uint()
	c.last = r.Uint()
	c.clock = r.Uint()
	c.token = r.Uint()
	c.rounds = r.Uint()
	c.once = r.Bool()
	c.resting = r.Bool()
	c.backOff, c.patience = c.delay, safetyDelay*c.delay
	for j := range c.resp {
		c.incs[j] = r.Uint()
		c.given[j] = r.Uint()
		c.resp[j] = response{readRequest(&r), r.Uint(), r.Uint()}
		c.draining[j] = r.Bool()
		c.refused[j] = r.Bool()
		c.asked[j] = r.Bool()
		c.recorded[j] = r.Bool()
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (c *Client) State(v *protocol.Codec) { v.Other(c.AppendState, c.LoadState) }

// AppendState implements protocol.Process.
func (s *Server) AppendState(b []byte) []byte {
	b = protocol.AppendBool(b, s.draining)
	b = binary.AppendUvarint(b, s.inc)
	b = s.owner.append(b)
	b = binary.AppendUvarint(b, uint64(s.largest))
	b = binary.AppendUvarint(b, s.tokens[0])
	b = binary.AppendUvarint(b, s.tokens[1])
	b = binary.AppendUvarint(b, uint64(s.queue.len()))
	for _, w := range s.queue.all() {
		b = protocol.AppendBool(w.append(b), w.inside)
	}
	return b
}

// LoadState implements protocol.Process.
func (s *Server) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	s.draining = r.Bool()
	s.inc = r.Uint()
	s.owner = readEntry(&r)
	s.largest = protocol.ID(r.Uint())
	s.tokens = [2]uint64{r.Uint(), r.Uint()}
	s.queue.clear()
	for range r.Len() {
		w := waiter{readEntry(&r), r.Bool()}
		if k := s.queue.len(); k > 0 && s.queue.waiters[k-1].compare(w) >= 0 {
			return nil, protocol.ErrShort // out of order, or twice
		}
		s.insert(w)
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (s *Server) State(c *protocol.Codec) { c.Other(s.AppendState, s.LoadState) }

// serials counts the supports of one request at one server.
func serials(server, client protocol.ID, time uint64) protocol.Counter {
	return protocol.Counter{Member: server, User: client, Time: time}
}

func mapState(p protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
	switch p := p.(type) {
	case *Client:
		if p.time == 0 || p.section == protocol.InLost {
			return
		}
		for j := range p.resp {
			k := serials(protocol.ID(j), p.id, p.time)
			p.given[j] = f(k, p.given[j])
			if p.supports(j) {
				p.resp[j].serial = f(k, p.resp[j].serial)
			}
		}
	case *Server:
		if p.owner != (entry{}) {
			p.owner.serial = f(serials(protocol.ID(p.id), p.owner.client, p.owner.time), p.owner.serial)
		}
		waiters := p.queue.all()
		for i, w := range waiters {
			waiters[i].serial = f(serials(protocol.ID(p.id), w.client, w.time), w.serial)
		}
	}
}

func mapMsg(ch protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	switch {
	case m.Kind == Request, m.Kind == Yield, m.Kind == SetToken:
		m.Serial = f(serials(ch.To, ch.From, m.Time), m.Serial)
	case m.Kind == Recall, m.Kind == Response && m.Owner == ch.To && m.Serial != 0:
		m.Serial = f(serials(ch.From, ch.To, m.Time), m.Serial)
	}
}
