package history

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
)

// A Source has events in the order of time, and io.EOF after the last one.
type Source interface {
	Next() (Event, error)
}

// Merge passes on the events of several sources in the order of time, with the index of the source, until there is
// an error; of one time those first that end a section.
func Merge(sources []Source, each func(source int, e Event) error) error {
	var m merge
	for i, s := range sources {
		e, err := s.Next()
		switch {
		case err == nil:
			m = append(m, head{s, i, e})
		case !errors.Is(err, io.EOF):
			return err
		}
	}
	heap.Init(&m)
	for len(m) > 0 {
		first := &m[0]
		if err := each(first.index, first.Event); err != nil {
			return err
		}
		var err error
		switch first.Event, err = first.source.Next(); {
		case err == nil:
			heap.Fix(&m, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&m)
		default:
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

// An ending file has an End. Where it was not written that comes with the last event: the process was killed, and
// nobody knows that it did anything later.
type ending struct {
	*Reader
	over bool // the End that it lacks was passed on
}

// Next implements Source.
func (f *ending) Next() (Event, error) {
	e, err := f.Reader.Next()
	if errors.Is(err, io.EOF) && !f.ended && !f.over {
		f.over = true
		return Event{At: f.last, Do: End}, nil
	}
	return e, err
}

// A head is the next event of a source.
type head struct {
	source Source
	index  int
	Event
}

// merge is a heap.
type merge []head

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	a, b := &m[i], &m[j]
	switch {
	case a.At != b.At:
		return a.At < b.At
	case a.ends() != b.ends():
		return a.ends()
	}
	return a.index < b.index
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface. Nothing is pushed.
func (m *merge) Push(any) {}

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	*m = (*m)[:len(*m)-1]
	return nil
}

// ends says that an event may end a section.
func (e *Event) ends() bool {
	return e.Do == Exit || e.Do == Ejected || e.Do == Crash || e.Do == End
}
