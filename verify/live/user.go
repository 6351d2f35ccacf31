package live

import (
	"context"
	"errors"
	"time"

	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A user is one closed loop, of one life of a process. Its methods that node.Sharer has are called by the node, and the others by a
// goroutine of its own.
type user struct {
	r     *run
	k     int // of the workload
	p     process
	told  chan protocol.Do // Crit, Ejected and Rem: no more of them than fit before the next try
	ended chan struct{}    // closed when its process has crashed
	wants protocol.Groups  // written before Try
	group protocol.Group   // written before told

	// Guarded by r.mu.
	busy bool // it thinks, or holds
	gone bool // its process crashes: what it is told does not count
}

// live goes through all entries that the user has to make, after so long. It returns when those are made, and when its process
// crashes or ctx ends.
func (u *user) live(ctx context.Context, after time.Duration) {
	for more := true; more; {
		if !u.rests(ctx, after) {
			return
		}
		if err := u.try(); err != nil {
			u.r.breaks(u, err)
			return
		}
		do := u.hears(ctx)
		gaveUp := do == protocol.Rem
		if do == protocol.Crit && u.stays(ctx) {
			do = u.hears(ctx)
		}
		if do != protocol.Rem {
			return
		}
		after, more = u.r.thinks(u, gaveUp)
	}
}

// try lets the user want what the workload says.
func (u *user) try() error {
	u.wants = u.r.tries(u)
	return u.p.try(u)
}

// stays is the critical section, and tells the node of its end. It reports false if ctx ends.
func (u *user) stays(ctx context.Context) bool {
	hold, comesDown := u.r.holds(u, u.group)
	lost := false
	if comesDown {
		rest := hold / 2
		if lost = u.holds(ctx, hold-rest); !lost && u.r.downgrades(u, u.group.Below()) {
			u.p.downgrade(u.group.Below())
		}
		hold = rest
	}
	if !lost {
		u.holds(ctx, hold)
	}
	if u.isOver(ctx) {
		return false
	}
	u.r.exits(u)
	u.p.exit()
	return true
}

// holds stays inside for so long, or until its process or ctx ends. It reports whether the section was lost before.
func (u *user) holds(ctx context.Context, d time.Duration) (lost bool) {
	until := time.Now().Add(d)
	if d > exact {
		select {
		case <-u.told: // Ejected: nothing else comes before Exit
			return true
		case <-u.ended:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(d - exact):
		}
	}
	exactly(until)
	return false
}

// isOver reports whether the process or ctx has ended.
func (u *user) isOver(ctx context.Context) bool {
	select {
	case <-u.ended:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// rests waits for so long, and reports whether its process and ctx last.
func (u *user) rests(ctx context.Context, d time.Duration) bool {
	until := time.Now().Add(d)
	if d > exact {
		select {
		case <-u.ended:
		case <-ctx.Done():
		case <-time.After(d - exact):
		}
	}
	if u.isOver(ctx) {
		return false
	}
	exactly(until)
	return true
}

// exact is the last part of a time, which is waited for without rounding.
const exact = 2 * time.Millisecond

func exactly(until time.Time) {
	if d := time.Until(until); d > 0 {
		faultnet.Sleep(d)
	}
}

// hears waits for what the node tells, 0 if its process or ctx ends first. A section that was lost as it was left is over.
func (u *user) hears(ctx context.Context) protocol.Do {
	for {
		select {
		case do := <-u.told:
			if do != protocol.Ejected {
				return do
			}
		case <-u.ended:
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// Wants implements node.Sharer.
func (u *user) Wants() protocol.Groups { return u.wants }

// Wanted implements node.Sharer.
func (u *user) Wanted() {}

// Supported implements node.User.
func (u *user) Supported(map[protocol.ID]uint64) {}

// Crit implements node.User.
func (u *user) Crit(e node.Entry) {
	u.group = e.Group
	u.tell(protocol.Act{Do: protocol.Crit, Arg: e.Token, Data: string(e.Group)})
}

// Ejected implements node.User.
func (u *user) Ejected() { u.tell(protocol.Act{Do: protocol.Ejected}) }

// Rem implements node.User.
func (u *user) Rem(why error) {
	var reason protocol.Reason
	if why != nil && !errors.As(why, &reason) {
		u.r.breaks(u, why)
		return
	}
	u.tell(protocol.Act{Do: protocol.Rem, Arg: uint64(reason)})
}

func (u *user) tell(a protocol.Act) {
	if u.r.act(u, a) {
		u.told <- a.Do
	}
}
