package protocol

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Value is the event that the access to register From which the process had open is done. Arg is
// what it read, 0 after a Write.
const Value Kind = 10

// Read, Write and Await are the effects that access register To of the shared memory, whose number
// is its place in Info.Registers. Value follows, once: until then the process has no other access to
// this register. Write makes it Arg. Await reads again and again until it finds 0 or at least Arg.
const (
	Read Do = 9 + iota
	Write
	Await
)

// NewValue is the event that the access to register r is done, which read v.
func NewValue(r int, v uint64) Input { return Input{Kind: Value, From: ID(r), Arg: v} }

// Read reads register r.
func (o *Out[M]) Read(r int) { o.effect(Read).To = ID(r) }

// Write makes register r v.
func (o *Out[M]) Write(r int, v uint64) {
	e := o.effect(Write)
	e.To, e.Arg = ID(r), v
}

// Await waits until register r is 0 or at least v.
func (o *Out[M]) Await(r int, v uint64) {
	e := o.effect(Await)
	e.To, e.Arg = ID(r), v
}

// A Register is one variable of the shared memory.
type Register struct {
	Name    string // in traces, without blanks, such as num[2]
	Owner   ID     // who alone writes it, or Shared
	Initial uint64
	// Most is the largest value that a read may return which overlaps a write, where
	// registers are safe only.
	Most uint64
}

// Shared is the owner of a register that every process writes.
const Shared = ID(math.MaxUint64)

// Semantics says what registers promise to a read that overlaps a write: L. Lamport, "On
// Interprocess Communication", Distributed Computing 1(2), 1986.
type Semantics string

// The kinds of registers.
const (
	// Atomic: each access takes effect at one moment between its begin and its end.
	Atomic Semantics = "atomic"
	// Safe: a write takes a while, and a read that overlaps one may return anything
	// from 0 to Register.Most. Where several processes write one register, and their writes
	// overlap, the value of the write that ends last stays.
	Safe Semantics = "safe"
)

// ErrRegisters is for what needs messages: links, clocks on messages, networks.
var ErrRegisters = errors.New("its processes share memory, and send no messages")

// Memory returns the registers of a system, and s or its default. An error says what is
// wrong with s or with the registers; without registers only the empty s is right.
func (i Info) Memory(c Config, s Semantics) ([]Register, Semantics, error) {
	if i.Registers == nil {
		if s != "" {
			return nil, "", fmt.Errorf("%s registers: its processes send messages, and share no memory", s)
		}
		return nil, "", nil
	}
	if s == "" {
		s = Atomic
	}
	if s != Atomic && s != Safe {
		return nil, "", fmt.Errorf("registers %q: want %s or %s", s, Atomic, Safe)
	}
	list := i.Registers(c)
	names := map[string]bool{}
	for _, r := range list {
		if r.Name == "" || names[r.Name] || strings.ContainsFunc(r.Name, func(c rune) bool { return c <= ' ' }) {
			return nil, "", fmt.Errorf("register %q: want a name of its own without blanks", r.Name)
		}
		names[r.Name] = true
	}
	return list, s, nil
}

// An Access is one that a process asked for by an effect, and that is not done yet.
type Access struct {
	Do       Do // Read, Write or Await
	Register int
	Arg      uint64
	Begun    bool // a Write of a safe register that reads may overlap by now
}

// Ends reports whether a value that the register holds ends the access.
func (a Access) Ends(v uint64) bool { return a.Do != Await || v == 0 || v >= a.Arg }

// OpenAccesses are those that one process has open, in the order of their registers.
type OpenAccesses []Access

// Open adds the access that an effect of process id asks for. It may change the memory of s.
// An error says which rule of registers the effect breaks, and leaves s as it is.
func (s OpenAccesses) Open(list []Register, id ID, a Act) (OpenAccesses, error) {
	if len(list) == 0 {
		return s, fmt.Errorf("#%d accesses register %d, and there is no shared memory", id, a.To)
	}
	if a.To >= ID(len(list)) {
		return s, fmt.Errorf("#%d accesses register %d of 0 to %d", id, a.To, len(list)-1)
	}
	r := int(a.To)
	if o := list[r].Owner; a.Do == Write && o != Shared && o != id {
		return s, fmt.Errorf("#%d writes %s, which only #%d writes", id, list[r].Name, o)
	}
	i, open := s.find(r)
	if open {
		return s, fmt.Errorf("#%d accesses %s once more before it is done", id, list[r].Name)
	}
	return slices.Insert(s, i, Access{Do: a.Do, Register: r, Arg: a.Arg}), nil
}

// Of returns the open access to register r, nil without one. It is valid until s changes.
func (s OpenAccesses) Of(r int) *Access {
	if i, open := s.find(r); open {
		return &s[i]
	}
	return nil
}

// Done returns the accesses without the one to register r. It changes the memory of s.
func (s OpenAccesses) Done(r int) OpenAccesses {
	return slices.DeleteFunc(s, func(a Access) bool { return a.Register == r })
}

func (s OpenAccesses) find(r int) (int, bool) {
	return slices.BinarySearchFunc(s, r, func(a Access, r int) int { return a.Register - r })
}

// Silent completes an algorithm that shares memory with what it has no messages for.
func Silent(a Algorithm[struct{}]) Algorithm[struct{}] {
	a.Fields = func(m struct{}, _ *Codec) struct{} { return m }
	a.KindOf = func(struct{}) int { return 0 }
	a.Ints = func(struct{}) int { return 0 }
	a.Text = func(struct{}) string { return "" }
	return a
}
