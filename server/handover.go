package server

import (
	"context"
	"net"
	"time"

	"github.com/poundlock/poundlock/server/internal/handover"
)

// maxListenPause is between attempts to listen again.
const maxListenPause = 500 * time.Millisecond

// ErrHandover says that a predecessor lives and does not hand its table over: this
// process must not serve.
var ErrHandover = handover.ErrLives

// CheckHandover says what is wrong with an address of a hand-over, unix:/path: whoever
// can open the socket gets every lock, so its directory must be closed to others.
func CheckHandover(addr string) error { return handover.Check(addr) }

// A heritage is what a hand-over sees of a server: it implements handover.Server.
type heritage struct{ *Server }

// Listen implements handover.Server.
func (s heritage) Listen() (net.Listener, error) { return s.listen() }

// Give implements handover.Server.
func (s heritage) Give(do func(mute time.Duration, stands func()) (gone bool)) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.handedOver = do(s.mute, func() { s.accepts.Store(false) })
}

// ServeAgain implements handover.Server: it serves once more where the predecessor, which this still is, did. Another
// process may have the address by now: it keeps
// trying, and whoever has a turn meanwhile does not wait for it.
func (s heritage) ServeAgain(ctx context.Context) {
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, maxListenPause) {
		err := s.reopen()
		if err == nil {
			return
		}
		s.config.Log.Error("cannot serve again after a hand-over that failed", "server", s.config.Name, "reason", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// reopen listens again, unless the server does or is mute.
func (s *Server) reopen() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.mute != 0 || s.accepts.Load() {
		return nil
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	if err := s.node.Serve(l); err != nil {
		return err
	}
	s.accepts.Store(true)
	return nil
}
