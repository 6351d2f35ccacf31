package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

const twoTries = `# poundlock-lab check ricart-agrawala -n 2
try p1
deliver p1 p2 REQUEST(1)
deliver p2 p1 REPLY(1)
exit p1
`

// taken is the replay of a file.
func taken(t *testing.T, text string) *replay {
	t.Helper()
	w, err := catalog.Find("ricart-agrawala", "").Walk(check.Config{Config: protocol.Config{N: 2}})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := &replay{Command: "poundlock-lab check ricart-agrawala -n 2"}
	if err := p.take(w, steps); err != nil {
		t.Fatal(err)
	}
	return p
}

// Keys go through the steps, and never beyond their ends.
func TestReplayKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"":         "0",
		"q":        "0",
		"n":        "0 1",
		"n\rpp":    "0 1 2 1 0",
		"ppp":      "0 0 0 0",
		"3\r p":    "0 3 4 3",
		"99\rn":    "0 4 4",
		"1x2\r":    "0 0 2",
		"nnnnnn":   "0 1 2 3 4 4 4",
		"n\x03nnn": "0 1",
		"0\rn":     "0 0 1 2", // 0 is no step: Enter alone is the next one
	} {
		var out strings.Builder
		err := taken(t, twoTries).steps(bufio.NewReader(strings.NewReader(keys)), &out, func() (int, int) { return diagram.Width, 24 })
		if err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, page := range strings.Split(out.String(), "\x1b[2J")[1:] {
			_, rest, _ := strings.Cut(page, "after step ")
			k, _, _ := strings.Cut(rest, " ")
			if strings.HasSuffix(strings.TrimRight(page, "\r\n"), "quit  ") { // else it shows a digit
				at = append(at, k)
			}
		}
		if got := strings.Join(at, " "); got != want {
			t.Errorf("keys %q: steps %s, want %s", keys, got, want)
		}
	}
}

// A page shows the step with a mark, those around it, and the states after it; it
// fits the terminal, however long the run is.
func TestReplayPage(t *testing.T) {
	p := taken(t, twoTries)
	for line := range strings.Lines(p.page(3, 40, 24)) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 40 && !strings.Contains(line, "q: quit") {
			t.Errorf("%d of 40 columns: %s", n, line)
		}
	}
	page := p.page(3, diagram.Width, 24)
	for _, want := range []string{
		"\n>   3  deliver p2 p1 REPLY(1)    p1 enters with token 2\n", "\n    4  exit p1 ", "after step 3 of 4\n",
		"p1  inside     clock 1, request 1\n", "p2  remainder  clock 1\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page:\n%s", want, page)
		}
	}
	var long strings.Builder
	for range 50 {
		long.WriteString("try p1\nexit p1\n")
	}
	w, err := catalog.Find("suzuki-kasami", "").Walk(check.Config{Config: protocol.Config{N: 1}, Entries: []int{50}})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(long.String()))
	if err != nil {
		t.Fatal(err)
	}
	p = &replay{}
	if err := p.take(w, steps); err != nil {
		t.Fatal(err)
	}
	for at := range 101 {
		page := p.page(at, diagram.Width, 20)
		if n := strings.Count(page, "\n") + 1; n > 20 || strings.Count(page, ">") != min(at, 1) {
			t.Fatalf("step %d: %d lines\n%s", at, n, page)
		}
	}
}

// On a terminal keys are read as they are typed, and the terminal is left as it was.
func TestReplayOnTerminal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.txt")
	if err := os.WriteFile(file, []byte(twoTries), 0o600); err != nil {
		t.Fatal(err)
	}
	c := proctest.Open(t, []string{clitest.RunAsProgram + "=1"}, os.Args[0], "replay", file)
	c.See("after step 0 of 4")
	c.Keys("n")
	c.See("after step 1 of 4")
	c.Keys("3\r")
	c.See("after step 3 of 4")
	c.Keys("q")
	c.Want(0)
}

// Lines of sentences and lists are broken where the terminal ends.
func TestHuntFits(t *testing.T) {
	t.Parallel()
	c := proctest.Open(t, []string{clitest.RunAsProgram + "=1", "TEST_LAB=" + os.Args[0]}, "sh", "-c",
		`stty cols 60; "$TEST_LAB" hunt sigma -n 4 --clients 4 --runs 50; echo status $?`)
	c.See("\r\nhunted     50 runs from number 0 of seed 1, ")
	c.See(",\r\n           ")
	c.See("status 0")
}

// What modelCommand writes, a file says: each flag comes back as it was given.
func TestModelCommand(t *testing.T) {
	for _, args := range []string{
		"sigma", "sigma --variant literal -n 7", "ricart-agrawala --entries unlimited,2,0",
		"sigma --option check=1s --option delay=2ms --down s1,s2 --faults amnesia=1,crash=2",
		"sigma --property exclusion,sigma/p1 --spaced 2 --no-exit=true",
		"sigma --clients 4 --quorum majority --fence on --channels fifo",
	} {
		c := checkCommand()
		if err := c.ParseFlags(strings.Fields(args)[1:]); err != nil {
			t.Fatal(err)
		}
		line := modelCommand(strings.Fields(args)[0], c.Flags())
		f := &replayFlags{}
		given := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.modelFlags.register(given)
		if err := f.adopt(given, "file", "# "+line+"\n"); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if again := modelCommand(f.algorithm, given); again != line || len(strings.Fields(line)) != len(strings.Fields(args))+2 {
			t.Errorf("%q became %q, and that %q", args, line, again)
		}
	}
}

// Listing the steps of a run twice gives one text: what replay prints can be read
// as what check printed.
func TestReplayIsCheck(t *testing.T) {
	e := catalog.Find("sigma", "literal")
	c := check.Config{Config: protocol.Config{N: 3}, Clients: 2, Amnesia: 1}
	v, err := e.Check(c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Walk(c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := scenario.WriteRun(&b, nil, *v.Run); err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	p := &replay{}
	if err := p.take(w, steps); err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	if err := scenario.WriteRun(&again, nil, p.Run); err != nil {
		t.Fatal(err)
	}
	if again.String() != b.String() {
		t.Errorf("got\n%swant\n%s", again.String(), b.String())
	}
}
