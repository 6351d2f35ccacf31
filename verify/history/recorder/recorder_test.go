package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/verify/history"
)

// recorded are the events of a file, and what a judge says of them.
func recorded(t *testing.T, path string) (events []history.Event, r *history.Report) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := history.NewReader(path, f)
	if err != nil {
		t.Fatal(err)
	}
	j := history.NewJudge(history.Bounds{})
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return events, j.Report()
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		j.Event(0, e)
	}
}

func does(events []history.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Do)
	}
	return strings.Join(all, " ")
}

// A user that leaves, one that gives up, one that loses its lock, and one whose lease is
// prolonged.
func TestRecorder(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path := filepath.Join(t.TempDir(), "history")
	r, err := Create(path, Config{By: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Try("a", "x")
	v.Entered(t.Context(), 7, nil)
	v.Left()
	v.Back()
	r.Try("a", "x").Back()

	ctx, cancel := context.WithCancel(t.Context())
	v = r.Try("b", "x")
	v.Entered(ctx, 8, nil)
	cancel()
	await(t, path, history.Ejected, 1)
	v.Left()
	v.Back()

	end := time.Now().Add(time.Hour)
	var mu sync.Mutex
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	v = r.Try("c", "x")
	v.Entered(t.Context(), 9, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		once()
		return end
	})
	<-asked
	// As if the lease of an hour were almost over, and as if it had been one of two.
	for k, before := range []time.Duration{0, 2 * time.Hour} {
		r.mu.Lock()
		v.until = r.now() + int64(before)
		v.renew.Reset(0)
		r.mu.Unlock()
		await(t, path, history.Renew, k+1)
	}
	v.Left()
	v.Back()
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	events, report := recorded(t, path)
	want := "try crit exit rem try rem try crit ejected exit rem try crit renew renew exit rem end"
	if got := does(events); got != want || !report.Accepted {
		t.Errorf("%s\nwant %s\n%v", got, want, report.Violations)
	}
	for _, e := range events[len(events)-6 : len(events)-3] {
		if e.Until-e.At > int64(time.Hour) || e.Until-e.At < int64(30*time.Minute) || e.Do == history.Crit && e.Token != 9 {
			t.Errorf("a lease of an hour: %+v", e)
		}
	}
	for i, e := range events[1:] {
		if e.At < events[i].At {
			t.Errorf("%+v after %+v", e, events[i])
		}
	}
}

// Users of one group are inside together, and one that is alone must not be.
func TestRecorderOfGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	r, err := Create(path, Config{By: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.TryGroup("a", "x", "g"), r.TryGroup("b", "x", "g")
	a.Entered(t.Context(), 8, nil)
	b.Entered(t.Context(), 7, nil)
	if _, report := recorded(t, path); !report.Accepted || report.Measures.Concurrency.Max != 2 {
		t.Errorf("two of one group: %v, %+v", report.Violations, report.Measures.Concurrency)
	}
	c := r.Try("c", "y")
	c.Downgraded("g") // it is not inside
	c.Entered(t.Context(), 10, nil)
	c.Downgraded("g")
	r.TryGroup("a", "y", "g").Entered(t.Context(), 11, nil)
	if _, report := recorded(t, path); !report.Accepted || report.Measures.Entries != 4 {
		t.Errorf("one that was alone shares: %v, %d entries", report.Violations, report.Measures.Entries)
	}
	(*Visit)(nil).Downgraded("g")
	r.Try("c", "x").Entered(t.Context(), 9, nil)
	if _, report := recorded(t, path); report.Accepted {
		t.Error("one that is alone beside them is accepted")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// await waits until the file has so many of an event, although nobody closed it.
func await(t *testing.T, path, do string, count int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), `"do":"`+do+`"`) >= count {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s in\n%s", do, text)
		}
	}
}

// Leaving and losing at once is one of the two, in the right order.
func TestRecorderRaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	r, err := Create(path, Config{By: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	soon := func() time.Time { return time.Now().Add(time.Millisecond) }
	var all sync.WaitGroup
	for _, user := range []string{"a", "b"} {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				v := r.Try(user, "lock of "+user)
				v.Entered(ctx, 0, soon)
				go cancel()
				v.Left()
				v.Back()
			}
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, report := recorded(t, path); !report.Accepted || report.Measures.Entries != 400 {
		t.Errorf("%d entries: %v", report.Measures.Entries, report.Violations)
	}
}

// A user that was stopped before it heard that it is inside is not, for its lease is over.
func TestRecorderTooLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	r, err := Create(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []time.Time{time.Now().Add(time.Hour), time.Now().Add(-time.Millisecond), {}} {
		v := r.Try(string(rune('a'+i)), "x")
		v.Entered(t.Context(), uint64(9-i), func() time.Time { return end })
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	events, report := recorded(t, path)
	if !report.Accepted || report.Measures.Entries != 3 {
		t.Errorf("%+v\n%v", events, report.Violations)
	}
}

// Nobody has to ask whether there is a recorder, and an error is not lost.
func TestNoRecorder(t *testing.T) {
	v := (*Recorder)(nil).Try("a", "x")
	v.Entered(t.Context(), 1, nil)
	v.Left()
	v.Back()
	if err := (*Recorder)(nil).Close(); err != nil {
		t.Error(err)
	}
	if _, err := Create(t.TempDir(), Config{}); err == nil {
		t.Error("a directory is a file")
	}
	r, err := Create(filepath.Join(t.TempDir(), "history"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.file.Close()
	r.Try("a", "x").Back()
	if r.Close() == nil {
		t.Error("a closed file takes events")
	}
}

// Files of several machines have the wall clock and say how far it may be off.
func TestWallClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	before := time.Now().UnixNano()
	r, err := Create(path, Config{Uncertainty: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r.Try("a", "x").Back()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"poundlock":"history","version":1,"clock":"wall","uncertainty_ns":50000000}` + "\n"; !strings.HasPrefix(string(text), want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	if events, _ := recorded(t, path); events[0].At < before || events[0].At > before+int64(time.Hour) {
		t.Errorf("a try at %d, after %d", events[0].At, before)
	}
	if _, err := Create(path, Config{Uncertainty: -1}); err == nil {
		t.Error("a clock that is less than right")
	}
}

// A lock is a mutex here.
func Example() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("poundlock-example-%d.jsonl", os.Getpid()))
	defer os.Remove(path)
	events, err := Create(path, Config{By: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	visit := events.Try("worker 3", "the lock")
	mu.Lock()
	visit.Entered(context.Background(), 17, nil)
	visit.Left()
	mu.Unlock()
	visit.Back()
	fmt.Println(events.Close())
	// Output: <nil>
}
