package check_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// turns lets peers in as they come, if they hear from the other one first; p2 only if
// it never does.
func turns(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Try:
		out.Broadcast(1)
	case protocol.Exit:
		out.Rem()
	case protocol.Receive:
		if ev.Msg == 1 {
			out.Send(ev.From, 2)
		} else if p.id == 0 {
			out.Crit(0)
		}
	}
}

// A loop is taken twice, and judged: who waits in it for ever does so in a fair run
// only if nothing that must happen is neglected.
func TestRepeat(t *testing.T) {
	const round = "try p1\ndeliver p1 p2 M(1)\ndeliver p2 p1 M(2)\nexit p1\n"
	const p2Asks = "try p2\ndeliver p2 p1 M(1)\n"
	for name, test := range map[string]struct {
		before, loop string
		properties   string
		want         check.Repeated
		err          string
	}{
		"starves": {
			before: p2Asks + "deliver p1 p2 M(2)\n", loop: round, properties: check.Starvation,
			want: check.Repeated{Property: check.Starvation, Reason: "p2 waits for ever"},
		},
		"nobody asked for that": {
			before: p2Asks + "deliver p1 p2 M(2)\n", loop: round, properties: check.Exclusion,
			want: check.Repeated{Reason: "p2 waits for ever"},
		},
		"bypassed": {
			before: p2Asks + "deliver p1 p2 M(2)\n", loop: round, properties: check.Bypass,
			want: check.Repeated{Property: check.Bypass, Reason: "p2 is overtaken for ever"},
		},
		"a message is neglected": {
			before: p2Asks, loop: round, properties: check.Starvation,
			want: check.Repeated{Reason: "no fair run goes on like that: it neglects deliver p1 p2 M(2)"},
		},
		"an exit is neglected": {
			before: "try p1\ndeliver p1 p2 M(1)\ndeliver p2 p1 M(2)\n", properties: check.Starvation,
			want: check.Repeated{Reason: "no fair run goes on like that: it neglects exit p1"},
		},
		"rests": {
			before: p2Asks + "deliver p1 p2 M(2)\n", properties: check.MakesProgress,
			want: check.Repeated{Property: check.MakesProgress, Reason: "somebody waits all the time, and nobody is ever inside"},
		},
		"nobody waits": {loop: round, properties: check.Starvation, want: check.Repeated{Reason: "nobody waits for ever"}},
		"open":         {loop: "try p1\n", err: "the loop does not lead back to its beginning: p1, the messages on their way changed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(2)
			c.Entries = []int{check.Unlimited}
			if test.properties != "" {
				c.Properties = []string{test.properties}
			}
			w := walked(t, algorithm(peers, turns), c, strings.Split(test.before, "\n"))
			w.Loop()
			steps, err := w.Names().Parse(strings.NewReader(test.loop))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range steps {
				if _, err := w.Take(s); err != nil {
					t.Fatal(err)
				}
			}
			got, err := w.Repeat()
			if got != test.want || (err == nil) != (test.err == "") ||
				err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%+v, %v\nwant %+v, %q", got, err, test.want, test.err)
			}
		})
	}
	w := walked(t, algorithm(peers, turns), config(2), nil)
	if _, err := w.Repeat(); err == nil || !strings.Contains(err.Error(), "no loop has begun") {
		t.Errorf("without a loop: %v", err)
	}
}
