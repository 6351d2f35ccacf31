package diagram_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

// together is a run in which two users are inside that do not share.
func together() scenario.Run {
	r := scenario.Run{Processes: []string{"p1", "p2"}, Loop: scenario.NoLoop}
	names := scenario.Names{Members: 2}
	for user, x := range []struct {
		wants, granted string
		token          uint64
	}{{"a,b", "a", 0}, {"!w", "!w", 7}} {
		e := names.Event(scenario.Step{Verb: scenario.Try, Procs: []protocol.ID{protocol.ID(user)}, Text: x.wants})
		e.Effects = append(e.Effects, scenario.Effect{Do: scenario.Enters, Group: x.granted, Token: x.token})
		r.Steps = append(r.Steps, e)
	}
	return r
}

// Each form says which groups a user wants, and which one it was let into.
func TestGroups(t *testing.T) {
	written := func(write func(io.Writer) error) string {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	r := together()
	svg := texts(t, written(func(w io.Writer) error { return diagram.SVG(w, r, "", "") }))
	for _, want := range []string{"try a,b, enters group a", "try !w, enters group !w with token 7"} {
		if !slices.Contains(svg, want) {
			t.Errorf("SVG: no %q in %q", want, svg)
		}
	}
	for name, text := range map[string]string{
		"text":   written(func(w io.Writer) error { return diagram.Text(w, r, diagram.Width) }),
		"ShiViz": written(func(w io.Writer) error { return diagram.ShiViz(w, r) }),
	} {
		for _, want := range []string{"try p1 a,b", "p1 enters group a", "try p2 !w", "p2 enters group !w with token 7"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}
