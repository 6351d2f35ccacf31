package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/poundlock/poundlock/internal/supervise"
)

// An interruption is a context that ends with the first signal that would have
// ended this process while it waits.
type interruption struct {
	context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{}  // closed when nobody listens any more
	signal syscall.Signal // constant then
}

func listen(ctx context.Context, signals <-chan os.Signal) *interruption {
	i := &interruption{ended: make(chan struct{})}
	i.Context, i.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(i.ended)
		for i.signal == 0 {
			select {
			case <-i.Done():
				return
			case s := <-signals:
				if s == syscall.SIGTSTP {
					supervise.Pause(signals, i.hear)
				} else {
					i.hear(s)
				}
			}
		}
	}()
	return i
}

func (i *interruption) hear(s os.Signal) {
	switch s {
	case syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGPIPE, syscall.SIGTSTP:
	default:
		if i.signal == 0 {
			i.signal = s.(syscall.Signal)
			i.cancel(fmt.Errorf("signal: %v", s))
		}
	}
}

// stop ends the context, leaves later signals alone and returns the one that came, 0 for none.
func (i *interruption) stop() syscall.Signal {
	i.cancel(nil)
	<-i.ended
	return i.signal
}
