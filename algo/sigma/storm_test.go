package sigma

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

const delay = time.Millisecond // T of these tests

// contend has k clients that try again as soon as they have left.
func contend(t *testing.T, a protocol.Algorithm[Message], n, k, entries int, hold time.Duration, d sim.Dist) sim.Result {
	t.Helper()
	r, err := sim.Run(a, sim.Config{
		Config: protocol.Config{N: n}, Clients: k, Entries: []int{entries}, Seed: 1,
		Delay: d, Think: sim.Constant(0), Hold: sim.Constant(hold),
	})
	if err != nil || r.ViolationCount > 0 {
		t.Fatal(r.Violations, err)
	}
	return r
}

// storm is the formula of docs/sigma.md for the messages of one entry of the literal
// form with k > 1 clients.
func storm(n, k int, hold, sync float64) float64 {
	m := quorum.TwoThirds(n)
	turns := float64(k-1) * (hold + sync) // of the others, while a client waits
	return float64(3*n) + float64(2*m)*(1+math.Ceil(turns/2))
}

// The inquiry storm of the literal form, beside the default form. What the test logs
// is the table of docs/sigma.md.
func TestStorm(t *testing.T) {
	text, err := os.ReadFile("../../docs/sigma.md")
	if err != nil {
		t.Fatal(err)
	}
	const n = 4
	rows := []string{
		"| clients | REQUEST | RELEASE | YIELD | INQUIRY | RESPONSE | all, literal | formula | all, default | S, literal | S, default |",
		"|---|---|---|---|---|---|---|---|---|---|---|",
	}
	for _, k := range []int{1, 2, 3, 5, 10, 20, 50, 100} {
		literal := contend(t, Literal, n, k, 50, delay, sim.Constant(delay))
		deferring := contend(t, Algorithm, n, k, 50, delay, sim.Constant(delay))
		formula := float64(3 * n)
		if k > 1 {
			formula = storm(n, k, 1, 4)
		}
		row := fmt.Sprintf("| %d |", k)
		for _, kind := range []string{"REQUEST", "RELEASE", "YIELD", "INQUIRY", "RESPONSE"} {
			row += fmt.Sprintf(" %.1f |", float64(literal.MessagesByKind[kind])/float64(literal.Entries))
		}
		row += fmt.Sprintf(" %.1f | %.0f | %.1f | %s | %s |",
			literal.MessagesPerEntry, formula, deferring.MessagesPerEntry, syncDelay(literal), syncDelay(deferring))
		rows = append(rows, row)

		// Fewer wait at the end of a run: on 50 entries that is a hundredth.
		if got := literal.MessagesPerEntry; got > formula+0.1 || got < 0.985*formula {
			t.Errorf("%d clients: %.1f messages an entry, and the formula says %.0f", k, literal.MessagesPerEntry, formula)
		}
		if k > 1 && math.Abs(deferring.MessagesPerEntry-4*n) > 0.1 {
			t.Errorf("%d clients: the default form sends %.1f messages an entry, want 4n", k, deferring.MessagesPerEntry)
		}
	}
	table := strings.Join(rows, "\n")
	t.Logf("\n%s", table)
	if !strings.Contains(string(text), table+"\n\n") {
		t.Errorf("docs/sigma.md does not have this table:\n%s", table)
	}
}

func syncDelay(r sim.Result) string {
	if r.SyncDelay.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f T", r.SyncDelay.Mean)
}

// The formula of the storm is exact for other sizes and holds as well. An entry
// costs what twice as many of them cost in addition, so that the beginning and the
// end of a run do not count.
func TestStormFormula(t *testing.T) {
	marginal := func(n, k int, hold time.Duration) (messages, sync float64) {
		few := contend(t, Literal, n, k, 10, hold, sim.Constant(delay))
		many := contend(t, Literal, n, k, 20, hold, sim.Constant(delay))
		return float64(many.Messages-few.Messages) / float64(many.Entries-few.Entries), many.SyncDelay.Mean
	}
	for _, n := range []int{3, 4, 5, 7, 9, 10} {
		// The new owner has n-m answers that name the old one, so that its first 2m-n
		// supports make up m answers: it gives these back. The other 2(n-m) are a
		// quorum if n is a multiple of three.
		m, back, sync := quorum.TwoThirds(n), 2*quorum.TwoThirds(n)-n, 4.0
		if n-back >= m {
			sync = 2
		}
		for _, k := range []int{2, 3, 8} {
			for _, hold := range []float64{1, 2, 3, 10} {
				got, s := marginal(n, k, time.Duration(hold)*delay)
				if want := storm(n, k, hold, sync); math.Abs(got-want) > 0.2 || s != sync {
					t.Errorf("n=%d, %d clients, C=%vT: %.2f messages an entry and S=%vT, want %.0f and %vT",
						n, k, hold, got, s, want, sync)
				}
			}
			// A client that leaves in the instant in which it entered sends RELEASE just after the
			// polls of that instant: they are answered once more.
			got, _ := marginal(n, k, 0)
			if want := storm(n, k, 0, sync) + float64(2*m); math.Abs(got-want) > 0.2 {
				t.Errorf("n=%d, %d clients, C=0: %.2f messages an entry, want %.0f", n, k, got, want)
			}
		}
	}
}

// With random delays rounds are not in step, and S is what it is.
func TestStormWithRandomDelays(t *testing.T) {
	for _, d := range []sim.Dist{sim.Exponential(delay), sim.Uniform(0, 2*delay)} {
		for _, k := range []int{2, 5, 20} {
			r := contend(t, Literal, 4, k, 100, delay, d)
			turns := float64(k-1) * (1 + r.SyncDelay.Mean)
			want := 12 + 6*(1+turns/2)
			if got := r.MessagesPerEntry; math.Abs(got-want) > 0.05*want {
				t.Errorf("delay %v, %d clients: %.1f messages an entry, want %.1f or 5 %% from it", d, k, got, want)
			}
			if sync := r.SyncDelay.Mean; sync < 2.4 || sync > 2.9 {
				t.Errorf("delay %v, %d clients: S=%.2fT, want 2.4T to 2.9T", d, k, sync)
			}
		}
	}
}
