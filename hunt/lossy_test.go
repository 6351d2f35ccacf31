package hunt

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/link"
	"github.com/poundlock/poundlock/protocol"
)

// An algorithm whose model has reliable channels is given no others. Behind package link it
// meets such that lose and such that repeat, with time and without.
func TestReliable(t *testing.T) {
	reliable := func(i protocol.Info) bool {
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
		{ricartagrawala.Algorithm.Info, link.Wrap(ricartagrawala.Algorithm).Info},
		{ricartagrawala.Printed.Info, link.Wrap(ricartagrawala.Printed).Info},
		{suzukikasami.Algorithm.Info, link.Wrap(suzukikasami.Algorithm).Info},
		{sigma.Algorithm.Info, link.Wrap(sigma.Algorithm).Info},
		{sigma.Literal.Info, link.Wrap(sigma.Literal).Info},
	} {
		if !reliable(a.bare) {
			t.Errorf("%s %s: its messages are lost or repeated", a.bare.Name, a.bare.Variant)
		}
		if reliable(a.linked) {
			t.Errorf("%s %s: behind package link nothing is lost or repeated", a.linked.Name, a.linked.Variant)
		}
	}
}

// Messages that overtake each other on channels that keep their order: no such hunt.
func TestLinkedFIFO(t *testing.T) {
	_, err := Run(link.Wrap(sigma.Algorithm), Config{Runs: 1, FIFO: true})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "FIFO channels: its messages overtake each other") {
		t.Errorf("%v", err)
	}
}
