package groups

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

func run(t *testing.T, e lab.Experiment) lab.Report {
	t.Helper()
	r, err := lab.Run(t.Context(), e, lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r lab.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is claimed of Sigma holds, also with few entries, and docs/experiments.md says what each column is.
func TestCompare(t *testing.T) {
	r := run(t, Compare)
	// Of Sigma: each point with equal delays, and those of which something is claimed with others; and two ratios.
	if want := 5 + 3 + 2; r.Verdicts[lab.Within] != want || len(r.Verdicts) != 1 {
		t.Errorf("verdicts: %s, want %d within their bounds\n%s", r.Summary(), want, text(t, r))
	}
	labtest.Documented(t, Compare, r.Tables...)
}

// What is beyond its bound differs, and so does one trial among others whose mean is within.
func TestDiffers(t *testing.T) {
	spoil := func(measure string, seed uint64, change func(float64) float64) (names []string) {
		e := Compare
		e.Plan = func(s lab.Scale) lab.Plan {
			p := compare(s)
			for i := range p.Configurations {
				c := &p.Configurations[i]
				try := c.Try
				if !slices.Equal(c.Labels, system{rooms, constant, 4, sigma}.labels()) {
					continue
				}
				c.Try = func(ctx context.Context, x int, s uint64) (lab.Sample, error) {
					sample, err := try(ctx, x, s)
					if err == nil && x == 4 && (seed == 0 || s == seed) {
						sample.Values[measure] = change(sample.Values[measure])
					}
					return sample, err
				}
			}
			return p
		}
		for _, table := range run(t, e).Tables {
			for _, row := range table.Rows {
				if slices.Contains(row, any(lab.Differs)) {
					names = append(names, table.Name)
				}
			}
		}
		return names
	}
	bound := float64(mostBypass(users, 3))
	for _, test := range []struct {
		measure string
		seed    uint64
		change  func(float64) float64
		want    string
	}{
		{messages, 0, func(float64) float64 { return 4.1 * 4 }, ""},
		{messages, 0, func(float64) float64 { return 4.2 * 4 }, "compare"},
		{bypass, 2, func(float64) float64 { return bound }, ""},
		{bypass, 2, func(float64) float64 { return bound + 1 }, "compare"},
		{throughput, 0, func(v float64) float64 { return v / 2.2 }, "throughput"},
	} {
		if got := strings.Join(spoil(test.measure, test.seed, test.change), " "); got != test.want {
			t.Errorf("%s: %q differs, want %q", test.measure, got, test.want)
		}
	}
}

// Where servers get requests in the order of their timestamps, nobody is passed more often than mostBypass says, whatever
// users do; in small systems somebody is passed so often. With clocks that are apart timestamps are in another order,
// and the bound does not hold.
func TestBypass(t *testing.T) {
	largest := func(k, groups int, offset time.Duration) (most int) {
		for _, hold := range []sim.Dist{sim.Constant(5 * hop), sim.Uniform(0, 10*hop), sim.Exponential(10 * hop)} {
			for _, think := range []sim.Dist{sim.Constant(0), sim.Exponential(5 * hop)} {
				r, err := catalog.Find("sigma", "").Simulate(sim.Config{
					Config: protocol.Config{N: 4, Options: map[string]int64{"fence": 0}}, Clients: k,
					Entries: []int{200}, Seed: 1, ClockOffset: offset,
					Delay: sim.Constant(hop), Think: think, Hold: hold, Groups: groups,
				})
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, int(r.MaxBypass))
			}
		}
		return most
	}
	for _, x := range []struct {
		k, groups int
		reached   bool
	}{{2, 2, true}, {3, 3, true}, {4, 4, true}, {5, 3, false}, {6, 3, false}, {8, 2, false}, {8, 4, false}, {20, 4, false}} {
		bound := mostBypass(x.k, x.groups-1)
		if most := largest(x.k, x.groups, 0); most > bound || x.reached && most < bound {
			t.Errorf("%d users of %d groups: one is passed %d times, want at most %d (reached: %v)", x.k, x.groups, most, bound, x.reached)
		}
	}
	if most, bound := largest(4, 4, 50*time.Millisecond), mostBypass(4, 3); most <= bound {
		t.Errorf("with clocks that are apart one is passed %d times: the bound %d holds there too", most, bound)
	}
}

// Every committed table and figure follows from the committed replications, byte for byte, and these are what
// simulations give: one in eleven is repeated.
func TestCommitted(t *testing.T) {
	r := labtest.Recomputed(t, Compare, labtest.Figures)
	for _, name := range labtest.Stale(t, r) {
		t.Errorf("%s is not what comes out: poundlock-lab lab run %s --out docs/figures", name, Compare.Name)
	}
	file, err := os.Open(filepath.Join(labtest.Figures, "groups-compare-replications.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]string{}
	for _, row := range rows {
		made[strings.Join(row[:6], "/")] = row[6:]
	}
	i := 0
	for _, c := range Compare.Plan(r.Scale).Configurations {
		for _, x := range c.Points {
			if i++; i%11 != 0 {
				continue
			}
			sample, err := c.Try(t.Context(), x, 1)
			if err != nil {
				t.Fatal(err)
			}
			var values []string
			for _, m := range measures {
				value := ""
				if v, known := sample.Values[m.Name]; known {
					value = strconv.FormatFloat(v, 'g', -1, 64)
				}
				values = append(values, value)
			}
			name := strings.Join(c.Labels, "/") + "/" + strconv.Itoa(x) + "/1"
			if have := made[name]; !slices.Equal(have, values) {
				t.Errorf("%s: the table has %v, and a simulation gives %v", name, have, values)
			}
		}
	}
}
