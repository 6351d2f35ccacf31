package metrics_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/metrics"
	"github.com/poundlock/poundlock/peers"
	"github.com/poundlock/poundlock/sections"
)

// has wants lines of what a collector tells, and names and help texts that follow the conventions.
func has(t *testing.T, c prometheus.Collector, want ...string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Error(err)
		}
	}
	for _, line := range want {
		if !strings.Contains("\n"+text.String(), "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, &text)
		}
	}
}

// start starts two, and returns the first.
func start[M any](t *testing.T, open func(name string) (M, error)) M {
	t.Helper()
	type opened struct {
		m   M
		err error
	}
	second := make(chan opened)
	go func() {
		m, err := open("m2")
		second <- opened{m, err}
	}()
	m, err := open("m1")
	if o := <-second; err != nil || o.err != nil {
		t.Fatal(err, o.err)
	}
	return m
}

func table(t *testing.T) []peers.Peer {
	dir := proctest.SocketDir(t)
	return []peers.Peer{{Name: "m1", Addr: "unix:" + filepath.Join(dir, "1")}, {Name: "m2", Addr: "unix:" + filepath.Join(dir, "2")}}
}

func TestPeer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	members := table(t)
	m := start(t, func(name string) (*peers.Member, error) {
		m, err := peers.Join(ctx, peers.Config{Name: name, Members: members, Bootstrap: true})
		if err == nil {
			t.Cleanup(func() { m.Close() })
		}
		return m, err
	})
	if _, err := m.Mutex("a").Lock(ctx); err != nil {
		t.Fatal(err)
	}
	has(t, metrics.Peer(m), "poundlock_peer_grants_total 1", "poundlock_peer_locks_held 1", "poundlock_peer_healthy 1",
		`poundlock_peer_member_up{member="m2"} 1`, "poundlock_peer_sessions_began_total 1", "poundlock_peer_wait_seconds_count 1",
		"poundlock_peer_losses_total 0")
	has(t, metrics.Client(m.Client()), "poundlock_client_grants_total 1")
}

func TestSections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	members := table(t)
	m := start(t, func(name string) (*sections.Member, error) {
		m, err := sections.Open(ctx, sections.Config{
			Name: name, Members: members, Bootstrap: true, Objects: map[string]sections.Object{"o": &counters.Store{}},
		})
		if err == nil {
			t.Cleanup(func() { m.Close() })
		}
		return m, err
	})
	s, err := m.Enter(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Exit()
	has(t, metrics.Sections(m), `poundlock_sections_entered_total{object="o"} 1`, `poundlock_sections_busy{object="o"} 1`,
		`poundlock_sections_ejections_total{object="o"} 0`, "poundlock_sections_healthy 1", `poundlock_sections_member_up{member="m2"} 1`)
}
