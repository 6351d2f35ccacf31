// Package counters is an object for tests and benchmarks of replicated objects.
package counters

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/poundlock/poundlock/protocol"
)

// A Store is a map of counters. Its zero value has none.
type Store struct {
	mu       sync.Mutex
	counters map[string]uint64
	applied  uint64 // operations, also those before a snapshot
}

// add begins an operation, and the key of a counter follows.
const add = "+"

// Add is the operation that adds 1 to a counter. Its result is the counter's value then: see Value.
func Add(key string) []byte { return []byte(add + key) }

// Value is the result of Add.
func Value(result []byte) uint64 { return (&protocol.Reader{Rest: result}).Uint() }

// Check implements node.Object.
func (s *Store) Check(op []byte) error {
	if !bytes.HasPrefix(op, []byte(add)) {
		return fmt.Errorf("%.20q does not begin with %s", op, add)
	}
	return nil
}

// Apply implements node.Object.
func (s *Store) Apply(op []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counters == nil {
		s.counters = map[string]uint64{}
	}
	s.applied++
	key := string(op[len(add):])
	s.counters[key]++
	return binary.AppendUvarint(nil, s.counters[key])
}

// Snapshot implements node.Object. Equal copies have equal ones.
func (s *Store) Snapshot() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := binary.AppendUvarint(binary.AppendUvarint(nil, s.applied), uint64(len(s.counters)))
	for _, key := range slices.Sorted(maps.Keys(s.counters)) {
		b = binary.AppendUvarint(protocol.AppendText(b, key), s.counters[key])
	}
	return b
}

// Restore implements node.Object.
func (s *Store) Restore(snapshot []byte) (replace func(), err error) {
	r := protocol.Reader{Rest: snapshot}
	counters, applied := map[string]uint64{}, r.Uint()
	for k := r.Len(); k > 0 && r.Err == nil; k-- {
		key := r.Text()
		counters[key] = r.Uint()
	}
	if r.Err != nil || len(r.Rest) > 0 {
		return nil, fmt.Errorf("counters: malformed snapshot: %d bytes, of which %d are left after %d counters", len(snapshot), len(r.Rest), len(counters))
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counters, s.applied = counters, applied
	}, nil
}

// Applied is how many operations have made the copy what it is.
func (s *Store) Applied() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}
