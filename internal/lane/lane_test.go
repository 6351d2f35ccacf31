package lane

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	for name, want := range map[string]Lane{"": Quick, "quick": Quick, "ci": CI, "long": Long} {
		if got := named(name); got != want {
			t.Errorf("%q is lane %d, want %d", name, got, want)
		}
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), `TEST_LANE="Long" names no lane`) {
			t.Errorf("an unknown lane: %v", r)
		}
	}()
	named("Long")
}

// A longer lane does what a shorter one does.
func TestRuns(t *testing.T) {
	for now, want := range map[Lane][3]bool{Quick: {true, false, false}, CI: {true, true, false}, Long: {true, true, true}} {
		t.Setenv(Variable, now.String())
		if got := [3]bool{Quick.Runs(), CI.Runs(), Long.Runs()}; got != want {
			t.Errorf("in lane %d: %v run, want %v", now, got, want)
		}
	}
}

// said is what a test was told.
type said struct {
	testing.TB
	text string
}

func (s *said) Helper()                  {}
func (s *said) Name() string             { return "TestStorm/of_1_+_1" }
func (s *said) Skipf(_ string, a ...any) { s.text = strings.Join(strs(a), "; ") }
func (s *said) Logf(_ string, a ...any)  { s.text = strings.Join(strs(a), "; ") }
func strs(list []any) (texts []string) {
	for _, a := range list {
		texts = append(texts, fmt.Sprint(a))
	}
	return texts
}

// What does not run names the command that runs it.
func TestCommand(t *testing.T) {
	t.Setenv(Variable, CI.String())
	const command = `TEST_LANE=long go test -timeout 0 -run '^TestStorm$/^of_1_\+_1$' ./internal/lane`
	var s said
	Long.Need(&s, "an hour")
	if want := "an hour; " + command; s.text != want {
		t.Errorf("skipped with %q, want %q", s.text, want)
	}
	if Long.Adds(&s, "an hour") || s.text != command+"; an hour" {
		t.Errorf("shortened with %q", s.text)
	}
	s.text = ""
	if CI.Need(&s, "a minute"); s.text != "" || !CI.Adds(&s, "a minute") || s.text != "" {
		t.Errorf("what runs says %q", s.text)
	}
}

// A longer lane tries more, and a shorter one says so.
func TestOf(t *testing.T) {
	for now, want := range map[Lane]int{Quick: 1, CI: 2, Long: 3} {
		t.Setenv(Variable, now.String())
		s := &said{TB: t}
		if got := Of(s, "worlds", 1, 2, 3); got != want || (s.text == "") != (now == Long) {
			t.Errorf("in lane %d: %d and %q, want %d", now, got, s.text, want)
		}
	}
}
