package api

import (
	"context"
	"fmt"
	"time"
)

// Shutdown opens no session and takes no lock any more, ends the streams, and
// leaves each grant when its client has released it or the last promise about it
// is over: within the lesser of the session's lease and the cluster's. It returns
// when nothing is left. When ctx ends before, the promises that are left are
// broken, and the error says how many.
func (s *Service) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.isClosing() {
		close(s.closing)
	}
	s.mu.Unlock()
	err := s.keepPromises(ctx)
	for _, x := range s.all() {
		s.close(x, "this service ends", always)
	}
	s.running.Wait() // nothing is added any more: there is no session left
	return err
}

// keepPromises waits until no promise is left.
func (s *Service) keepPromises(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n := s.promises(time.Now())
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("api: %d grants end sooner than their clients were told: %w", n, ctx.Err())
		case <-tick.C:
		}
	}
}

// promises counts the grants that clients may believe to be held.
func (s *Service) promises(now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		for _, g := range x.grants {
			if g.section != nil && g.promised.After(now) {
				n++
			}
		}
	}
	return n
}

func (s *Service) all() (list []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		list = append(list, x)
	}
	return list
}
