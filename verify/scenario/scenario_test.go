package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

var (
	servers = Names{Members: 4, Clients: true}
	peers   = Names{Members: 3}
)

func TestParse(t *testing.T) {
	got, err := servers.Parse(strings.NewReader(`
# two holders after one memory loss
try c1
  deliver c1 s1 REQUEST(1 2)
at 5ms amnesia s1
at 1h timeout s2 7
at 30ms partition s1,s2,c3 for 10ms
pause c12 for 1s
lapse c1 s4
lose c1 s4 REQUEST(1) seq 2
duplicate s1 c1 OK
try c2 b,!w,a
issue c1 add 3
decide 2 NEWEP(1)
hear s2
`))
	want := []Step{
		{Line: 3, Verb: Try, Procs: []protocol.ID{4}},
		{Line: 4, Verb: Deliver, Procs: []protocol.ID{4, 0}, Text: "REQUEST(1 2)"},
		{Line: 5, Verb: Amnesia, Procs: []protocol.ID{0}, At: 5 * time.Millisecond},
		{Line: 6, Verb: Timeout, Procs: []protocol.ID{1}, Timer: 7, At: time.Hour},
		{Line: 7, Verb: Partition, Procs: []protocol.ID{0, 1, 6}, At: 30 * time.Millisecond, For: 10 * time.Millisecond},
		{Line: 8, Verb: Pause, Procs: []protocol.ID{15}, For: time.Second},
		{Line: 9, Verb: Lapse, Procs: []protocol.ID{4, 3}},
		{Line: 10, Verb: Lose, Procs: []protocol.ID{4, 3}, Text: "REQUEST(1) seq 2"},
		{Line: 11, Verb: Duplicate, Procs: []protocol.ID{0, 4}, Text: "OK"},
		{Line: 12, Verb: Try, Procs: []protocol.ID{5}, Text: "b,!w,a"},
		{Line: 13, Verb: Issue, Procs: []protocol.ID{4}, Text: "add 3"},
		{Line: 14, Verb: Decide, Text: "2 NEWEP(1)"},
		{Line: 15, Verb: Hear, Procs: []protocol.ID{1}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	// What Format prints is read back as the same step.
	for _, s := range want {
		again, err := servers.Parse(strings.NewReader(servers.Format(s)))
		s.Line = 1
		if err != nil || len(again) != 1 || !reflect.DeepEqual(again[0], s) {
			t.Errorf("%q became %+v, %v", servers.Format(s), again, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"fly c1":                   `unknown step "fly": want one of amnesia, begin, cancel, `,
		"read p1 x":                `"p1" is not a process`,
		"issue c1":                 "issue needs a text",
		"decide":                   "decide needs a text",
		"hear s1 2":                `unexpected "2"`,
		"read c1":                  "read needs a register",
		"read c1 num[1] three":     `"three" is not the value of a register`,
		"read c1 num[1] 3 4":       `unexpected "4"`,
		"write c1 num[1] 3":        `unexpected "3"`,
		"begin c1":                 "begin needs a register",
		"try":                      "try names 0 of 1 processes",
		"try p1":                   `"p1" is not a process: want s or c and a number from 1, such as s1`,
		"try c0":                   `"c0" is not a process`,
		"try c01":                  `"c01" is not a process`,
		"try c":                    `"c" is not a process`,
		"amnesia s5":               `there is no member "s5": members are s1 to s4`,
		"try c1 a b":               `unexpected "b"`,
		"try c1 a,":                `bad groups "a,"`,
		"cancel c1 a":              `unexpected "a"`,
		"deliver c1 s1":            "deliver needs a message",
		"deliver c1":               "deliver names 1 of 2 processes",
		"lose c1 s1":               "lose needs a message",
		"duplicate c1":             "duplicate names 1 of 2 processes",
		"timeout s1":               "timeout needs a number",
		"timeout s1 -1":            `"-1" is not the number of a timer`,
		"cut c1 s1":                "for DURATION",
		"try c1 for 5ms":           "for DURATION",
		"pause c1 for 0s":          `"0s" is not a positive duration`,
		"at -1s try c1":            `"-1s" is not a positive duration`,
		"at soon try c1":           `"soon" is not a positive duration`,
		"partition s1,,s2 for 5ms": `"" is not a process`,
	} {
		_, err := servers.Parse(strings.NewReader("# first\n" + line))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want line 2 and %q", line, err, want)
		}
	}
	if _, err := peers.ID("s1"); err == nil {
		t.Error("s1 is a process of a peer algorithm")
	}
}

func TestNames(t *testing.T) {
	for _, n := range []Names{servers, peers} {
		for id := range protocol.ID(n.Members) {
			if got, err := n.ID(n.Of(id)); err != nil || got != id {
				t.Errorf("%s is %d, %v; want %d", n.Of(id), got, err, id)
			}
		}
	}
	if got := servers.Of(4); got != "c1" {
		t.Errorf("the first client is %s", got)
	}
}

// Whatever is parsed prints as something that is parsed as the same.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"try c1", "at 30ms partition s1,s2 for 10ms", "deliver c1 s1 REQUEST(1)", "timeout s1 3", "pause c1 for 5ms",
		"at 1ns crash c9", "read c1 num[2] 07", "write c1 num[1]", "try c1 b,!w,a",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		steps, err := servers.Parse(strings.NewReader(line))
		if err != nil {
			return
		}
		var again strings.Builder
		for i := range steps {
			again.WriteString(servers.Format(steps[i]) + "\n")
			steps[i].Line = i + 1
		}
		got, err := servers.Parse(strings.NewReader(again.String()))
		if err != nil || !reflect.DeepEqual(got, steps) {
			t.Errorf("%q became %q: %+v, %v; want %+v", line, again.String(), got, err, steps)
		}
	})
}
