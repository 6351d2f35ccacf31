package sections_test

import (
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// The tests of operations that travel together notice when one of the rules for them is broken. Without TEST_LANE=long only some are
// built.
func TestPipelineMutants(t *testing.T) {
	lane.CI.Need(t, "each of these is a build")
	t.Parallel()
	const file = "pipeline.go"
	mutants := []proctest.Mutant{
		proctest.Edit("all have the result of the first one", file, "list[k], nil)", "list[0], nil)"),
		proctest.Edit("what was not issued is told as what was", file, "o.decide(nil, waiting)", "o.decide(nil, open)"),
		proctest.Edit("what was issued is told as what was not", file, "o.decide(nil, open)", "o.decide(nil, waiting)"),
		proctest.Edit("one that the copies refuse takes the others along", file, "if errors.Is(err, ErrOperation) {", "if errors.Is(err, ErrExited) {"),
		proctest.Edit("they travel one by one", file, "k < min(len(p.waiting), maxTogether)", "k < 1"),
		proctest.Edit("there is no bound", file, "p.size >= maxPipeline", "p.size < 0"),
		proctest.Edit("nobody waits for those that come", file, "min(len(p.open)+len(p.waiting), maxTogether)", "0"),
		proctest.Edit("an exit does not wait", "section.go", "s.exited && s.inside && s.pipeline.idle()", "s.exited && s.inside"),
		proctest.Edit("an ejection does not tell those that are issued", "section.go", "u.pipeline.end(ErrEjected, ErrEjected)", "u.pipeline.end(nil, ErrEjected)"),
		proctest.Edit("an ejection does not tell those that wait", "section.go", "u.pipeline.end(ErrEjected, ErrEjected)", "u.pipeline.end(ErrEjected, nil)"),
		proctest.Edit("results are many, and too large", "object.go", "size <= MaxOperation; {", "size <= 9*MaxOperation; {"),
	}
	if !lane.Long.Runs() {
		t.Logf("2 of %d mutants: TEST_LANE=long builds all", len(mutants))
		mutants = mutants[:2]
	}
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) { m.Noticed(t, "Together$|^TestTooMuch$|^TestOpen$") })
	}
}
