package diagram_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A member that comes back has a line for each of its lives, and who names a leader says
// so. What a suspected member sent before still arrives.
func TestLives(t *testing.T) {
	two := scenario.Names{Members: 2}
	steps, err := two.Parse(strings.NewReader("timeout p2 1\ncrash p2\nsuspect p1 p2\ndeliver p2 p1 HELLO\nrecover p2\nrestore p1 p2\nsuspect p1 p2"))
	if err != nil {
		t.Fatal(err)
	}
	r := scenario.Run{Processes: []string{"p1", "p2"}, Loop: scenario.NoLoop}
	for _, s := range steps {
		r.Steps = append(r.Steps, two.Event(s))
	}
	r.Steps[0].Effects = []scenario.Effect{
		{Do: scenario.Sends, To: "p1", Message: "HELLO"},
		{Do: scenario.Sends, To: "p1", Message: "LATE"}, // never arrives in this run
	}
	r.Steps[2].Effects = []scenario.Effect{{Do: scenario.Leads, To: "p1", Epoch: 4}}
	var svg, text bytes.Buffer
	if err := diagram.SVG(&svg, r, "", ""); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{
		`class="life"`: 3, "p1 leads epoch 2,p1": 1, ">recover<": 1, ">crash<": 1, "LATE: on its way at the end": 1, "never arrives": 0,
	} {
		if got := strings.Count(svg.String(), what); got != want {
			t.Errorf("%d times %s, want %d:\n%s", got, what, want, svg.String())
		}
	}
	if err := diagram.Text(&text, r, diagram.Width); err != nil || !strings.Contains(text.String(), "p1 says that p1 leads epoch 4") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

// What users do with a replicated object is named, and a label that is too long is cut: the text has it all.
func TestObject(t *testing.T) {
	two := scenario.Names{Members: 2}
	vote := "NEWEP(0,1,p1,log[" + strings.Repeat("x", 50) + "])"
	steps, err := two.Parse(strings.NewReader("issue p1 add 3\ndecide 0 " + vote + "\ndeliver p2 p1 " + vote))
	if err != nil {
		t.Fatal(err)
	}
	r := scenario.Run{Processes: []string{"p1", "p2"}, Loop: scenario.NoLoop}
	for _, s := range steps {
		r.Steps = append(r.Steps, two.Event(s))
	}
	r.Steps[0].Effects = []scenario.Effect{{Do: scenario.Executes, Operation: "add 3"}, {Do: scenario.Succeeds}}
	r.Steps[1].Effects = []scenario.Effect{{Do: scenario.Sends, To: "p1", Message: vote}}
	r.Steps[1].Process = "p2"
	var svg, text bytes.Buffer
	if err := diagram.SVG(&svg, r, "", ""); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{">issue add 3, executes add 3, outcome<": 1, ">NEWEP(0,1,p1,..)<": 1, vote + "</title>": 1, vote + "</text>": 0} {
		if got := strings.Count(svg.String(), what); got != want {
			t.Errorf("%d times %s, want %d:\n%s", got, what, want, svg.String())
		}
	}
	if err := diagram.Text(&text, r, diagram.Width); err != nil || !strings.Contains(text.String(), vote) {
		t.Errorf("%v: the text lacks %s", err, vote)
	}
}
