package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
)

// A run that has more messages on their way than fit is refused, and not one with as many as fit.
func TestTooManyMessages(t *testing.T) {
	defer func(most int) { mostFlight = most }(mostFlight)
	for _, delay := range []Dist{Constant(time.Millisecond), Exponential(time.Millisecond)} {
		c := Config{Config: protocol.Config{N: 50}, Entries: []int{2}, Think: Constant(0), Delay: delay}
		mostFlight = 100
		if _, err := Run(ricartagrawala.Algorithm, c); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), "more than 100 messages are on their way: want fewer members") {
			t.Errorf("%v: %v", delay, err)
		}
		mostFlight = 2 * 50 * 50
		if r, err := Run(ricartagrawala.Algorithm, c); err != nil || r.Entries != 100 {
			t.Errorf("%v: %v", delay, err)
		}
	}
}
