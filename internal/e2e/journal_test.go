package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
)

// patience is how long a test waits for what must come at last, on any machine.
const patience = 90 * time.Second

// A journal collects the records of all workers as they come, and their event files.
type journal struct {
	t       *testing.T
	workers map[string]*process // by label
	dir     string
	files   []string

	mu      sync.Mutex
	records []record
	reading sync.WaitGroup
}

// newJournal returns a journal whose files go test -artifacts keeps.
func newJournal(t *testing.T) *journal {
	t.Helper()
	dir, err := os.MkdirTemp(t.ArtifactDir(), "journal")
	if err != nil {
		t.Fatal(err)
	}
	return &journal{t: t, workers: map[string]*process{}, dir: dir}
}

// start starts a worker, and waits until it has reached a quorum.
func (j *journal) start(a clientArgs) {
	j.t.Helper()
	j.launch(a)
	j.ready(a.Label)
}

// launch starts a worker.
func (j *journal) launch(a clientArgs) {
	j.t.Helper()
	a.Mode = "work"
	a.History = filepath.Join(j.dir, fmt.Sprintf("%d %s.jsonl", len(j.files), a.Label))
	j.files = append(j.files, a.History)
	p := startClient(j.t, a)
	j.workers[a.Label] = p
	j.reading.Go(func() {
		for in := json.NewDecoder(p.stdout); ; {
			var r record
			if in.Decode(&r) != nil {
				return
			}
			j.mu.Lock()
			j.records = append(j.records, r)
			j.mu.Unlock()
		}
	})
}

// ready waits until a worker has reached a quorum.
func (j *journal) ready(label string) {
	j.t.Helper()
	if j.await(func(r record) bool { return r.Client == label && r.What == "ready" }) == nil {
		j.t.Fatalf("%s does not begin:\n%s", label, &j.workers[label].stderr)
	}
}

// find returns the first record that fits, nil for none.
func (j *journal) find(fits func(record) bool) *record {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.IndexFunc(j.records, fits); i >= 0 {
		return &j.records[i]
	}
	return nil
}

// await waits for a record that fits, nil after patience.
func (j *journal) await(fits func(record) bool) *record {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if r := j.find(fits); r != nil || time.Now().After(end) {
			return r
		}
	}
}

// entered fits the records of grants of one lock that begin after an instant.
func entered(client, name string, after int64) func(record) bool {
	return func(r record) bool {
		return r.What == "entered" && r.Name == name && r.At > after && (client == "" || r.Client == client)
	}
}

// end ends all workers and returns what they did.
func (j *journal) end() records {
	j.t.Helper()
	for _, p := range j.workers {
		p.stdin.Close()
	}
	j.reading.Wait()
	for label, p := range j.workers {
		if err := p.cmd.Wait(); err != nil {
			j.t.Errorf("%s: %v\n%s", label, err, &p.stderr)
		}
	}
	return slices.Clone(j.records)
}

// records are what all workers did.
type records []record

// strange are errors that nobody should see: other ones than those allowed, and calls
// that ended without or long after their deadline.
func (h records) strange(allowed ...string) (found []string) {
	for _, r := range h {
		switch {
		case r.What != "failed":
		case !slices.Contains(allowed, r.Kind):
			found = append(found, fmt.Sprintf("%s: %s: %s", r.Client, r.Kind, r.Error))
		case r.Kind == lockLost || r.Kind == notAcquired && r.Try:
		case !r.Deadline:
			found = append(found, fmt.Sprintf("%s: %s before the deadline: %s", r.Client, r.Kind, r.Error))
		case time.Duration(r.Overdue) > patience:
			found = append(found, fmt.Sprintf("%s: %v after the deadline: %s", r.Client, time.Duration(r.Overdue), r.Error))
		}
	}
	return found
}

// stalled is for how long some client got no processor.
func (h records) stalled() (longest time.Duration) {
	for _, r := range h {
		if r.What == "stalled" {
			longest = max(longest, time.Duration(r.Overdue))
		}
	}
	return longest
}

// count is how many errors of a kind there were.
func (h records) count(kind string) (k int) {
	for _, r := range h {
		if r.What == "failed" && r.Kind == kind {
			k++
		}
	}
	return k
}

// summary counts grants and errors.
func (h records) summary() string {
	count := map[string]int{}
	for _, r := range h {
		switch r.What {
		case "entered":
			count["grants"]++
		case "failed":
			count[r.Kind]++
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[k], k))
	}
	return strings.Join(parts, ", ")
}

// report makes errors of what was found, the first few of them.
func report(t *testing.T, what string, found []string) {
	t.Helper()
	if len(found) > 0 {
		t.Errorf("%s, %d times:\n%s", what, len(found), strings.Join(found[:min(10, len(found))], "\n"))
	}
}

// full says whether the long forms run, and otherwise what is shortened.
func full(t *testing.T, short, long string) bool {
	t.Helper()
	if lane.Long.Runs() {
		return true
	}
	t.Logf("SHORTENED to %s: TEST_LANE=long makes it %s", short, long)
	return false
}

// The analysis of errors sees what it looks for.
func TestStrange(t *testing.T) {
	h := records{
		{Client: "a", What: "failed", Kind: lockLost},
		{Client: "b", What: "failed", Kind: noQuorum, Deadline: true},
		{Client: "b", What: "failed", Kind: notAcquired},
		{Client: "b", What: "failed", Kind: notAcquired, Try: true},
		{Client: "b", What: "failed", Kind: notAcquired, Deadline: true, Overdue: int64(time.Hour)},
		{Client: "b", What: "failed", Kind: unexpected},
	}
	if k := len(h.strange(lockLost, noQuorum, notAcquired)); k != 3 {
		t.Errorf("%d strange errors, want 3", k)
	}
	if k := len(h.strange(noQuorum, notAcquired)); k != 4 {
		t.Errorf("%d strange errors without losses, want 4", k)
	}
}
