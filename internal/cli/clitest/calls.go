package clitest

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
)

// optional is what stands for something else in a call that a document shows, as in [flags]
// or .., and does not count.
var optional = regexp.MustCompile(`\[[^]]*\]|\.\.+|2$`)

// WrongCall says what is wrong with the flags of a call, "" for nothing.
func WrongCall(p *cli.Program, call string) string {
	root := p.Root(io.Discard)
	words := strings.Fields(optional.ReplaceAllString(call, " "))
	c, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if c.Hidden {
		return "a hidden command"
	}
	for k, word := range rest { // of the command that runs under a lock
		if word == "--" {
			rest = rest[:k]
			break
		}
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(name, "--") && name != "--help" && name != "--version":
			if c.Flags().Lookup(strings.TrimPrefix(name, "--")) == nil {
				return c.Name() + " has no " + name
			}
		case strings.HasPrefix(name, "-") && len(name) == 2 && name != "-h":
			if c.Flags().ShorthandLookup(name[1:]) == nil {
				return c.Name() + " has no " + name
			}
		}
	}
	return ""
}

// Calls: each call of a program that a document shows is one that it knows, with flags that
// it has. There are so many calls at least in README.md, CONTRIBUTING.md and docs.
func Calls(t *testing.T, new func() *cli.Program, least int) {
	t.Helper()
	program := new().Name
	typed := regexp.MustCompile(`\b` + program + ` ((?:[a-z]+)(?: [^|;&)<>#]*)?)`)
	paths, _ := filepath.Glob("../../docs/*.md")
	more, _ := filepath.Glob("../../docs/algorithms/*.md")
	seen := 0
	for _, path := range append(append(paths, more...), "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		joined := strings.ReplaceAll(string(text), "\\\n", " ")
		for line := range strings.Lines(joined) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
				continue
			}
			if code, indented := strings.CutPrefix(line, "    "); !fenced && (!indented || strings.HasPrefix(code, " ")) {
				continue
			}
			if strings.HasPrefix(line, program+":") || strings.HasPrefix(line, "#") {
				continue
			}
			for _, call := range typed.FindAllStringSubmatch(line, -1) {
				seen++
				if wrong := WrongCall(new(), strings.TrimSpace(call[1])); wrong != "" {
					t.Errorf("%s: %s %s: %s", filepath.Base(path), program, call[1], wrong)
				}
			}
		}
	}
	if seen < least {
		t.Errorf("%d calls, want %d", seen, least)
	}
}
