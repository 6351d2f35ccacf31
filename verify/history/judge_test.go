package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const ms = 1_000_000

// everything is bounds that the histories of testdata are judged by.
var everything = Bounds{Wait: 300 * ms, Bypass: 5, Order: 50 * ms}

func readFile(t *testing.T, names ...string) (*Report, error) {
	t.Helper()
	var files []*Reader
	for _, name := range names {
		f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r, err := NewReader(name, f)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, r)
	}
	b := everything
	b.Slack = Slack(files)
	return Read(files, b)
}

// violated are the properties that a report finds violated, with how often.
func violated(r *Report) string {
	var all []string
	for _, v := range r.Verdicts {
		if v.Verdict == Violated {
			all = append(all, fmt.Sprintf("%s %d", v.Property, v.Count))
		}
	}
	return strings.Join(all, ", ")
}

// Each predicate rejects a history that all the others accept.
func TestEachPredicate(t *testing.T) {
	for name, want := range map[string]string{
		"accepted":          "",
		"exclusion":         "exclusion 1",
		"group-shared":      "",
		"group-exclusion":   "exclusion 1",
		"group-downgrade":   "",
		"downgrade-token":   "inversion 1",
		"well-formed":       "well-formed 1",
		"inversion":         "inversion 1",
		"reuse":             "reuse 1",
		"starvation-wait":   "starvation 1",
		"starvation-bypass": "starvation 1",
		"order":             "order 1",
		"lease":             "",
		"lease-overlap":     "exclusion 1",
		"killed":            "",
	} {
		r, err := readFile(t, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := violated(r); got != want || r.Accepted != (want == "") {
			t.Errorf("%s: violated %q, want %q; accepted %v\n%v", name, got, want, r.Accepted, r.Violations)
		}
		if r.Measures.Entries == 0 {
			t.Errorf("%s: nobody entered", name)
		}
	}
}

// What no bound is given for is not judged, nor are tokens where there are none.
func TestNotJudged(t *testing.T) {
	j := NewJudge(Bounds{})
	j.Event(0, Event{At: 1, Do: Try, User: "a"})
	j.Event(0, Event{At: 2, Do: Crit, User: "a"})
	got := fmt.Sprint(j.Report().Verdicts)
	want := "[{exclusion holds 0} {well-formed holds 0} {inversion not judged 0} {reuse not judged 0}" +
		" {starvation not judged 0} {order not judged 0}]"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Users of one name in two files are two users, and a violation tells them apart.
func TestTwoFiles(t *testing.T) {
	r, err := readFile(t, "exclusion", "accepted")
	if err != nil {
		t.Fatal(err)
	}
	if r.Users != 5 || r.Measures.Entries != 4 || r.Accepted {
		t.Errorf("%+v", r)
	}
	if text := fmt.Sprint(r.Violations); !strings.Contains(text, "a of accepted entered while a of exclusion is inside") {
		t.Error(text)
	}
}

// A process that is killed while inside is out from its last event on: the next one may
// enter after it, and not before.
func TestKilled(t *testing.T) {
	text := `{"poundlock":"history","version":1,"clock":"wall"}
{"at":0,"do":"try","user":"b","lock":"x"}
{"at":%d,"do":"crit","user":"b","lock":"x","token":9}
{"at":50000000,"do":"end"}
`
	for at, want := range map[int]string{500_000: "exclusion 1", 1_000_001: ""} {
		killed, err := os.Open("testdata/killed.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		defer killed.Close()
		first, err := NewReader("killed", killed)
		if err != nil {
			t.Fatal(err)
		}
		second, err := NewReader("next", strings.NewReader(fmt.Sprintf(text, at)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read([]*Reader{first, second}, Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		if got := violated(r); got != want {
			t.Errorf("b enters at %d: violated %q, want %q", at, got, want)
		}
		if f := r.Files; !f[0].Truncated || f[0].Ended || f[0].Events != 2 || f[1].Truncated || !f[1].Ended {
			t.Errorf("%+v", f)
		}
	}
}

// Bad lines are named with their file and number, and nothing panics.
func TestBadFiles(t *testing.T) {
	const head = `{"poundlock":"history","version":1,"clock":"wall"}` + "\n"
	line := func(s string) string { return head + s + "\n" }
	for _, x := range []struct{ text, want string }{
		{"", "f:1: no header: the file is empty"},
		{"\n", "f:1: no header"},
		{"hello\n", "f:1: no header"},
		{"[1,2]\n", "f:1: no header"},
		{`{"time":"now","msg":"grant"}` + "\n", "f:1: no header"},
		{`{"poundlock":"scenario","version":1,"clock":"wall"}` + "\n", `f:1: a file of "scenario": want "history"`},
		{`{"poundlock":"history","version":7,"clock":"wall"}` + "\n", "f:1: version 7 of event files: this program reads version 1"},
		{`{"poundlock":"history","version":1}` + "\n", "f:1: no name of the clock"},
		{`{"poundlock":"history","version":1,"clock":"wall","uncertainty_ns":-1}` + "\n", "f:1: uncertainty_ns -1"},
		{`{"poundlock":"history","version":1,"clock":"wall","window_ns":9e99}` + "\n", "f:1: no header"},
		{line(`x`), "f:2: no JSON: invalid character 'x'"},
		{line(`{"at":1,"do":"try","user":"a"} {}`), "f:2: no JSON"},
		{line(`{"do":"enter","user":"a"}`), `f:2: unknown event "enter"`},
		{line(`{"at":1,"user":"a"}`), `f:2: no "do"`},
		{line(`{"at":-1,"do":"try","user":"a"}`), "f:2: time -1"},
		{line(`{"at":9223372036854775807,"do":"try","user":"a"}`), "f:2: time 9223372036854775807"},
		{line(`{"at":"soon","do":"try","user":"a"}`), "f:2: at is string: want int64"},
		{line(`{"at":1,"do":"try"}`), "f:2: try without a user"},
		{line(`{"at":1,"do":"crit","user":"a","token":"twelve"}`), `f:2: token "twelve": want a whole number below 2^64`},
		{line(`{"at":1,"do":"crit","user":"a","token":18446744073709551616}`), "f:2: token 18446744073709551616: want"},
		{line(`{"at":1,"do":"crit","user":"a","token":-1}`), "f:2: token -1"},
		{line(`{"at":1,"do":"exit","user":"a","token":"1"}`), "f:2: exit with a token"},
		{line(`{"at":1,"do":"exit","user":"a","group":"g"}`), "f:2: exit with a group: want it with try, crit or downgrade"},
		{line(`{"at":1,"do":"downgrade","user":"a"}`), `f:2: downgrade to group "": want one that others may share`},
		{line(`{"at":1,"do":"downgrade","user":"a","group":"!g"}`), `f:2: downgrade to group "!g"`},
		{line(`{"at":1,"do":"renew","user":"a"}`), "f:2: renew without the end of the lease"},
		{line(`{"at":7,"do":"renew","user":"a","until":5}`), "f:2: renew of a lease that was over 2ns before"},
		{line(`{"at":1,"do":"end","user":"a"}`), `f:2: an end with user "a"`},
		{line(`{"at":5,"do":"try","user":"a"}` + "\n" + `{"at":4,"do":"crit","user":"a"}`), "f:3: time 4 is 1ns before that of an earlier line"},
		{line(`{"at":5,"do":"end"}` + "\n" + `{"at":6,"do":"try","user":"a"}`), "f:3: an event after the end"},
		{line(strings.TrimSuffix(head, "\n")), "f:2: a second header"},
		{line(`{"at":1,"do":"try","user":"` + strings.Repeat("a", maxLine) + `"}`), "f:2: longer than 65536 bytes"},
	} {
		r, err := NewReader("f", strings.NewReader(x.text))
		if err == nil {
			_, err = Read([]*Reader{r}, Bounds{})
		}
		var at *LineError
		if err == nil || !strings.HasPrefix(err.Error(), x.want) || !errors.As(err, &at) {
			t.Errorf("%.80q: %v, want %s", x.text, err, x.want)
		}
	}
}

// Only files of one clock are compared.
func TestClocks(t *testing.T) {
	open := func(name, clock string, uncertainty int) *Reader {
		r, err := NewReader(name, strings.NewReader(fmt.Sprintf(
			`{"poundlock":"history","version":1,"clock":%q,"uncertainty_ns":%d}`, clock, uncertainty)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := Read([]*Reader{open("f", "machine 1", 0), open("g", "machine 2", 0)}, Bounds{}); err == nil ||
		!strings.Contains(err.Error(), `of f are of the clock "machine 1", those of g of "machine 2"`) {
		t.Errorf("two machines: %v", err)
	}
	if _, err := Read([]*Reader{open("f", Virtual, 0), open("g", Virtual, 0)}, Bounds{}); err == nil {
		t.Error("two simulations are one history")
	}
	for _, x := range []struct {
		of   []int
		want int64
	}{{nil, 0}, {[]int{7}, 0}, {[]int{7, 0}, 7}, {[]int{3, 7, 5}, 12}, {[]int{7, 7}, 14}} {
		var files []*Reader
		for _, u := range x.of {
			files = append(files, open("f", Wall, u))
		}
		if got := Slack(files); got != x.want {
			t.Errorf("clocks that are off by %v differ by %d, want %d", x.of, got, x.want)
		}
	}
}

// Names that a terminal might obey are quoted.
func TestPrintable(t *testing.T) {
	j := NewJudge(Bounds{})
	j.Event(0, Event{Do: Exit, User: "a\x1b[2J"})
	if v := j.Report().Violations; len(v) != 1 || v[0].Text != `"a\x1b[2J": exit in its remainder section` {
		t.Error(v)
	}
}
