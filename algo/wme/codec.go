package wme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	for _, v := range []uint64{m.Epoch, m.Number, m.Done, uint64(m.Who), m.ID} {
		b = binary.AppendUvarint(b, v)
	}
	b = protocol.AppendText(b, m.Op)
	b = protocol.AppendBool(b, m.More != nil)
	if m.More != nil {
		b = m.More.append(b)
	}
	return b
}

func (k *Bulk) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(k.Owner))
	b = appendRecords(b, k.Records)
	b = appendNumbers(b, k.Granted)
	b = appendClaims(b, k.Requests)
	b = appendNumbers(b, k.Lives)
	b = appendNumbers(b, k.Last)
	return protocol.AppendText(b, k.Object)
}

func appendRecords(b []byte, list []Record) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, r := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, r.Number), r.Before)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Who)), r.ID)
		b = protocol.AppendText(b, r.Op)
	}
	return b
}

func appendClaims(b []byte, list []Claim) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, c := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.Who)), c.ID)
	}
	return b
}

func appendNumbers(b []byte, list []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(State)))
	m.Epoch, m.Number, m.Done = r.Uint(), r.Uint(), r.Uint()
	m.Who, m.ID = protocol.ID(r.Uint()), r.Uint()
	m.Op = r.Text()
	if bulky := m.Kind == NewEp || m.Kind == Records || m.Kind == State; r.Bool() != bulky && r.Err == nil {
		r.Err = protocol.ErrShort
	} else if bulky {
		m.More = readBulk(&r)
	}
	return m, r.Rest, r.Err
}

func readBulk(r *protocol.Reader) *Bulk {
	k := &Bulk{Owner: protocol.ID(r.Uint())}
	k.Records = readRecords(r, nil)
	k.Granted = readNumbers(r)
	k.Requests = readClaims(r, nil)
	k.Lives = readNumbers(r)
	k.Last = readNumbers(r)
	k.Object = r.Text()
	return k
}

func readRecords(r *protocol.Reader, list []Record) []Record {
	for k := range r.Len() {
		c := Record{Number: r.Uint(), Before: r.Uint(), Who: protocol.ID(r.Uint()), ID: r.Uint(), Op: r.Text()}
		if k > 0 && c.Number <= list[len(list)-1].Number {
			r.Err = protocol.ErrShort
		}
		list = append(list, c)
	}
	return list
}

func readClaims(r *protocol.Reader, list []Claim) []Claim {
	for range r.Len() {
		list = append(list, Claim{protocol.ID(r.Uint()), r.Uint()})
	}
	return list
}

func readNumbers(r *protocol.Reader) (list []uint64) {
	for range r.Len() {
		list = append(list, r.Uint())
	}
	return list
}

// fits: all that indexes an array is within it, and a vote alone is proposed.
func fits(m Message, n int, proposed bool) bool {
	if m.Who >= protocol.ID(n) || proposed && m.Kind != NewEp {
		return false
	}
	k := m.More
	if k == nil {
		return true
	}
	lives, last := n, 0
	switch m.Kind {
	case Records:
		lives = 0
	case State:
		last = n
	}
	return k.Owner < protocol.ID(n) && len(k.Granted) == n && len(k.Lives) == lives && len(k.Last) == last &&
		!slices.ContainsFunc(k.Records, func(r Record) bool { return r.Who >= protocol.ID(n) }) &&
		!slices.ContainsFunc(k.Requests, func(c Claim) bool { return c.Who >= protocol.ID(n) })
}

// snapshot is the object of a STATE.
func snapshot(m Message) (object string, ok bool) {
	if m.Kind == State {
		return m.More.Object, true
	}
	return "", false
}

// ints: an operation and a copy of the object count one.
func ints(m Message) int {
	k := 4
	if m.More != nil {
		k += 4*len(m.More.Records) + len(m.More.Granted) + 2*len(m.More.Requests) + len(m.More.Lives) + len(m.More.Last) + 1
	}
	return k
}

func text(m Message) string {
	name := messages[m.Kind].Name
	switch m.Kind {
	case Request:
		return fmt.Sprintf("%s(%d,%d,%d)", name, m.Epoch, m.ID, m.Done)
	case Grant:
		return fmt.Sprintf("%s(%d,%d,#%d,%d,%d)", name, m.Epoch, m.Number, m.Who, m.ID, m.Done)
	case Invoke:
		return fmt.Sprintf("%s(%d,%d,#%d,%d,%s,%d)", name, m.Epoch, m.Number, m.Who, m.ID, m.Op, m.Done)
	case Ack, DoInvoke, Ahead:
		return fmt.Sprintf("%s(%d,%d,%d)", name, m.Epoch, m.Number, m.Done)
	case Sync:
		return fmt.Sprintf("%s(%d,%d,%d,%d)", name, m.Epoch, m.Number, m.Done, m.ID)
	case Fetch:
		return name
	}
	return fmt.Sprintf("%s(%d,%d,%d,%s)", name, m.Epoch, m.Number, m.Done, m.More)
}

// String implements fmt.Stringer.
func (k *Bulk) String() string {
	return fmt.Sprintf("#%d,log%s,granted%v,waits%s,lives%v,last%v,%q",
		k.Owner, textOf(k.Records), k.Granted, textOf(k.Requests), k.Lives, k.Last, k.Object)
}

func textOf[T fmt.Stringer](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.String()
	}
	return "[" + strings.Join(words, " ") + "]"
}

// String implements fmt.Stringer.
func (r Record) String() string {
	return fmt.Sprintf("%d>%d:#%d,%d,%s", r.Before, r.Number, r.Who, r.ID, r.Op)
}

// String implements fmt.Stringer.
func (c Claim) String() string { return fmt.Sprintf("#%d,%d", c.Who, c.ID) }
