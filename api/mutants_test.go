package api

import (
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// TestLeaseMutants: the stories of TestLeases notice when what they are about is
// broken. Without TEST_LANE=long only some are built.
func TestLeaseMutants(t *testing.T) {
	lane.CI.Need(t, "each of these is a build")
	t.Parallel()
	mutants := []proctest.Mutant{
		proctest.Edit("the lease does not run", "session.go", "x.timer.Reset(x.lease)", ""),
		proctest.Edit("calls do not renew", "session.go", "x.expires = time.Now().Add(x.lease)\n\t\tx.timer.Reset(x.lease)", "x.timer.Reset(time.Until(x.expires))"),
		proctest.Edit("a stream does not keep the session", "session.go", "x.open == 0 && ", ""),
		proctest.Edit("a cut stream ends the session", "session.go", "x.timer.Reset(x.lease)", "x.timer.Reset(0)\n\t\tx.expires = time.Now()"),
		proctest.Edit("the first of two streams that ends is the last", "session.go", "x.open--", "x.open = 0"),
		proctest.Edit("the end of the lease frees nothing", "session.go", "for g, c := range sections {\n\t\ts.unlock(g, c)\n\t}", ""),
		proctest.Edit("promises ignore the lease", "promise.go", "min(g.session.lease, end.Sub(now))", "end.Sub(now)"),
		proctest.Edit("promises ignore the cluster", "promise.go", "min(g.session.lease, end.Sub(now))", "min(g.session.lease, end.Sub(now)+time.Hour)"),
		proctest.Edit("a lost lock is left at once", "release.go", "time.Until(g.promised)", "time.Duration(0)"),
		proctest.Edit("a lost lock is never left", "release.go", "time.Until(g.promised)", "1000*time.Hour"),
		proctest.Edit("shutting down breaks promises", "shutdown.go", "err := s.keepPromises(ctx)", "var err error"),
		proctest.Edit("shutting down does not wait for what is being given back", "shutdown.go", "s.running.Wait()", ""),
		proctest.Edit("a repeat forgets what was told", "grant.go", "case !g.told && g.callers", "case g.callers"),
		proctest.Edit("a promise is not telling", "promise.go", "g.told = true", ""),
		proctest.Edit("what nobody was told of is kept", "grant.go", "left = s.forget(g)", ""),
		proctest.Edit("shutting down makes promises", "promise.go", "|| s.isClosing() || d <= 0", "|| d <= 0"),
	}
	if !lane.Long.Runs() {
		t.Logf("2 of %d mutants: TEST_LANE=long builds all", len(mutants))
		mutants = mutants[:2]
	}
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) { m.Noticed(t, "^TestLeases$") })
	}
}
