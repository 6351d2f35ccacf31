package status

import (
	"slices"
	"strings"
	"testing"
)

// Servers that do not answer for one reason are named together. What can be shown is shown as it is.
func TestReasons(t *testing.T) {
	wrong := `tls: unknown authority (possibly because of "x509: \invalid")`
	got := Reasons([]Server{{Name: "s1", Error: wrong}, {Name: "s2", Error: "y\a"}, {Name: "s3"}, {Name: "s4", Error: wrong}})
	if want := []string{"s1, s4: " + wrong, `s2: "y\a"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

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
