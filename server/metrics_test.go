package server

import (
	"bufio"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/poundlock/poundlock/node"
)

// held has one client hold a lock that another one waits for.
func held(t *testing.T, l *Local) {
	t.Helper()
	first, second := client(t, l, "first"), client(t, l, "second")
	u, v := make(user, 1), make(user, 1)
	if err := first.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	u.want(t, "crit")
	if err := second.Try(node.Mutex, "a", v, false); err != nil {
		t.Fatal(err)
	}
	waiting := func() bool {
		for _, s := range l.lives {
			if n := s.server.running(); n == nil || n.Stats().Waiting != 1 {
				return false
			}
		}
		return true
	}
	eventually(t, "all servers know holder and waiter", waiting)
}

// A scrape in the classic format is read by Prometheus' own parser, and its names
// and help texts follow the conventions.
func TestMetricsLint(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	held(t, l)
	_, text := get(t, startAdmin(t, l.lives[0].server, nil), "/metrics", "text/plain")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "poundlock_") { // Go's own are Go's
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		f := families[name]
		if f == nil {
			t.Fatalf("no metric %s", name)
		}
		m := f.Metric[0]
		return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	for name, want := range map[string]float64{
		"poundlock_server_info": 1, "poundlock_serving": 1, "poundlock_slot_table_epoch": 0,
		"poundlock_locks": 1, "poundlock_waiters": 1, "poundlock_sessions": 2,
		"poundlock_sessions_began_total": 2, "poundlock_support_duration_seconds": 0,
	} {
		if got := value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", "poundlock_network_bytes_total"} {
		if value(name) <= 0 {
			t.Errorf("%s is 0", name)
		}
	}
	for name, f := range families {
		for _, m := range f.Metric {
			for _, label := range m.Label {
				known := []string{"server", "lock_kind", "message", "direction", "cause", "loop"}
				if strings.HasPrefix(name, "poundlock_") && !slices.Contains(known, label.GetName()) {
					t.Errorf("%s has the label %s: is it bounded?", name, label.GetName())
				}
			}
		}
	}
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-z_]+="[^"\n]*",?)*\})? [-+0-9.eE]+(Inf|NaN)?$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z0-9_:]+) (gauge|counter|histogram|summary|info|unknown)$`)
	helpLine   = regexp.MustCompile(`^# (HELP|UNIT) ([a-zA-Z0-9_:]+) .+$`)
)

// OpenMetrics is what Prometheus asks for. Its rules that the classic format does
// not have: an end marker, and every sample within its family, by suffix.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	held(t, l)
	response, text := get(t, startAdmin(t, l.lives[0].server, nil), "/metrics", "application/openmetrics-text; version=1.0.0")
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text") {
		t.Fatalf("the answer is %s", kind)
	}
	if err := openMetrics(text); err != "" {
		t.Error(err)
	}
	for _, broken := range []string{
		strings.TrimSuffix(text, "# EOF\n"),
		strings.Replace(text, "poundlock_sessions_began_total 2", "poundlock_sessions_began 2", 1),
		strings.Replace(text, "# TYPE poundlock_locks gauge\n", "", 1),
	} {
		if broken == text || openMetrics(broken) == "" {
			t.Error("a broken text passes")
		}
	}
}

// openMetrics says what is wrong with a text, "" if nothing is.
func openMetrics(text string) string {
	if !strings.HasSuffix(text, "\n# EOF\n") {
		return "no end marker"
	}
	suffixes := map[string][]string{
		"gauge": {""}, "unknown": {""}, "info": {"_info"}, "counter": {"_total", "_created"},
		"histogram": {"_bucket", "_count", "_sum", "_created"}, "summary": {"", "_count", "_sum", "_created"},
	}
	family, kind := "", ""
	lines := bufio.NewScanner(strings.NewReader(strings.TrimSuffix(text, "# EOF\n")))
	for lines.Scan() {
		line := lines.Text()
		if m := typeLine.FindStringSubmatch(line); m != nil {
			family, kind = m[1], m[2]
			continue
		}
		if helpLine.MatchString(line) {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			return "no sample: " + line
		}
		suffix, ok := strings.CutPrefix(m[1], family)
		if !ok || !slices.Contains(suffixes[kind], suffix) {
			return "not of " + kind + " " + family + ": " + line
		}
	}
	return ""
}

// More collectors can be given; two of one name are a programmer's error.
func TestMoreMetrics(t *testing.T) {
	l := startLocal(t)
	more := prometheus.NewGauge(prometheus.GaugeOpts{Name: "poundlock_test", Help: "A test."})
	a := startAdmin(t, l.lives[0].server, func(c *AdminConfig) { c.Collectors = []prometheus.Collector{more} })
	if response, text := get(t, a, "/metrics", ""); response.StatusCode != http.StatusOK || !strings.Contains(text, "\npoundlock_test 0\n") {
		t.Errorf("status %d, and the metric is missing", response.StatusCode)
	}
}
