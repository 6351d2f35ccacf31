package server

import (
	"context"
	"sync"

	"github.com/poundlock/poundlock/internal/control"
)

// A LockQuery says which locks to ask for.
type LockQuery struct {
	Prefix string // of their names
	Few    int    // ask for so many at a time, where not more are wanted. 0: as many as a page holds
	one    string // this one alone
}

// Locks gives what the servers know about each lock to f, in the order of the
// names, until it returns false: same[i] is what server i knows about that name, nil
// for nothing. It asks the servers whose answers are without an error, notes there
// what goes wrong, and keeps few pages in memory.
func (o *Observer) Locks(ctx context.Context, answers []Answer, q LockQuery, f func(same []*Lock) bool) {
	ctx, cancel := context.WithCancel(ctx)
	streams := make([]stream, len(o.servers))
	var all sync.WaitGroup
	for id := range streams {
		s := &streams[id]
		s.pages = make(chan []Lock, 1)
		all.Go(func() {
			defer close(s.pages)
			if answers[id].Err != nil {
				return
			}
			query := control.Query{Ask: control.Locks, Prefix: []byte(q.Prefix), Limit: q.Few}
			if q.one != "" {
				query = control.Query{Ask: control.OneLock, Name: []byte(q.one)}
			}
			s.err = o.pages(ctx, id, query, func(p control.Page) bool {
				select {
				case s.pages <- p.Locks:
					return true
				case <-ctx.Done():
					return false
				}
			})
		})
	}
	whole := merge(streams, f)
	cancel()
	all.Wait()
	for id := range streams {
		if whole && answers[id].Err == nil {
			answers[id].Err = streams[id].err
		}
	}
}

// A stream is the locks of one server, page by page.
type stream struct {
	pages chan []Lock
	page  []Lock // what is left of the page in hand
	err   error  // why the pages ended early, once pages is closed
}

// head is the next lock of the stream, nil at its end.
func (s *stream) head() *Lock {
	for len(s.page) == 0 {
		page, ok := <-s.pages
		if !ok {
			return nil
		}
		s.page = page
	}
	return &s.page[0]
}

// merge puts the streams together by name. It reports false when f ended it.
func merge(streams []stream, f func(same []*Lock) bool) (whole bool) {
	for {
		first := "" // of the names
		for i := range streams {
			if l := streams[i].head(); l != nil && (first == "" || l.Name < first) {
				first = l.Name
			}
		}
		if first == "" {
			return true
		}
		same := make([]*Lock, len(streams))
		for i := range streams {
			if l := streams[i].head(); l != nil && l.Name == first {
				same[i], streams[i].page = l, streams[i].page[1:]
			}
		}
		if !f(same) {
			return false
		}
	}
}

// OneLock is what each server knows about one lock, nil for nothing.
func (o *Observer) OneLock(ctx context.Context, answers []Answer, name string) []*Lock {
	known := make([]*Lock, len(o.servers))
	o.Locks(ctx, answers, LockQuery{one: name}, func(same []*Lock) bool {
		known = same
		return true
	})
	return known
}

// Release asks every server to pass r on to the client that it is about. An answer
// with an error is that of a server. Release.Ask need not be set.
func (o *Observer) Release(ctx context.Context, r Release) []Released {
	r.Ask = control.ForcedRelease
	answers := make([]Released, len(o.servers))
	o.all(func(i int) {
		ctx, cancel := context.WithTimeout(ctx, o.timeout+patience)
		defer cancel()
		switch p, err := control.Ask(ctx, o.servers[i].node, o.servers[i].id, r); {
		case err != nil:
			answers[i] = Released{Outcome: Unknown, Err: err.Error()}
		case p.Released != nil:
			answers[i] = *p.Released
		}
	})
	return answers
}
