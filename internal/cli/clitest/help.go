package clitest

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
)

var (
	defaults = regexp.MustCompile(`\(default `)
	nothing  = regexp.MustCompile(`\(default (0|0s|-\d+|\[\]|"")\)`)
	typeName = regexp.MustCompile(`^ +(-\w, )?--[-\w]+ (string|int|uint|float64|value)\b`)
)

// BadFlags are the lines of help that say two defaults, one that is none, or the type of a
// value instead of what it is.
func BadFlags(s *pflag.FlagSet) (bad []string) {
	for line := range strings.Lines(s.FlagUsages()) { // one line a flag
		if len(defaults.FindAllString(line, -1)) > 1 || nothing.MatchString(line) || typeName.MatchString(line) {
			bad = append(bad, line)
		}
	}
	return bad
}

// Help: help of every command fits 80 columns, and says of each flag at most one default,
// and the true one. There are so many commands at least.
func Help(t *testing.T, p *cli.Program, least int) {
	t.Helper()
	seen := 0
	cli.EachCommand(p.Root(io.Discard), func(c *cobra.Command) {
		if c.Hidden || c.Name() == "completion" || c.HasParent() && c.Parent().Name() == "completion" {
			return // cobra's own text
		}
		seen++
		for _, line := range BadFlags(c.Flags()) {
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
	if seen < least {
		t.Errorf("%d commands, want %d", seen, least)
	}
}

// Statuses: help of a command and its section of a page name the same exit statuses. So
// many commands have some at least.
func Statuses(t *testing.T, p *cli.Program, page string, least int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	root, seen := p.Root(io.Discard), 0
	for section := range strings.SplitSeq(string(text), "\n## "+p.Name+" ") {
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
			t.Errorf("%s: help names %q, %s %q", name, said, page, documented)
		}
	}
	if seen < least {
		t.Errorf("%d commands, want %d", seen, least)
	}
}

var status = regexp.MustCompile(`\b(0|1|3|64|69|7[0456]|12[678])\b`)

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
