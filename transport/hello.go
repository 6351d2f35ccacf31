package transport

import (
	"fmt"
	"math"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

const maxText = 1024

// A Hello opens a connection: who dials whom, for which session.
type Hello struct {
	From, To    protocol.ID
	ToName      string        // whom the slot table expects there
	Incarnation uint64        // of the dialing process
	Session     uint64        // counts the sessions that this life of From began with To
	Resume      bool          // the session was established before: unknown means lost
	Received    uint64        // messages of the session that From has received
	Members     string        // the names of all of them, in the order of their ids
	Shards      string        // the names of all shards
	Kinds       []Kind        // of the locks that From may speak of
	Lease       time.Duration // asked for; 0: whatever is the custom there
	ClockBound  time.Duration // of From, for To to compare; 0: it has none
	Label       string
	// EndsWithConnection says that From takes the end of a connection for the end of the session. To may do so
	// where From's system has ended it.
	EndsWithConnection bool
	// Process is the name of the process that acts for From, the only one; "": there may be others, or it is not known. To may take its end
	// for the end of the session.
	Process string
}

// maxKinds bounds the list of a Hello.
const maxKinds = 16

// A Kind says which algorithm a process runs for the locks of one kind.
type Kind struct {
	Number    uint8
	Algorithm string
}

func (h *Hello) fields(c *protocol.Codec) {
	c.AnyID(&h.From)
	c.AnyID(&h.To)
	text(c, &h.ToName, maxText)
	c.Uints(&h.Incarnation, &h.Session)
	c.Bool(&h.Resume)
	c.Uint(&h.Received)
	text(c, &h.Members, MaxTable)
	text(c, &h.Shards, maxText)
	for i := range list(c, &h.Kinds, maxKinds) {
		protocol.Upto(c, &h.Kinds[i].Number, math.MaxUint8)
		text(c, &h.Kinds[i].Algorithm, maxText)
	}
	protocol.Upto(c, &h.Lease, math.MaxInt64)
	protocol.Upto(c, &h.ClockBound, math.MaxInt64)
	text(c, &h.Label, maxText)
	c.Bool(&h.EndsWithConnection)
	text(c, &h.Process, maxText)
}

// Append appends the encoding of h as an item.
func (h Hello) Append(b []byte) []byte {
	h.Label = clip(h.Label)
	return appendBody(b, HelloItem, h.fields)
}

// ReadHello reads the body of a Hello.
func ReadHello(body []byte) (h Hello, err error) {
	err = readBody(body, "hello", h.fields)
	return h, err
}

// A Welcome accepts a Hello.
type Welcome struct {
	Incarnation uint64
	Session     uint64
	Received    uint64 // messages of the session that the accepting end has received
	Lease       time.Duration
	ClockBound  time.Duration // of the accepting end; 0: it has none
	Label       string
}

func (w *Welcome) fields(c *protocol.Codec) {
	c.Uints(&w.Incarnation, &w.Session, &w.Received)
	protocol.Upto(c, &w.Lease, math.MaxInt64)
	protocol.Upto(c, &w.ClockBound, math.MaxInt64)
	text(c, &w.Label, maxText)
}

// Append appends the encoding of w as an item.
func (w Welcome) Append(b []byte) []byte {
	w.Label = clip(w.Label)
	return appendBody(b, WelcomeItem, w.fields)
}

// ReadWelcome reads the body of a Welcome.
func ReadWelcome(body []byte) (w Welcome, err error) {
	err = readBody(body, "welcome", w.fields)
	return w, err
}

// A Code says what follows from a refusal.
type Code uint8

// The codes of refusals.
const (
	Misfit         Code = iota // the two ends are configured differently
	UnknownSession             // the session to resume is lost: begin a new one
	Stale                      // a newer session of the same process exists
	Full                       // too many sessions
	OldTable                   // the slot table of the other end has been replaced: Table is the new one
)

// A Refuse says why a connection is refused or ended, with both values.
type Refuse struct {
	Code  Code
	What  string // what differs
	Mine  string // the value at the end that refuses
	Yours string // the value that was refused
	Table Table  // of OldTable
}

// Error implements error, in the words of the end that reads it.
func (r Refuse) Error() string {
	if r.Mine == "" && r.Yours == "" {
		return "refused: " + r.What
	}
	return fmt.Sprintf("refused: %s: %s there, %s here", r.What, r.Mine, r.Yours)
}

func (r *Refuse) fields(c *protocol.Codec) {
	protocol.Upto(c, &r.Code, math.MaxUint8)
	text(c, &r.What, maxText)
	text(c, &r.Mine, maxText)
	text(c, &r.Yours, maxText)
	r.Table.fields(c)
}

// Append appends the encoding of r as an item.
func (r Refuse) Append(b []byte) []byte {
	r.What, r.Mine, r.Yours = clip(r.What), clip(r.Mine), clip(r.Yours)
	return appendBody(b, RefuseItem, r.fields)
}

// ReadRefuse reads the body of a Refuse.
func ReadRefuse(body []byte) (r Refuse, err error) {
	err = readBody(body, "refusal", r.fields)
	return r, err
}

// clip keeps a text within what a reader accepts.
func clip(s string) string { return s[:min(len(s), maxText)] }

// appendBody appends an item whose body are these fields.
func appendBody(b []byte, t Type, fields func(*protocol.Codec)) []byte {
	var c protocol.Codec
	fields(c.Appending(nil))
	return Item{Type: t, Body: c.Bytes()}.Append(b)
}

// readBody reads fields, which must use the body up.
func readBody(body []byte, what string, fields func(*protocol.Codec)) error {
	var c protocol.Codec
	fields(c.Loading(body))
	if rest, err := c.Rest(); err != nil || len(rest) > 0 {
		return fmt.Errorf("%w: %s", ErrFrame, what)
	}
	return nil
}

// text visits a text of at most so many bytes.
func text(c *protocol.Codec, s *string, most int) {
	protocol.Text(c, s)
	c.Want(len(*s) <= most)
}

// list visits the length of a list of at most so many elements, which the caller visits next. No memory is taken for more.
func list[T any](c *protocol.Codec, l *[]T, most int) []T {
	n := len(*l)
	protocol.Upto(c, &n, most)
	if c.Reading() && n > 0 {
		*l = make([]T, n)
	}
	return *l
}
