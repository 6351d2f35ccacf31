package hunt

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// An algorithm whose model has reliable channels is given no others. Behind package reliable it
// meets such that lose and such that repeat, with time and without.
func TestReliable(t *testing.T) {
	given := func(i protocol.Info) bool {
		c := Config{Seed: 7}
		var drawn kinds
		for run := range int64(500) {
			p := c.draw(i, true, run, 0)
			drawn |= p.kinds & (drops | copies)
			if p.timed && (p.has(drops) != (p.config.Loss > 0) || p.has(copies) != (p.config.Dup > 0)) {
				t.Errorf("%s: run %d has faults %b, loses %v and repeats %v", i.Name, run, p.kinds, p.config.Loss, p.config.Dup)
			}
		}
		return drawn == 0
	}
	for _, a := range []struct{ bare, linked protocol.Info }{
		{ricartagrawala.Algorithm.Info, reliable.Wrap(ricartagrawala.Algorithm).Info},
		{ricartagrawala.Printed.Info, reliable.Wrap(ricartagrawala.Printed).Info},
		{suzukikasami.Algorithm.Info, reliable.Wrap(suzukikasami.Algorithm).Info},
		{sigma.Algorithm.Info, reliable.Wrap(sigma.Algorithm).Info},
		{sigma.Literal.Info, reliable.Wrap(sigma.Literal).Info},
	} {
		if !given(a.bare) {
			t.Errorf("%s %s: its messages are lost or repeated", a.bare.Name, a.bare.Variant)
		}
		if given(a.linked) {
			t.Errorf("%s %s: behind package reliable nothing is lost or repeated", a.linked.Name, a.linked.Variant)
		}
	}
}

// Messages that overtake each other on channels that keep their order: no such hunt.
func TestLinkedFIFO(t *testing.T) {
	_, err := Run(reliable.Wrap(sigma.Algorithm), Config{Runs: 1, FIFO: true})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "FIFO channels: its messages overtake each other") {
		t.Errorf("%v", err)
	}
}
