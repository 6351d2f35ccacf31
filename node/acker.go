package node

import (
	"sync"
	"time"
)

// An acker has connections acknowledge what they owe, a while after they began to. All of a node have one: a timer of each would start
// a goroutine for each, and most have nothing to do then, because something else has gone out.
type acker struct {
	mu    sync.Mutex // taken after those of connections
	young []*conn    // that began within the present half of ackDelay
	old   []*conn    // and those before
	timer *time.Timer
	set   bool
}

// add has a connection acknowledge between half of ackDelay and all of it later.
func (a *acker) add(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.young = append(a.young, c)
	if !a.set {
		a.arm()
	}
}

func (a *acker) arm() {
	if a.set = true; a.timer == nil {
		a.timer = time.AfterFunc(ackDelay/2, a.tick)
		return
	}
	a.timer.Reset(ackDelay / 2)
}

func (a *acker) tick() {
	a.mu.Lock()
	due := a.old
	a.old, a.young = a.young, nil
	if a.set = len(a.old) > 0; a.set {
		a.arm()
	}
	a.mu.Unlock()
	for _, c := range due {
		c.acknowledge()
	}
}
