package status

import (
	"strings"
	"testing"
)

// A label of any length and bytes leaves a table readable, and an ordinary one as it is.
func TestWho(t *testing.T) {
	for label, want := range map[string]string{
		"":                           "id",
		"host/12":                    "host/12",
		strings.Repeat("ä", maxWho):  strings.Repeat("ä", maxWho),
		strings.Repeat("ä", 1024):    strings.Repeat("ä", maxWho) + "...",
		"a\x1b[2J\tb":                `"a\x1b[2J\tb"`,
		strings.Repeat("\xff", 1024): `"` + strings.Repeat(`\xff`, maxWho) + `..."`,
	} {
		if got := Who(label, "id"); got != want {
			t.Errorf("%.20q: %s, want %s", label, got, want)
		}
	}
}
