package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// mooting is two members: p1 enters after the first of two messages from p2, and has done with the other one.
func mooting(moot func(p *toy) bool) protocol.Algorithm[uint8] {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try && p.id == 0:
			out.Send(1, 1)
		case ev.Kind == protocol.Receive && p.id == 1:
			out.Send(0, 2)
			out.Send(0, 3)
		case ev.Kind == protocol.Receive && p.r[0] == 0:
			p.r[0] = 1
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	a.Moot = func(p protocol.Process[uint8], _ protocol.ID, _ uint8) bool { return moot(p.(*toy)) }
	return a
}

// Messages that are moot are forgotten, which changes no verdict; a claim that is false is found; and who
// follows a run may deliver them.
func TestMoot(t *testing.T) {
	k := config(2)
	k.Entries, k.Properties = []int{1, 0}, []string{"all"}
	a := mooting(func(p *toy) bool { return p.id == 0 && p.r[0] == 1 })
	v := run(t, a, k)
	without := a
	without.Moot = nil
	if w := run(t, without, k); v.Verdict != check.Holds || w.Verdict != check.Holds || v.States >= w.States {
		t.Errorf("%s with %d states, and with moot messages %s with %d", v.Verdict, v.States, w.Verdict, w.States)
	}
	for _, workers := range []int{1, 2} {
		k.Workers = workers
		_, err := check.Run(mooting(func(p *toy) bool { return p.id == 0 }), k)
		if !errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), "M(2) is moot, and yet it does something") {
			t.Errorf("%v, want a false claim", err)
		}
	}
	w, err := check.NewWalk(a, k)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader("try p1\ndeliver p1 p2 M(1)\ndeliver p2 p1 M(3)\ndeliver p2 p1 M(2)\nexit p1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if _, err := w.Take(s); err != nil {
			t.Error(err)
		}
	}
	k.Prefix = steps[:3]
	if v := run(t, a, k); v.Verdict != check.Holds {
		t.Errorf("after a prefix: %s of %s: %s", v.Verdict, v.Property, v.Reason)
	}
}
