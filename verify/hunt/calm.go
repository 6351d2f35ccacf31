package hunt

import (
	"github.com/poundlock/poundlock/verify/history"
)

// settle takes the steps of a calm, until all users are done or somebody is stuck.
func (w *walker) settle() {
	w.calm = true
	clear(w.slowUntil)
	w.wake()
	if w.Peers {
		clear(w.named)
	}
	w.visit()
	if w.finish(); w.Weak {
		w.converge()
	}
}

// patience is how many steps of a calm are too many without an entry: what is in flight arrives first, with
// answers and their answers.
func (w *walker) patience() int {
	steps := 300*w.Total*w.sys.N + 20*w.Pending()
	if w.Algorithm.Stale != nil {
		steps *= 10 // each message is acknowledged, and sent again until it is
	}
	return steps
}

// finish takes steps until all users are done or somebody is stuck.
func (w *walker) finish() {
	last, entries, patience := len(w.run), w.Entries, w.patience()
	for w.Found == nil && w.left() {
		if w.Entries > entries {
			last, entries = len(w.run), w.Entries
		}
		if !w.next() {
			w.unable()
			return
		}
		if len(w.run)-last > patience {
			w.endless(len(w.run) - last)
			return
		}
	}
}

// next takes one step of a calm. Messages, users and the detector take turns;
// timers fire when nothing else happens, and now and then, for who waits may send
// messages without end.
func (w *walker) next() bool {
	if len(w.run)%(10*w.Total) == 0 && w.fire() {
		return true
	}
	for range 3 {
		w.turn++
		switch w.turn % 3 {
		case 0:
			if w.message(0) || w.share() {
				return true
			}
		case 1:
			if w.consent() || w.user() {
				return true
			}
		default:
			if w.tell() {
				return true
			}
		}
	}
	return w.fire()
}

// trying returns a user that waits, or -1.
func (w *walker) trying() int {
	for i := range w.Total {
		if w.Is(i) && history.Wait(w.Section(i)) != "" {
			return i
		}
	}
	return -1
}
