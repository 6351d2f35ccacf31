package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// What would not fit into memory is refused before it is begun.
func TestTooManyMembers(t *testing.T) {
	c := sim.Config{Config: protocol.Config{N: 1 << 16}, Entries: []int{1}}
	_, err := sim.Run(suzukikasami.Algorithm, c)
	if !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), "65536 members: what they know of each other takes") {
		t.Error(err)
	}
	c.FIFO = true
	if _, err := sim.Run(toys(protocol.Members, grabber(noToken)), c); err == nil || !strings.Contains(err.Error(), "65536 members") {
		t.Errorf("a channel to each member: %v", err)
	}
	c.FIFO = false
	if _, err := sim.Run(toys(protocol.Members, grabber(noToken)), c); err != nil {
		t.Errorf("members that know nothing: %v", err)
	}
}
