package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

// usualExpression is the one by which ShiViz reads a log unless it is told otherwise.
var usualExpression = regexp.MustCompile(`(?<event>.*)\n(?<host>\S*) (?<clock>{.*})`)

// misread says what is wrong with a log for ShiViz of a run: its clocks must order two
// events if and only if the first of them happened before the second one.
func misread(r scenario.Run, log string) error {
	matches := usualExpression.FindAllStringSubmatch(log, -1)
	if len(matches) != len(r.Steps) {
		return fmt.Errorf("%d events of %d steps", len(matches), len(r.Steps))
	}
	clocks := make([]map[string]int, len(matches))
	for i, m := range matches {
		if event, step := m[1], r.Steps[i]; !strings.HasPrefix(event, step.Line) || m[2] != step.Process {
			return fmt.Errorf("event %d is %q of %s: want %q of %s", i+1, event, m[2], step.Line, step.Process)
		}
		if err := json.Unmarshal([]byte(m[3]), &clocks[i]); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	before := happened(r)
	for i := range clocks {
		for j := range clocks {
			if got, want := less(clocks[i], clocks[j]), before[i][j]; got != want {
				return fmt.Errorf("clock %v of event %d is less than %v of %d: %t, but it happened before: %t",
					clocks[i], i+1, clocks[j], j+1, got, want)
			}
		}
	}
	return nil
}

// happened is Lamport's relation, by its definition: the order of each process, the
// way of each message, and what follows from these.
func happened(r scenario.Run) [][]bool {
	before := make([][]bool, len(r.Steps))
	type letter struct{ from, to, text string }
	last, sent := map[string]int{}, map[letter][]int{}
	for i, e := range r.Steps {
		before[i] = make([]bool, len(r.Steps))
		if k, any := last[e.Process]; any {
			before[k][i] = true
		}
		last[e.Process] = i
		if l := (letter{e.From, e.To, e.Message}); e.Verb == scenario.Deliver && len(sent[l]) > 0 {
			before[sent[l][0]][i] = true
			sent[l] = sent[l][1:]
		}
		for _, f := range e.Effects {
			if l := (letter{e.Process, f.To, f.Message}); f.Do == scenario.Sends && f.Lost == "" {
				sent[l] = append(sent[l], i)
			}
		}
	}
	for k := range before {
		for i := range before {
			for j := range before {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	return before
}

// less reports whether a vector clock is less than another one.
func less(a, b map[string]int) bool {
	differs := false
	for p, v := range a {
		if v > b[p] {
			return false
		}
		differs = differs || v < b[p]
	}
	for p, v := range b {
		differs = differs || a[p] < v
	}
	return differs
}

// The logs of counterexamples are what ShiViz reads, and their clocks tell what
// happened before what.
func TestShiVizClocks(t *testing.T) {
	for name, test := range map[string]struct {
		algorithm, variant string
		config             check.Config
	}{
		"exclusion": {"sigma", "literal", check.Config{
			Config: protocol.Config{N: 3}, Clients: 2, Amnesia: 1, Properties: []string{check.Exclusion},
		}},
		"order": {"ricart-agrawala", "printed", check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{2, 1, 0}, Properties: []string{causal.Order},
		}},
		"starvation": {"sigma", "literal", check.Config{
			Config: protocol.Config{N: 2, Options: map[string]int64{"check": 0}}, Clients: 2, Properties: []string{check.Starvation},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := catalog.Find(test.algorithm, test.variant).Check(test.config)
			if err != nil {
				t.Fatal(err)
			}
			if v.Verdict != check.Violated || v.Property != name {
				t.Fatalf("%s: %s, want a violation", v.Property, v.Verdict)
			}
			var log strings.Builder
			if err := diagram.ShiViz(&log, *v.Run); err != nil {
				t.Fatal(err)
			}
			if err := misread(*v.Run, log.String()); err != nil {
				t.Errorf("%v\n%s", err, &log)
			}
			// Without what a message told its receiver, or with what nobody told, it is noticed.
			lines := strings.Split(log.String(), "\n")
			k := slices.IndexFunc(lines, func(l string) bool { return strings.Count(l, `":`) > 1 })
			forgets, invents := slices.Clone(lines), slices.Clone(lines)
			forgets[k] = regexp.MustCompile(`{.*?,`).ReplaceAllString(lines[k], "{")
			invents[k] = strings.Replace(lines[k], "{", `{"nobody":1,`, 1)
			for _, wrong := range [][]string{forgets, invents, lines[:len(lines)-2]} {
				if misread(*v.Run, strings.Join(wrong, "\n")) == nil {
					t.Errorf("nobody notices what is wrong here:\n%s", strings.Join(wrong, "\n"))
				}
			}
		})
	}
}
