package main

import (
	"strings"
	"testing"
)

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
