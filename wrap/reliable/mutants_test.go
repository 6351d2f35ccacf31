package reliable

import (
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// thrifty simulates channels that lose much: a lost message, or a lost acknowledgement,
// is made up for once.
func thrifty() (string, error) {
	r, err := sim.Run(Wrap(ricartagrawala.Algorithm), sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{30}, Loss: 0.2,
		Think: sim.Constant(50 * time.Millisecond), Seed: 1, Patience: 1 << 16,
	})
	switch {
	case err != nil:
		return "", err
	case r.ViolationCount > 0:
		return "simulated, " + r.Violations[0], nil
	case r.Retransmitted > r.Lost:
		return fmt.Sprintf("endless retransmission: %d sent again, %d lost", r.Retransmitted, r.Lost), nil
	}
	return "", nil
}

// TestMutants breaks the wrapper in ways that have names; TestHunted takes some of them in every lane.
func TestMutants(t *testing.T) {
	outside := map[string]string{
		"Window":       "a machine of its own, with tests of its own",
		"wrapped.text": "shown to people",
		"wrapped.ints": "a measure",
		"wrapped.info": "no machine",
		"Check":        "TestCheck",
	}
	for _, name := range []string{"Process", "peer", "wrapped", "Wrap", "view"} {
		outside[name] = "broken by name"
	}
	unshifted := func(a protocol.Algorithm[ricartagrawala.Message], c check.Config) mutant.Check {
		c.NoShift, c.MaxMemory = true, 64<<20
		return mutant.Decided(Wrap(a), c)
	}
	checks := append(courierModels(),
		unshifted(ricartagrawala.Algorithm, with(members(2, 1), loss(1))),
		thrifty,
		steady,
	)
	checks = append(checks, staleModels(nil)...)
	checks = append(checks, unshifted(ricartagrawala.Algorithm, members(2, 2)), algotest.Examine(Wrap(suzukikasami.Algorithm), algotest.Options{
		Sizes: []int{3}, Skip: map[string]string{"Allocations": "cannot fail by a wrong step"},
	}))
	replace, survivors := broken()
	mutant.Test(t, mutant.Config{Lane: lane.Long, Checks: checks, Outside: outside, Replace: replace, Survivors: survivors})
}

// broken are the mutants with names, and those of them that are harmless.
func broken() (replace []mutant.Replacement, survivors map[string]string) {
	replace = []mutant.Replacement{
		mutant.Edit("duplicates are taken", "case number < next || known:\n\t\treturn false", "case number < next || known:\n\t\treturn true"),
		mutant.Edit("duplicates out of order are taken", "case number < next || known:", "case number < next || known && false:"),
		mutant.Edit("order is not kept", "case p.wrapped.inner.FIFO:\n\t\treturn false", "case false:\n\t\treturn false"),
		mutant.Edit("frames do not name their sender's life", "return p.life", "return 0"),
		mutant.Edit("frames do not name their sender's life", "q.theirs, q.closed = theirs, false", "q.theirs, q.closed = 0, false"),
		mutant.Edit("frames do not name their sender's life", "if life > q.theirs {", "if false {"),
		mutant.Edit("a frame to an old life is taken", "case f.To != p.mine(q):\n\t\tif", "case f.To > p.mine(q):\n\t\tif"),
		mutant.Edit("a frame of an old life is taken", "return theirs < q.theirs || ", "return "),
		mutant.Edit("what is dropped is acknowledged", "return false // it comes again", "q.window.seen = number; return false"),
		mutant.Edit("nothing is sent again", "if q.window.Unacked() == 1 {\n\t\tout.SetTimer(q.timer(), p.after, 0)\n\t}", ""),
		mutant.Edit("what was sent to a member not yet known is forgotten", "q.theirs = theirs\n\t\tp.repeat(q, out)", "p.shut(q, out); q.theirs, q.closed = theirs, false"),
		mutant.Edit("a new life goes on with the old window", "p.shut(q, out)\n\tq.theirs, q.closed = theirs, false", "q.theirs, q.closed = theirs, false"),
		mutant.Edit("a lapsed lease closes nothing", "p.shut(p.peer(ev.From), out)", ""),
	}
	return append(replace,
		mutant.Edit("a fixed number of messages is sent again", "return min(max(burst, all/2), all)", "return min(burst, all)"),
		mutant.Edit("leases are not counted", "q.lease++", ""),
		mutant.Edit("a lapsed lease leaves the window", "p.shut(p.peer(ev.From), out)", "p.peer(ev.From).closed = true"),
		mutant.Edit("nothing is acknowledged", "p.ack(q, q.window.Received(), out)", ""),
		mutant.Edit("duplicates are not acknowledged again", "p.ack(q, f.Number, out) // its ACK may have been lost", ""),
		mutant.Edit("it is sent again once only", "out.Resend(q.id, Frame[M]{From: p.mine(q), To: q.theirs, Number: number, Msg: m})\n\t}\n\tout.SetTimer(q.timer(), p.after, 0)", "out.Resend(q.id, Frame[M]{From: p.mine(q), To: q.theirs, Number: number, Msg: m})\n\t}"),
		mutant.Edit("it is sent again with another number", "number++\n\t\tout.Resend", "number += 2\n\t\tout.Resend"),
		mutant.Edit("a member met at last gets nothing", "p.repeat(q, out)\n\t\treturn\n", "return\n"),
		mutant.Edit("a frame to an old life is not refused", "if !f.Ack && p.refuses() {", "if false {"),
		mutant.Edit("what is refused late is news", "case f.Refused && q.awaits(f.To, f.Number):", "case f.Refused && f.From > q.theirs:"),
		mutant.Edit("a frame to an old life is news", "case f.To != p.mine(q):\n\t\tif", "case f.To != p.mine(q):\n\t\tif f.From > q.theirs {\n\t\t\tp.meet(q, f.From, out)\n\t\t}\n\t\tif"),
		mutant.Edit("the timer goes on when all is acknowledged", "case after == 0:\n\t\tout.StopTimer(q.timer())", "case after == 0:"),
		mutant.Edit("the window forgets what is not acknowledged", "q.window.Ack(number)", "q.window.Ack(q.window.most)"),
		mutant.Edit("the checker forgets what has not arrived", "case !q.has(f.Number):\n\t\treturn false", "case false:\n\t\treturn false"),
	), map[string]string{
		"a member met at last gets nothing": "the timer sends it a little later",
	}
}
