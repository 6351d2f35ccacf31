package registers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// A Form says how an Await of another's register ends.
type Form string

// The forms, by the names of the variants.
const (
	// Deferred: its owner answers when the wait is over.
	Deferred Form = ""
	// Polling: its owner answers at once, and the reader asks again.
	Polling Form = "polling"
)

// The kinds of Message.
const (
	Read uint8 = iota
	Value
)

var messages = []protocol.Message{Read: {Name: "READ"}, Value: {Name: "VALUE"}}

// A Message is READ(register), READ(register, until 0 or >= v), or VALUE(register = v).
type Message struct {
	Kind     uint8
	Register uint64 // its number among those of its owner, from 0
	V        uint64 // of READ: 0 for an answer at once
}

// OverMessages returns a, an algorithm for shared memory, as one that sends messages. Its
// claims about messages must count two for each access to another's register.
//
// Each process must own the same registers, which for N processes stand in the order r[1..N],
// s[1..N] and so on, as in arrays. Where some register is written by several processes
// OverMessages panics with an error that names it.
func OverMessages(a protocol.Algorithm[struct{}], f Form) protocol.Algorithm[Message] {
	names, err := arrays(a)
	if err != nil {
		panic(err)
	}
	w := &wrapped{a, f, names}
	out := protocol.Algorithm[Message]{
		Info:   a.Info,
		New:    w.new,
		Fields: w.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   w.text,
	}
	out.Variant, out.Messages, out.Registers = string(f), messages, nil
	if f == Polling {
		out.Title += ", again and again"
		out.Claims = polled(a.Claims)
	}
	out.Bounds, out.Invariants = a.Bounds, a.Invariants
	return out
}

// arrays returns the names of the registers that each process owns.
func arrays(a protocol.Algorithm[struct{}]) (names []string, err error) {
	const n = 3
	bad := func(format string, args ...any) ([]string, error) {
		return nil, fmt.Errorf("memory: %s: %w", a.Name, fmt.Errorf(format, args...))
	}
	if a.Registers == nil {
		return bad("it has no registers")
	}
	for i, r := range a.Registers(protocol.Config{N: n}) {
		name, _, _ := strings.Cut(r.Name, "[")
		switch {
		case r.Owner == protocol.Shared:
			return bad("register %s has several writers, and nobody to answer for it: want one owner each", r.Name)
		case r.Owner != protocol.ID(i%n):
			return bad("register %s is number %d and belongs to #%d: want arrays, in the order of their owners", r.Name, i, r.Owner)
		case i%n == 0:
			names = append(names, name)
		}
	}
	return names, nil
}

// polled takes back how many messages there are at most where somebody waits.
func polled(claims []protocol.Claim) []protocol.Claim {
	claims = slices.Clone(claims)
	for i := range claims {
		if c := &claims[i]; c.Load == protocol.HighLoad && c.Measure == protocol.Messages {
			c.Formula, c.Most = "at least "+c.Formula, protocol.Fixed(math.Inf(1))
		}
	}
	return claims
}

// wrapped is an algorithm with its wrapper.
type wrapped struct {
	inner protocol.Algorithm[struct{}]
	form  Form
	names []string // of the registers of one process
}

func (w *wrapped) new(id protocol.ID, c protocol.Config) protocol.Process[Message] {
	p := &Process{
		inner: w.inner.New(id, c), id: id, n: c.N, polls: w.form == Polling, names: w.names,
		own:     make([]uint64, len(w.names)),
		waiters: make([]uint64, len(w.names)*c.N),
		open:    make([]uint64, len(w.names)*c.N),
	}
	registers := w.inner.Registers(c)
	for k := range p.own {
		p.own[k] = registers[p.register(k, id)].Initial
	}
	return p
}

// Unwrap returns the algorithm's own process.
func (p *Process) Unwrap() any { return p.inner }
