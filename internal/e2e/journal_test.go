package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must come at last, on any machine.
const patience = 90 * time.Second

// A journal collects the records of all workers as they come.
type journal struct {
	t       *testing.T
	workers map[string]*process // by label

	mu      sync.Mutex
	records []record
	reading sync.WaitGroup
}

func newJournal(t *testing.T) *journal {
	return &journal{t: t, workers: map[string]*process{}}
}

// start starts a worker, and waits until it has reached a quorum.
func (j *journal) start(a clientArgs) {
	j.t.Helper()
	a.Mode = "work"
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
	if j.await(func(r record) bool { return r.Client == a.Label && r.What == "ready" }) == nil {
		j.t.Fatalf("%s does not begin:\n%s", a.Label, &p.stderr)
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
func (j *journal) end() history {
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

// A history is what all workers did.
type history []record

// A visit is one grant, from when Lock returned until the user knew that it was lost,
// or called Unlock.
type visit struct {
	client, name string
	token        uint64
	from, to     int64 // ns
	lost         bool
}

func (v visit) String() string { return fmt.Sprintf("%s (token %d)", v.client, v.token) }

// visits are the grants by lock name, in the order in which they began. Of clients in
// deaf the loss does not end one.
func (h history) visits(deaf ...string) map[string][]visit {
	all := map[string][]visit{}
	current := map[string]*visit{}
	for _, r := range h { // those of one client are in order
		v := current[r.Client]
		switch r.What {
		case "entered":
			current[r.Client] = &visit{client: r.Client, name: r.Name, token: r.Token, from: r.At}
		case "lost":
			if v != nil && v.token == r.Token && !slices.Contains(deaf, r.Client) {
				v.to, v.lost = r.At, true
			}
		case "left":
			if v.to == 0 {
				v.to = r.At
			}
			all[v.name] = append(all[v.name], *v)
			delete(current, r.Client)
		}
	}
	for _, visits := range all {
		sortVisits(visits)
	}
	return all
}

func sortVisits(visits []visit) {
	slices.SortFunc(visits, func(v, w visit) int { return cmp.Compare(v.from, w.from) })
}

// overlaps are the grants of one lock that began while another one lasted.
func overlaps(all map[string][]visit) (found []string) {
	for name, visits := range all {
		var last visit // of those so far, the one that ends last
		for _, v := range visits {
			if v.from < last.to {
				found = append(found, fmt.Sprintf("lock %q: %v entered %v before %v left",
					name, v, time.Duration(last.to-v.from), last))
			}
			if v.to > last.to {
				last = v
			}
		}
	}
	return found
}

// inversions are grants of one lock with a token that is not larger than that of one
// that had ended.
func inversions(all map[string][]visit) (found []string) {
	for name, visits := range all {
		ends := slices.Clone(visits)
		slices.SortFunc(ends, func(v, w visit) int { return cmp.Compare(v.to, w.to) })
		var largest visit
		for _, v := range visits {
			for len(ends) > 0 && ends[0].to < v.from {
				if ends[0].token > largest.token {
					largest = ends[0]
				}
				ends = ends[1:]
			}
			if v.token <= largest.token {
				found = append(found, fmt.Sprintf("lock %q: %v entered after %v", name, v, largest))
			}
		}
	}
	return found
}

// strange are errors that nobody should see: other ones than those allowed, and calls
// that ended without or long after their deadline.
func (h history) strange(allowed ...string) (found []string) {
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
func (h history) stalled() (longest time.Duration) {
	for _, r := range h {
		if r.What == "stalled" {
			longest = max(longest, time.Duration(r.Overdue))
		}
	}
	return longest
}

// summary counts grants and errors.
func (h history) summary() string {
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
	if os.Getenv("POUNDLOCK_FULL") != "" {
		return true
	}
	t.Logf("SHORTENED to %s: POUNDLOCK_FULL=1 makes it %s", short, long)
	return false
}

// The analysis sees what it looks for.
func TestHistory(t *testing.T) {
	v := func(client string, token uint64, from, to int64) visit {
		return visit{client, "x", token, from, to, false}
	}
	for _, x := range []struct {
		name       string
		visits     []visit
		overlaps   int
		inversions int
	}{
		{"in turn", []visit{v("a", 1, 0, 10), v("b", 2, 10, 20), v("a", 3, 21, 22)}, 0, 0},
		{"two at once", []visit{v("a", 1, 0, 10), v("b", 2, 9, 20)}, 1, 0},
		{"within a long one", []visit{v("a", 1, 0, 100), v("b", 2, 5, 10), v("c", 3, 20, 30)}, 2, 0},
		{"an older token", []visit{v("a", 5, 0, 10), v("b", 4, 11, 20)}, 0, 1},
		{"one token twice", []visit{v("a", 5, 0, 10), v("b", 5, 11, 20)}, 0, 1},
		{"an older token of one that lasts", []visit{v("a", 5, 0, 10), v("b", 4, 9, 20)}, 1, 0},
	} {
		all := map[string][]visit{"x": x.visits}
		if k := len(overlaps(all)); k != x.overlaps {
			t.Errorf("%s: %d overlaps, want %d", x.name, k, x.overlaps)
		}
		if k := len(inversions(all)); k != x.inversions {
			t.Errorf("%s: %d inversions, want %d", x.name, k, x.inversions)
		}
	}
	h := history{
		{Client: "a", Name: "x", What: "entered", Token: 1, At: 1},
		{Client: "a", What: "lost", Token: 1, At: 5},
		{Client: "a", What: "left", Token: 1, At: 9},
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
	if x := h.visits()["x"]; len(x) != 1 || x[0].to != 5 || !x[0].lost {
		t.Errorf("a lost grant: %+v", x)
	}
	if x := h.visits("a")["x"]; len(x) != 1 || x[0].to != 9 {
		t.Errorf("a lost grant of who does not hear: %+v", x)
	}
}
