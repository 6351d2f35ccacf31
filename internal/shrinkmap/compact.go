// Package shrinkmap has a map whose memory follows its size. A map of Go keeps what it
// needed when it was largest, for as long as it lives.
package shrinkmap

import "iter"

// A Map is a map from K to V. The zero Map is empty and ready. Its memory is that of a
// map with at most spare times as many elements as it has, or with few.
type Map[K comparable, V any] struct {
	m       map[K]V
	most    int // elements since m was made
	rebuilt int // how often m was replaced by a smaller one
}

const (
	spare = 4
	few   = 64
)

// Get returns the value of k, or the zero value.
func (m *Map[K, V]) Get(k K) V { return m.m[k] }

// View returns the map itself, to be read until it changes: there, a lookup by bytes
// makes no string of them.
func (m *Map[K, V]) View() map[K]V { return m.m }

// Has reports whether there is a value for k.
func (m *Map[K, V]) Has(k K) bool {
	_, ok := m.m[k]
	return ok
}

// Len is the number of elements.
func (m *Map[K, V]) Len() int { return len(m.m) }

// Set makes v the value of k.
func (m *Map[K, V]) Set(k K, v V) {
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[k] = v
	m.most = max(m.most, len(m.m))
}

// Delete removes k. Once most elements have gone, it moves the others to a smaller map:
// a constant number of steps for each that has gone.
func (m *Map[K, V]) Delete(k K) {
	delete(m.m, k)
	if m.most < few || len(m.m) > m.most/spare {
		return
	}
	old := m.m
	m.m = nil
	if len(old) > 0 {
		m.m = make(map[K]V, len(old))
		for k, v := range old {
			m.m[k] = v
		}
	}
	m.most = len(old)
	m.rebuilt++
}

// All returns the elements, in no order. The loop may delete elements, which do not
// come any more, and set others, which may come or not.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		rebuilt := m.rebuilt
		for k, v := range m.m {
			if m.rebuilt != rebuilt {
				// The loop goes on over the old map, which does not know any more what is
				// there.
				now, ok := m.m[k]
				if !ok {
					continue
				}
				v = now
			}
			if !yield(k, v) {
				return
			}
		}
	}
}
