package node

import "sync/atomic"

// A baton is the right to step a loop. Its owner waits for it, and anybody else takes it if it is free. It is no mutex, because time in a bubble
// of testing/synctest stands still while somebody waits for one; and no channel, because nearly always nobody waits, and a channel costs more then.
type baton struct {
	state atomic.Int32
	back  chan struct{} // has an element when it may be free
}

const (
	batonFree int32 = iota
	batonTaken
	batonAwaited // taken, and its owner waits
)

func newBaton() baton { return baton{back: make(chan struct{}, 1)} }

// tryTake takes it if it is free.
func (b *baton) tryTake() bool { return b.state.CompareAndSwap(batonFree, batonTaken) }

// take is for its owner.
func (b *baton) take() {
	if b.tryTake() {
		return
	}
	for b.state.Swap(batonAwaited) != batonFree { // so the next give has something to tell, though perhaps nobody
		<-b.back
	}
}

func (b *baton) give() {
	if b.state.Swap(batonFree) == batonAwaited {
		select {
		case b.back <- struct{}{}:
		default:
		}
	}
}
