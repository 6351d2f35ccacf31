package cli

import (
	"strings"
	"testing"
)

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
