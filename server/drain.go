package server

import (
	"context"
	"time"
)

// Drain stops giving supports to anybody, for good, and waits until nobody has one, or
// until ctx ends. It returns how many locks are still held: for each of their holders
// the end of this server is one loss of memory, and nobody's where it returns 0. Run
// goes on until its context ends. Drain does nothing to a server that does not run.
func (s *Server) Drain(ctx context.Context) (held int) {
	s.turn.Lock() // a hand-over that has begun comes to its end
	n := s.running()
	if n == nil || s.handedOver {
		s.turn.Unlock()
		return 0
	}
	log := s.config.Log.With("server", s.config.Name)
	began := time.Now()
	log.Info("draining: gives nothing to anybody any more", "held", n.Held())
	s.turn.Unlock()
	if held = n.Drain(ctx); held > 0 {
		log.Warn("gave up draining: for the holders this server loses its memory", "held", held,
			"after", time.Since(began).Round(time.Millisecond))
		return held
	}
	log.Info("drained: nobody loses anything", "after", time.Since(began).Round(time.Millisecond))
	return 0
}
