package history

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
)

// Merge passes on the events of several files in the order of time, with the index of
// the file; of one time those first that end a section. A file without End ends with
// its last event: its process was killed, and nobody knows that it did anything later.
func Merge(files []*Reader, each func(file int, e Event)) error {
	if err := oneClock(files); err != nil {
		return err
	}
	var m merge
	for i, r := range files {
		if err := m.next(source{Reader: r, index: i}, each); err != nil {
			return err
		}
	}
	for len(m) > 0 {
		s := heap.Pop(&m).(source)
		each(s.index, s.head)
		if err := m.next(s, each); err != nil {
			return err
		}
	}
	return nil
}

// oneClock says which files cannot be compared.
func oneClock(files []*Reader) error {
	for i, r := range files {
		switch {
		case i > 0 && r.Clock != files[0].Clock:
			return fmt.Errorf("history: the times of %s are of the clock %.80q, those of %s of %.80q",
				files[0].name, files[0].Clock, r.name, r.Clock)
		case i > 0 && r.Clock == Virtual:
			return fmt.Errorf("history: %s and %s are of simulations: each has a time of its own", files[0].name, r.name)
		}
	}
	return nil
}

// A source is a file with its next event.
type source struct {
	*Reader
	index int
	head  Event
}

// merge is a heap of sources.
type merge []source

// next reads the next event of a source, which is not in the heap, and puts it there
// if there is one.
func (m *merge) next(s source, each func(int, Event)) error {
	e, err := s.Next()
	switch {
	case errors.Is(err, io.EOF):
		if !s.ended {
			each(s.index, Event{At: s.last, Do: End})
		}
		return nil
	case err != nil:
		return err
	}
	s.head = e
	heap.Push(m, s)
	return nil
}

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	a, b := &m[i], &m[j]
	switch {
	case a.head.At != b.head.At:
		return a.head.At < b.head.At
	case a.head.ends() != b.head.ends():
		return a.head.ends()
	}
	return a.index < b.index
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface.
func (m *merge) Push(x any) { *m = append(*m, x.(source)) }

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	k := len(*m) - 1
	last := (*m)[k]
	*m = (*m)[:k]
	return last
}

// ends says that an event may end a section.
func (e *Event) ends() bool {
	return e.Do == Exit || e.Do == Ejected || e.Do == Crash || e.Do == End
}
