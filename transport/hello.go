package transport

import (
	"encoding/binary"
	"fmt"
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
	Groups      string        // the names of all groups of servers
	Kinds       []Kind        // of the locks that From may speak of
	Lease       time.Duration // asked for; 0: whatever is the custom there
	ClockBound  time.Duration // of From, for To to compare; 0: it has none
	Label       string
}

// maxKinds bounds the list of a Hello.
const maxKinds = 16

// A Kind says which algorithm a process runs for the locks of one kind.
type Kind struct {
	Number    uint8
	Algorithm string
}

// Append appends the encoding of h as an item.
func (h Hello) Append(b []byte) []byte {
	var v []byte
	v = binary.AppendUvarint(v, uint64(h.From))
	v = binary.AppendUvarint(v, uint64(h.To))
	v = appendBytes(v, h.ToName)
	v = binary.AppendUvarint(v, h.Incarnation)
	v = binary.AppendUvarint(v, h.Session)
	v = protocol.AppendBool(v, h.Resume)
	v = binary.AppendUvarint(v, h.Received)
	v = appendBytes(v, h.Members)
	v = appendBytes(v, h.Groups)
	v = binary.AppendUvarint(v, uint64(len(h.Kinds)))
	for _, k := range h.Kinds {
		v = appendBytes(append(v, k.Number), k.Algorithm)
	}
	v = binary.AppendUvarint(v, uint64(h.Lease))
	v = binary.AppendUvarint(v, uint64(h.ClockBound))
	v = appendBytes(v, clip(h.Label))
	return Item{Type: HelloItem, Body: v}.Append(b)
}

// ReadHello reads the body of a Hello.
func ReadHello(body []byte) (h Hello, err error) {
	r := reader{protocol.Reader{Rest: body}}
	h.From, h.To = protocol.ID(r.Uint()), protocol.ID(r.Uint())
	h.ToName = r.string(maxText)
	h.Incarnation, h.Session = r.Uint(), r.Uint()
	h.Resume = r.Bool()
	h.Received = r.Uint()
	h.Members, h.Groups = r.string(MaxTable), r.string(maxText)
	for range r.Max(maxKinds) {
		h.Kinds = append(h.Kinds, Kind{r.byte(), r.string(maxText)})
	}
	h.Lease = time.Duration(r.Max(1<<63 - 1))
	h.ClockBound = time.Duration(r.Max(1<<63 - 1))
	h.Label = r.string(maxText)
	return h, r.end("hello")
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

// Append appends the encoding of w as an item.
func (w Welcome) Append(b []byte) []byte {
	var v []byte
	v = binary.AppendUvarint(v, w.Incarnation)
	v = binary.AppendUvarint(v, w.Session)
	v = binary.AppendUvarint(v, w.Received)
	v = binary.AppendUvarint(v, uint64(w.Lease))
	v = binary.AppendUvarint(v, uint64(w.ClockBound))
	v = appendBytes(v, clip(w.Label))
	return Item{Type: WelcomeItem, Body: v}.Append(b)
}

// ReadWelcome reads the body of a Welcome.
func ReadWelcome(body []byte) (w Welcome, err error) {
	r := reader{protocol.Reader{Rest: body}}
	w.Incarnation, w.Session, w.Received = r.Uint(), r.Uint(), r.Uint()
	w.Lease = time.Duration(r.Max(1<<63 - 1))
	w.ClockBound = time.Duration(r.Max(1<<63 - 1))
	w.Label = r.string(maxText)
	return w, r.end("welcome")
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

// Append appends the encoding of r as an item.
func (r Refuse) Append(b []byte) []byte {
	v := []byte{byte(r.Code)}
	v = appendBytes(v, clip(r.What))
	v = appendBytes(v, clip(r.Mine))
	v = appendBytes(v, clip(r.Yours))
	v = r.Table.append(v)
	return Item{Type: RefuseItem, Body: v}.Append(b)
}

// ReadRefuse reads the body of a Refuse.
func ReadRefuse(body []byte) (f Refuse, err error) {
	r := reader{protocol.Reader{Rest: body}}
	f.Code = Code(r.byte())
	f.What, f.Mine, f.Yours = r.string(maxText), r.string(maxText), r.string(maxText)
	f.Table = readTable(&r)
	return f, r.end("refusal")
}

// clip keeps a text within what a reader accepts.
func clip(s string) string { return s[:min(len(s), maxText)] }
