package reliable

import (
	"errors"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// Check says why channels cannot be made reliable for an algorithm, nil if they can.
//
// A channel keeps its promise only if both of its ends live: what a member sent before it
// crashed, and its channel lost, nobody sends again. And who is suspected wrongly would find
// its channel closed. Where clients crash they hold nothing that others need.
func Check(i protocol.Info) error {
	switch {
	case i.Registers != nil:
		return fmt.Errorf("it has nothing to acknowledge: %w", protocol.ErrRegisters)
	case i.Users != protocol.Clients && (i.Detector != protocol.NoDetector || i.Tolerates&protocol.Recovery != 0):
		return errors.New("its members crash, and nobody sends again what they sent and a channel lost")
	}
	return nil
}
