package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/proctest"
)

// TestLeaderKilled: poundlock elect is killed. The command of the leader ends before
// the next one leads, within two leases and with a larger token, and who observes sees
// one after the other.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	timely(t, leaderKilled)
}

func leaderKilled(s *stage, lease time.Duration) (late string) {
	t := s.t
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan poundlock.Leader, 16)
	go func() {
		defer close(seen)
		for l, err := range s.client.Election("a").Observe(ctx) {
			if err != nil {
				t.Error(err)
			}
			seen <- l
		}
	}()
	p := s.start("elect", family)
	grandchild, child, token := s.await("grandchild"), s.await("pid"), s.await("token")
	next := s.start("elect", `echo $POUNDLOCK_TOKEN >token2; until test -e enough; do sleep 0.02; done; exit 5`)
	var first poundlock.Leader
	for first = range seen {
		if first.ID != "" {
			break
		}
	}

	killed := time.Now()
	p.cmd.Process.Kill()
	second := s.await("token2")
	took := time.Since(killed)
	t.Logf("the next leader came after %.2f leases", float64(took)/float64(lease))
	if late = s.leaves(child, grandchild, killed.Add(lease)); late == "" && took > 2*lease {
		late = fmt.Sprintf("more than two leases: %v", took)
	}
	if second <= token {
		t.Errorf("token %d after %d", second, token)
	}
	for l := range seen {
		if l.ID != "" && l.ID != first.ID {
			break
		}
	}
	if l, err := s.client.Election("a").Leader(ctx); err != nil || l.ID == "" || l.ID == first.ID {
		t.Errorf("the leader is %+v, %v, and was %+v", l, err, first)
	}
	s.write("enough")
	next.want(5)
	for l := range seen {
		if l.ID == "" {
			break
		}
	}
	cancel()
	for range seen {
	}
	return late
}

// TestLeadershipLost: without servers the command ends before the lease does; when they
// are back the same process campaigns again, and leads.
func TestLeadershipLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.start("elect", `echo $POUNDLOCK_TOKEN >token$(test ! -e token1; echo $((1+$?))); echo $$ >pid; until test -e enough; do sleep 0.02; done`)
	first := s.await("token1")
	for i := range s.local.Servers() {
		if err := s.local.Stop(i); err != nil {
			t.Fatal(err)
		}
	}
	p.says("campaigning again")
	if child := s.await("pid"); proctest.Running(child) {
		t.Error("the command runs on")
	}
	for i := range s.local.Servers() {
		if err := s.local.Start(i); err != nil {
			t.Fatal(err)
		}
	}
	if second := s.await("token2"); second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	s.write("enough")
	p.want(0)
}
