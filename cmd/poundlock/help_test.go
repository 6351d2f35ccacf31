package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	defaults = regexp.MustCompile(`\(default `)
	nothing  = regexp.MustCompile(`\(default (0|0s|-\d+|\[\]|"")\)`)
	typeName = regexp.MustCompile(`^ +(-\w, )?--[-\w]+ (string|int|uint|float64|value)\b`)
)

// badFlags are the lines of help that say two defaults, one that is none, or the type of a
// value instead of what it is.
func badFlags(s *pflag.FlagSet) (bad []string) {
	for line := range strings.Lines(s.FlagUsages()) { // one line a flag
		if len(defaults.FindAllString(line, -1)) > 1 || nothing.MatchString(line) || typeName.MatchString(line) {
			bad = append(bad, line)
		}
	}
	return bad
}

// TestHelp: help of every command fits 80 columns, and says of each flag at most one
// default, and the true one.
func TestHelp(t *testing.T) {
	seen := 0
	root := rootCommand()
	tidy(root)
	eachCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.Name() == "completion" || c.HasParent() && c.Parent().Name() == "completion" {
			return // cobra's own text
		}
		seen++
		for _, line := range badFlags(c.Flags()) {
			t.Errorf("%s: %s", c.CommandPath(), line)
		}
		var b strings.Builder
		c.SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > 80 {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), len([]rune(line)), line)
			}
		}
	})
	if seen < 20 {
		t.Errorf("%d commands", seen)
	}
	// What has been wrong is noticed.
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Var(new(seconds), "wait", "give up after `DURATION`; 0 is --try")
	s.Int("limit", -1, "list `NUMBER` at most (default 100)")
	s.Duration("max-hold", time.Second, "at most `DURATION` (default never)")
	s.String("name", "", "which one")
	s.Duration("good", time.Second, "`DURATION` of it")
	if bad := badFlags(s); len(bad) != 4 {
		t.Errorf("4 flags are wrong, these were found: %q", bad)
	}
}

// TestNearest: a misspelt name has a suggestion, what is nothing like any name has none.
func TestNearest(t *testing.T) {
	names := flagNames(lockCommand())
	for typed, want := range map[string]string{
		"tri": "try", "timeout": "wait", "ttl": "lease", "semaphor": "semaphore", "servres": "servers", "tls-crt": "tls-cert",
		"xyz": "", "no": "no-amnesia", "": "",
	} {
		found := strings.Join(nearest(typed, names), " ")
		if found != want {
			t.Errorf("%q: %q, want %q", typed, found, want)
		}
	}
}

// The table of algorithms is wider than most terminals: there it is paragraphs.
func TestAlgorithmsOnTerminal(t *testing.T) {
	text := paragraphs(80)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	for _, want := range []string{"\nricart-agrawala\n    permission from everybody\n", "\nsigma literal\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A list is broken behind its commas, and an item that is too long stands alone.
func TestBroken(t *testing.T) {
	for list, want := range map[string]string{
		"":                         "",
		"n=3, 2 clients, 1 entry":  "n=3,|2 clients,|1 entry",
		"a, b, c, 32 182 states":   "a, b, c,|32 182 states",
		"a, b, c, d":               "a, b, c, d",
		"a, bc, de, f":             "a, bc, de,|f",
		"a, more than ten columns": "a,|more than ten columns",
	} {
		if got := strings.Join(broken(list, 10), "|"); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// Help of a command and docs/cli.md name the same exit statuses.
func TestHelpStatuses(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root, seen := rootCommand(), 0
	for section := range strings.SplitSeq(string(text), "\n## poundlock ") {
		name, rest, _ := strings.Cut(section, "\n")
		c, _, err := root.Find(strings.Fields(name))
		if err != nil || c == root {
			continue
		}
		said, documented := statuses(c.Long), statuses(rest)
		if said == nil || documented == nil {
			continue
		}
		if seen++; !slices.Equal(said, documented) {
			t.Errorf("%s: help names %q, docs/cli.md %q", name, said, documented)
		}
	}
	if seen < 8 {
		t.Errorf("%d commands", seen)
	}
}

var status = regexp.MustCompile(`\b(0|1|3|64|69|7[045]|12[678])\b`)

// statuses are the numbers in the paragraph of a text that is about exit statuses.
func statuses(text string) []string {
	for p := range strings.SplitSeq(text, "\n\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(p), "Exit status:"); ok {
			found := status.FindAllString(rest, -1)
			slices.Sort(found)
			return slices.Compact(found)
		}
	}
	return nil
}
