package diagram_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

var update = flag.Bool("update", false, "write the golden files")

var names = scenario.Names{Members: 2, Clients: true}

// run makes a run of lines "STEP > EFFECT; EFFECT", in which an effect is the name
// of one and its arguments.
func run(t *testing.T, text string) scenario.Run {
	t.Helper()
	r := scenario.Run{Processes: []string{"s1", "s2", "c1", "c2"}, Loop: scenario.NoLoop}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		step, effects, _ := strings.Cut(strings.TrimSpace(line), " > ")
		steps, err := names.Parse(strings.NewReader(step))
		if err != nil {
			t.Fatal(err)
		}
		if steps[0].Verb == scenario.Loop {
			r.Loop = len(r.Steps)
			continue
		}
		e := names.Event(steps[0])
		for _, effect := range strings.Split(effects, ";") {
			words := strings.Fields(effect)
			if len(words) == 0 {
				continue
			}
			f := scenario.Effect{Do: words[0]}
			switch f.Do {
			case scenario.Sends:
				f.To, f.Message = words[1], words[2]
			case scenario.Enters:
				if len(words) > 1 {
					fmt.Sscan(words[1], &f.Token)
				}
			case scenario.Wrong, scenario.Leaves:
				f.Reason = strings.Join(words[1:], " ")
			}
			e.Effects = append(e.Effects, f)
		}
		r.Steps = append(r.Steps, e)
	}
	return r
}

// story has one of everything.
func story(t *testing.T) scenario.Run {
	r := run(t, `
try c1 > send s1 REQUEST(<1&2>); send s2 REQUEST(<1&2>)
deliver c1 s1 REQUEST(<1&2>) > send c1 RESPONSE(c1@1)
try c2 > send s1 REQUEST(2)
loop
deliver s1 c1 RESPONSE(c1@1) > crit 17
amnesia s1
deliver c2 s1 REQUEST(2) > send c2 RESPONSE(c2@2)
lapse c1 s2 > ejected
deliver s1 c2 RESPONSE(c2@2) > crit
exit c1 > rem
timeout c2 3
exit c2
suspect s2 c1
crash c2
`)
	r.End = []scenario.State{
		{Process: "s1", Text: "supports c2@2"},
		{Process: "s2", Section: "down"},
		{Process: "c1", Section: "remainder"},
		{Process: "c2", Section: "crashed"},
	}
	r.InFlight = []scenario.Flight{{From: "c1", To: "s2", Message: "REQUEST(<1&2>)"}}
	return r
}

func TestGolden(t *testing.T) {
	r := story(t)
	for name, write := range map[string]func(io.Writer) error{
		"story.txt": func(w io.Writer) error { return diagram.Text(w, r, diagram.Width) },
		"story.svg": func(w io.Writer) error { return diagram.SVG(w, r, "a <story>", "it is \"over\"") },
		"story.log": func(w io.Writer) error { return diagram.ShiViz(w, r) },
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs (read the difference of go test ./verify/diagram -update before you commit it):\n%s", path, &got)
		}
	}
}

// texts returns all text of a well-formed SVG file.
func texts(t *testing.T, svg string) []string {
	t.Helper()
	var all []string
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok && len(bytes.TrimSpace(text)) > 0 {
			all = append(all, string(text))
		}
	}
}

// Whatever stands in a message comes out as it went in, and nothing of it is markup.
func TestEscaped(t *testing.T) {
	const nasty = `</text><script>alert("1")&'`
	r := run(t, "try c1 > send s1 "+nasty+"\ndeliver c1 s1 "+nasty)
	r.End = []scenario.State{{Process: "s1", Text: nasty}}
	var b strings.Builder
	if err := diagram.SVG(&b, r, nasty, nasty); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") {
		t.Error("a message is markup")
	}
	found := 0
	for _, text := range texts(t, b.String()) {
		if strings.Contains(text, nasty) {
			found++
		}
	}
	if found < 5 {
		t.Errorf("%d of title, description, label, message, reason and state are there, want at least 5", found)
	}
}

// Two hundred steps of twenty processes: everything stays inside the picture.
func TestLarge(t *testing.T) {
	r := scenario.Run{Loop: scenario.NoLoop}
	names := scenario.Names{Members: 20}
	for i := range 20 {
		r.Processes = append(r.Processes, names.Of(protocol.ID(i)))
	}
	for i := range 100 {
		from, to := protocol.ID(i%20), protocol.ID((7*i+3)%20)
		text := fmt.Sprintf("A-LONG-NAME(%d, and some more numbers)", i)
		e := names.Event(scenario.Step{Verb: scenario.Try, Procs: []protocol.ID{from}})
		e.Effects = append(e.Effects, scenario.Effect{Do: scenario.Sends, To: names.Of(to), Message: text})
		arrives := scenario.Step{Verb: scenario.Deliver, Procs: []protocol.ID{from, to}, Text: text}
		r.Steps = append(r.Steps, e, names.Event(arrives))
	}
	var b strings.Builder
	if err := diagram.SVG(&b, r, "", ""); err != nil {
		t.Fatal(err)
	}
	var width, height float64
	size := b.String()[strings.Index(b.String(), "width="):]
	if _, err := fmt.Sscanf(size, `width="%g" height="%g"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`<text x="(\S+)" y="(\S+)" text-anchor="(\w+)" class="[^"]*">([^<]*)<`)
	for _, m := range label.FindAllStringSubmatch(b.String(), -1) {
		var x, y float64
		fmt.Sscan(m[1], &x)
		fmt.Sscan(m[2], &y)
		size := 7 * float64(utf8.RuneCountInString(m[4]))
		left, right := x, x+size
		switch m[3] {
		case "end":
			left, right = x-size, x
		case "middle":
			left, right = x-size/2, x+size/2
		}
		if left < 0 || right > width || y < 0 || y > height {
			t.Errorf("%q lies at %g to %g, %g of a picture of %g x %g", m[4], left, right, y, width, height)
		}
	}
	if got := len(texts(t, b.String())); got < 400 {
		t.Errorf("%d texts for 200 steps", got)
	}
}

// Lines stay within 100 columns, whatever a step does.
func TestTextWidth(t *testing.T) {
	r := run(t, "try c1 > "+strings.Repeat("send s1 REQUEST(1);send s2 RESPONSE(2);", 20)+"send s1 "+strings.Repeat("x", 30))
	var b strings.Builder
	if err := diagram.Text(&b, r, diagram.Width); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) < 4 {
		t.Fatalf("not wrapped:\n%s", b.String())
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("more than 100 columns: %q", line)
		}
	}
}

// A log for ShiViz is what its parser expects: each event has a clock in which its
// own process counts by one, and that contains the clock of what it received.
func TestShiViz(t *testing.T) {
	var b strings.Builder
	if err := diagram.ShiViz(&b, story(t)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	// ShiViz takes this one unless it is told otherwise.
	const usual = `(?<event>.*)\n(?<host>\S*) (?<clock>{.*})`
	if lines[0] != usual {
		t.Errorf("the log begins with %q, want %q", lines[0], usual)
	}
	if lines[1] != "" {
		t.Error("the second line would be the delimiter of executions")
	}
	// Somebody may paste the whole file: its first two lines are no event.
	events := regexp.MustCompile(usual).FindAllStringSubmatch(b.String(), -1)
	if len(events) != len(story(t).Steps) {
		t.Fatalf("%d events of %d steps", len(events), len(story(t).Steps))
	}
	last := map[string]map[string]int{}
	for i, e := range events {
		host, clock := e[2], map[string]int{}
		if err := json.Unmarshal([]byte(e[3]), &clock); err != nil {
			t.Fatal(err)
		}
		if clock[host] != last[host][host]+1 {
			t.Errorf("event %d of %s: clock %d after %d", i+1, host, clock[host], last[host][host])
		}
		for p, v := range last[host] {
			if clock[p] < v {
				t.Errorf("event %d of %s forgets %d events of %s", i+1, host, v, p)
			}
		}
		last[host] = clock
	}
	if c := last["c2"]; c["s1"] != 3 || c["c1"] != 1 {
		t.Errorf("c2 knows %v: not what s1 knew when it answered", c)
	}
}

// Equal messages arrive in the order in which they were sent, what a fault took
// comes last, and one that comes too often is the last one again.
func TestMatching(t *testing.T) {
	arrows := func(text string) (from []string) {
		var b strings.Builder
		if err := diagram.SVG(&b, run(t, text), "", ""); err != nil {
			t.Fatal(err)
		}
		arrow := regexp.MustCompile(`y1="(\S+)" x2="\S+" y2="(\S+)" class="arrow( open)?"`)
		for _, m := range arrow.FindAllStringSubmatch(b.String(), -1) {
			var y1, y2 float64
			fmt.Sscan(m[1], &y1)
			fmt.Sscan(m[2], &y2)
			row := func(y float64) int { return 1 + int((y-46)/24) }
			if m[3] != "" {
				from = append(from, fmt.Sprintf("%d open", row(y1)))
			} else {
				from = append(from, fmt.Sprintf("%d-%d", row(y1), row(y2)))
			}
		}
		slices.Sort(from)
		return from
	}
	const twice = "try c1 > send s1 A\nexit c1 > send s1 A\n"
	for text, want := range map[string][]string{
		twice + "deliver c1 s1 A":                                                 {"1-3", "2 open"},
		twice + "deliver c1 s1 A\ndeliver c1 s1 A":                                {"1-3", "2-4"},
		twice + "deliver c1 s1 A\ndeliver c1 s1 A\ndeliver c1 s1 A":               {"1-3", "2-4", "2-5"},
		"try c1 > send s1 A\nsuspect s1 c1\nexit c1 > send s1 A\ndeliver c1 s1 A": {"1 open", "3-4"},
		"try c1 > send s1 A\nsuspect s1 c1\ndeliver c1 s1 A":                      {"1-3"},
		"deliver c1 s1 A": nil, // sent before the run begins
	} {
		if got := arrows(text); !slices.Equal(got, want) {
			t.Errorf("%q: arrows %q, want %q", text, got, want)
		}
	}
}

// A run that rests for ever has a loop without steps.
func TestRest(t *testing.T) {
	r := run(t, "try c1 > send s1 A\nloop")
	var text, svg, file strings.Builder
	if err := errors.Join(
		diagram.Text(&text, r, diagram.Width), diagram.SVG(&svg, r, "", ""), scenario.WriteRun(&file, nil, r),
	); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "-- and here it rests for ever --") || strings.Contains(text.String(), "again from") {
		t.Errorf("text:\n%s", text.String())
	}
	if !slices.Contains(texts(t, svg.String()), "here it rests for ever") {
		t.Errorf("SVG:\n%s", svg.String())
	}
	if !strings.HasSuffix(file.String(), "\nloop\n") {
		t.Errorf("scenario:\n%s", file.String())
	}
}
