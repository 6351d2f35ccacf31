package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typed finds the calls of poundlock in a line of a document: what stands for something
// else, as in [flags] or .., does not count.
var (
	typed    = regexp.MustCompile(`\bpoundlock ((?:[a-z]+)(?: [^|;&)<>#]*)?)`)
	optional = regexp.MustCompile(`\[[^]]*\]|\.\.+|2$`)
)

// wrongCall says what is wrong with the flags of a call of poundlock, "" for nothing.
func wrongCall(call string) string {
	root := rootCommand()
	words := strings.Fields(optional.ReplaceAllString(call, " "))
	c, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
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

// TestDocCommands: each command line that a document shows is one that poundlock knows, with
// flags that it has.
func TestDocCommands(t *testing.T) {
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
			if strings.HasPrefix(line, "poundlock:") || strings.HasPrefix(line, "#") {
				continue
			}
			for _, call := range typed.FindAllStringSubmatch(line, -1) {
				seen++
				if wrong := wrongCall(strings.TrimSpace(call[1])); wrong != "" {
					t.Errorf("%s: poundlock %s: %s", filepath.Base(path), call[1], wrong)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d calls", seen)
	}
	for call, want := range map[string]string{
		"lock a -- ./x --nonsense":  "",
		"lock --tri a -- true":      "lock has no --tri",
		"status -x":                 "status has no -x",
		"sim NAME [--entries N] ..": "",
	} {
		if got := wrongCall(call); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}
