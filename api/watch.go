package api

import (
	"context"
	"time"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// A watcher is one stream of Watch. What it has not sent yet is the latest state
// of each grant, so that a slow reader misses states, never the last one, and
// holds no more memory than the grants do. Guarded by Service.mu.
type watcher struct {
	news  map[string]*pb.Grant
	ids   []string      // of news, the oldest first
	limit int           // of ids
	slow  bool          // there were more: some news were dropped
	wake  chan struct{} // has a token when there are news
}

// tell tells the watchers of a session what became of a grant. Service.mu is held.
func (x *session) tell(g *grant) {
	for w := range x.watchers {
		w.tell(g.proto())
	}
}

func (w *watcher) tell(g *pb.Grant) {
	if w.news[g.GrantId] == nil {
		if w.slow = w.slow || len(w.ids) >= w.limit; w.slow {
			return
		}
		w.ids = append(w.ids, g.GrantId)
	}
	w.news[g.GrantId] = g
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// watch adds a watcher, whose first news are the grants that there are.
func (s *Service) watch(x *session) (*watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosing():
		return nil, shuttingDown()
	case x.why != "":
		return nil, unknownSession()
	case len(x.watchers) >= s.limits.Streams:
		return nil, failf(pb.Reason_REASON_LIMIT, "%d streams of this session are open", len(x.watchers))
	}
	w := &watcher{
		news:  map[string]*pb.Grant{},
		limit: s.limits.Grants + maxReleased,
		wake:  make(chan struct{}, 1),
	}
	x.watchers[w] = struct{}{}
	for _, g := range x.sorted() {
		w.tell(g.proto())
	}
	return w, nil
}

func (s *Service) unwatch(x *session, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(x.watchers, w)
}

// follow sends news as they come, and in between that the stream is alive.
func (s *Service) follow(ctx context.Context, x *session, w *watcher, send func(*pb.WatchResponse) error) error {
	alive := time.NewTicker(min(x.lease/4, 10*time.Second))
	defer alive.Stop()
	if err := send(&pb.WatchResponse{}); err != nil { // so that the client sees the stream begin
		return err
	}
	for {
		over := isClosed(x.ended) // before the news, whose last ones are those of the end
		if err := s.sendNews(w, send); err != nil || over {
			return err
		}
		select {
		case <-w.wake:
		case <-x.ended:
		case <-alive.C:
			if err := send(&pb.WatchResponse{}); err != nil {
				return err
			}
		case <-s.closing:
			return shuttingDown()
		case <-ctx.Done():
			return leaving(ctx)
		}
	}
}

func (s *Service) sendNews(w *watcher, send func(*pb.WatchResponse) error) error {
	for {
		g, slow := s.next(w)
		switch {
		case slow:
			return failf(pb.Reason_REASON_LIMIT, "this stream is read too slowly: call Watch again")
		case g == nil:
			return nil
		}
		if err := send(&pb.WatchResponse{Grant: g}); err != nil {
			return err
		}
	}
}

// next takes the oldest news, nil if there are none.
func (s *Service) next(w *watcher) (g *pb.Grant, slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.ids) == 0 {
		return nil, w.slow
	}
	id := w.ids[0]
	w.ids = w.ids[1:]
	g = w.news[id]
	delete(w.news, id)
	return g, w.slow
}
