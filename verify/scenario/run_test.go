package scenario

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

func TestNamesText(t *testing.T) {
	for text, want := range map[string]string{
		"RESPONSE(#4@1 inc=4)":            "RESPONSE(c1@1 inc=4)",
		"TOKEN([1,0],[#0,#3])":            "TOKEN([1,0],[s1,s4])",
		"no mark, # alone, #x":            "no mark, # alone, #x",
		"#123456789012345678901234567890": "#123456789012345678901234567890",
	} {
		if got := servers.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// Each verb has its process, and the other one where there is one.
func TestEvent(t *testing.T) {
	for line, want := range map[string]Event{
		"try c1":                   {Process: "c1"},
		"try c1 !w,a":              {Process: "c1", Wants: "!w,a"},
		"deliver c1 s1 REQUEST(1)": {Process: "s1", From: "c1", To: "s1", Message: "REQUEST(1)"},
		"suspect s1 c1":            {Process: "s1", Subject: "c1"},
		"timeout c1 3":             {Process: "c1", Timer: 3},
		"partition s1,s2 for 5ms":  {},
		"pause c1 for 5ms":         {Process: "c1"},
		"loop":                     {},
	} {
		steps, err := servers.Parse(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		want.Line, want.Verb, want.Effects = line, steps[0].Verb, []Effect{}
		if got := servers.Event(steps[0]); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

func TestDid(t *testing.T) {
	e := Event{Process: "c1", Effects: []Effect{
		{Do: Sends, To: "s1", Message: "A"},
		{Do: Sends, To: "s2", Message: "B"},
		{Do: Sends, To: "s2", Message: "A"},
		{Do: Sends, To: "s3", Message: "A", Lost: "s3 is not there"},
		{Do: Enters, Token: 7},
		{Do: Enters, Token: 8, Group: "a"},
		{Do: Ejected},
		{Do: Leaves, Reason: "too few servers"},
		{Do: Wrong, Reason: "model: panic: what now?"},
	}}
	want := []string{
		"c1 sends A to s1, s2", "c1 sends B to s2", "c1 sends A to s3 (lost: s3 is not there)",
		"c1 enters with token 7", "c1 enters group a with token 8", "c1 lost its critical section", "c1 is in its remainder section: too few servers",
		"model: panic: what now?",
	}
	if got := e.Did(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What WriteRun writes is parsed as the same steps, and says what it is a run of.
func TestWriteRun(t *testing.T) {
	steps := []Step{
		{Verb: Try, Procs: []protocol.ID{4}},
		{Verb: Deliver, Procs: []protocol.ID{4, 0}, Text: "REQUEST(1)"},
		{Verb: Exit, Procs: []protocol.ID{4}},
	}
	run := Run{Loop: 1}
	for _, s := range steps {
		e := servers.Event(s)
		e.Effects = append(e.Effects, Effect{Do: Sends, To: "s1", Message: "try c2"})
		run.Steps = append(run.Steps, e)
	}
	var b strings.Builder
	if err := WriteRun(&b, []string{"poundlock-lab check sigma -n 4", "and more"}, run); err != nil {
		t.Fatal(err)
	}
	got, err := servers.Parse(strings.NewReader(b.String()))
	want := slices.Insert(slices.Clone(steps), 1, Step{Verb: Loop})
	for i := range got {
		got[i].Line = 0
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nbecame %+v, %v", b.String(), got, err)
	}
	if got := Command(b.String()); !slices.Equal(got, []string{"check", "sigma", "-n", "4"}) {
		t.Errorf("a run of %q", got)
	}
	if got := Command("try c1\n# a poundlock\n"); got != nil {
		t.Errorf("a run of %q", got)
	}
}
