// Package kv is an object of package sections that has values by key, and what can be done to it in a section:
//
//	err := member.With(ctx, "config", func(ctx context.Context, s *sections.Section) error {
//		owner, found, err := kv.Get(ctx, s, "owner")
//		if err != nil || found {
//			return err
//		}
//		return kv.Put(ctx, s, "owner", []byte("a"))
//	})
//
// An operation of a section has the fate that package sections tells: it is executed, once, or never.
package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sections"
)

// A Store has a value for each of some keys. The zero Store has none. At a member it is read in Member.View.
type Store struct{ values map[string][]byte }

// Get returns the value of a key, which must not be changed; nil: it has none.
func (s *Store) Get(key string) []byte { return s.values[key] }

// Keys are those that have a value, in their order.
func (s *Store) Keys() []string { return slices.Sorted(maps.Keys(s.values)) }

// A Pair is a key with a value, which may be empty; nil: it has none.
type Pair struct {
	Key   string
	Value []byte
}

// The operations.
const (
	opGet = iota // the key is the rest
	opTxn        // two lists of pairs: what must be so, and what becomes so then
)

func encodeTxn(where, then []Pair) []byte {
	return appendPairs(appendPairs([]byte{opTxn}, where), then)
}

func appendPairs(b []byte, pairs []Pair) []byte {
	b = binary.AppendUvarint(b, uint64(len(pairs)))
	for _, p := range pairs {
		b = appendValue(protocol.AppendText(b, p.Key), p.Value)
	}
	return b
}

// appendValue appends a value, which may be none.
func appendValue(b, value []byte) []byte {
	if b = protocol.AppendBool(b, value != nil); value != nil {
		b = protocol.AppendText(b, value)
	}
	return b
}

func readPairs(r *protocol.Reader) (pairs []Pair) {
	for k := r.Len(); k > 0 && r.Err == nil; k-- {
		pairs = append(pairs, Pair{r.Text(), readValue(r)})
	}
	return pairs
}

// readValue reads a value, as a copy.
func readValue(r *protocol.Reader) []byte {
	if !r.Bool() {
		return nil
	}
	return append([]byte{}, r.Bytes(math.MaxInt)...)
}

func readTxn(op []byte) (where, then []Pair, err error) {
	r := protocol.Reader{Rest: op}
	where, then = readPairs(&r), readPairs(&r)
	if r.Err == nil && len(r.Rest) > 0 {
		r.Err = fmt.Errorf("%d bytes too many", len(r.Rest))
	}
	return where, then, r.Err
}

// Check implements sections.Object.
func (*Store) Check(op []byte) error {
	switch {
	case len(op) > 0 && op[0] == opGet:
		return nil
	case len(op) > 0 && op[0] == opTxn:
		_, _, err := readTxn(op[1:])
		return err
	}
	return errors.New("it is of none of the kinds that package kv makes")
}

// Apply implements sections.Object.
func (s *Store) Apply(op []byte) []byte {
	if op[0] == opGet {
		return appendValue(nil, s.values[string(op[1:])])
	}
	where, then, _ := readTxn(op[1:])
	for _, p := range where {
		if v, ok := s.values[p.Key]; ok != (p.Value != nil) || string(v) != string(p.Value) {
			return protocol.AppendBool(nil, false)
		}
	}
	for _, p := range then {
		s.set(p)
	}
	return protocol.AppendBool(nil, true)
}

func (s *Store) set(p Pair) {
	switch {
	case p.Value == nil:
		delete(s.values, p.Key)
		return
	case s.values == nil:
		s.values = map[string][]byte{}
	}
	s.values[p.Key] = p.Value
}

// Snapshot implements sections.Object. Equal stores have equal ones.
func (s *Store) Snapshot() []byte {
	pairs := make([]Pair, 0, len(s.values))
	for _, key := range s.Keys() {
		pairs = append(pairs, Pair{key, s.values[key]})
	}
	return appendPairs(nil, pairs)
}

// Restore implements sections.Object.
func (s *Store) Restore(snapshot []byte) (replace func(), err error) {
	r := protocol.Reader{Rest: snapshot}
	var next Store
	for _, p := range readPairs(&r) {
		next.set(p)
	}
	if r.Err != nil || len(r.Rest) > 0 {
		return nil, fmt.Errorf("kv: malformed snapshot: %d bytes, of which %d are left after %d keys", len(snapshot), len(r.Rest), len(next.values))
	}
	return func() { s.values = next.values }, nil
}

// Get returns the value of a key, after all operations before: what Member.View shows may be older.
func Get(ctx context.Context, s *sections.Section, key string) (value []byte, found bool, err error) {
	b, err := s.Do(ctx, append([]byte{opGet}, key...))
	if err != nil {
		return nil, false, err
	}
	r := protocol.Reader{Rest: b}
	value = readValue(&r)
	return value, value != nil, foreign(&r)
}

// Put gives a key a value.
func Put(ctx context.Context, s *sections.Section, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	_, err := Txn(ctx, s, nil, []Pair{{key, value}})
	return err
}

// Delete takes the value of a key away, if it has one.
func Delete(ctx context.Context, s *sections.Section, key string) error {
	_, err := Txn(ctx, s, nil, []Pair{{Key: key}})
	return err
}

// CompareAndSwap gives a key another value, if it has the old one, and reports whether it had. nil is no value: as old one the key must
// have none, and as new one it is deleted.
func CompareAndSwap(ctx context.Context, s *sections.Section, key string, old, next []byte) (swapped bool, err error) {
	return Txn(ctx, s, []Pair{{key, old}}, []Pair{{key, next}})
}

// Txn gives keys values, all of them, if all keys in where have the values there, and reports whether they had. It is one
// operation.
func Txn(ctx context.Context, s *sections.Section, where, then []Pair) (done bool, err error) {
	b, err := s.Do(ctx, encodeTxn(where, then))
	if err != nil {
		return false, err
	}
	r := protocol.Reader{Rest: b}
	return r.Bool(), foreign(&r)
}

// foreign says that a result is none of a Store.
func foreign(r *protocol.Reader) error {
	if r.Err != nil || len(r.Rest) > 0 {
		return errors.New("kv: the object of this section is not a Store")
	}
	return nil
}
