package cli

import "testing"

// An error of a wrong call names no package, and what a user gave stays as it is.
func TestWithoutLayers(t *testing.T) {
	for text, want := range map[string]string{
		`sim: no`:                          `no`,
		`--delay "x": sim: "x" is nothing`: `--delay "x": "x" is nothing`,
		`--admin: server: admin: no`:       `--admin: admin: no`,
		`there is no lock "a: check: b"`:   `there is no lock "a: check: b"`,
	} {
		if got := withoutLayers(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
