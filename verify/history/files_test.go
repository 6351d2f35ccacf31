package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// write is an event file of events, which may stand off their order by a window.
func write(t testing.TB, h Header, events []Event, end int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(end); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A history in several files, whose lines stand in no exact order, is judged like the
// same one in memory.
func TestFiles(t *testing.T) {
	const window = 100
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		events, b := randomHistory(rng, 200), randomBounds(rng)
		b.Slack = 0
		end := events[len(events)-1].At + 1 // after what anybody did
		whole := NewJudge(b)
		var parts [3][]Event
		for _, e := range events {
			k := int(e.User[0]) % len(parts)
			whole.Event(k, e)
			parts[k] = append(parts[k], e)
		}
		for k := range parts {
			whole.Event(k, Event{At: end, Do: End})
		}
		var files []*Reader
		for i, part := range parts {
			for k := 0; k+1 < len(part); k += 2 {
				if part[k+1].At-part[k].At <= window && part[k].User != part[k+1].User {
					part[k], part[k+1] = part[k+1], part[k]
				}
			}
			text := write(t, Header{Clock: Wall, Window: window}, part, end)
			r, err := NewReader(fmt.Sprint(i), bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, r)
		}
		got, err := Read(files, b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := whole.Report()
		if !reflect.DeepEqual(got.Verdicts, want.Verdicts) || got.Measures != want.Measures || got.Events != want.Events {
			t.Fatalf("seed %d: %+v\nwant %+v", seed, got, want)
		}
	}
}

// A file that is cut anywhere is read as far as it goes, or its header is missed.
func TestTruncated(t *testing.T) {
	events := []Event{
		{At: 5, Do: Try, User: `a"b`, Lock: "ü\u2028"},
		{At: 7, Do: Crit, User: `a"b`, Lock: "ü\u2028", Token: 1<<64 - 1, Until: 30},
		{At: 9, Do: Renew, User: `a"b`, Lock: "ü\u2028", Until: 60},
		{At: 11, Do: Exit, User: `a"b`, Lock: "ü\u2028"},
	}
	text := write(t, Header{Clock: Wall, By: "a test"}, events, 20)
	header := bytes.IndexByte(text, '\n')
	for cut := range len(text) + 1 {
		r, err := NewReader("f", bytes.NewReader(text[:cut]))
		if err != nil {
			if cut >= header {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		var got []Event
		for {
			e, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				break
			}
			got = append(got, e)
		}
		whole := bytes.Count(text[:cut], []byte("\n")) - 1
		if len(got) < whole || len(got) > whole+1 || len(got) > 0 && !reflect.DeepEqual(got, append(events, Event{At: 20, Do: End})[:len(got)]) {
			t.Fatalf("cut at %d: %v", cut, got)
		}
		if partial := len(got) == whole && cut > header && text[cut-1] != '\n'; cut > header+1 && r.Truncated != partial {
			t.Fatalf("cut at %d: truncated %v, want %v", cut, r.Truncated, partial)
		}
	}
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

var errFull = errors.New("no space left")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	if _, err := NewWriter(io.Discard, Header{}); err == nil {
		t.Error("a header without a clock")
	}
	w, err := NewWriter(&failing{1 << 16}, Header{Clock: Wall})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(Event{Do: "enter", User: "a"}); err == nil || errors.Is(err, errFull) {
		t.Errorf("a bad event: %v", err)
	}
	for range 10_000 {
		if err = w.Write(Event{At: 1, Do: Try, User: "a"}); err != nil {
			break
		}
	}
	if !errors.Is(err, errFull) || !errors.Is(w.Flush(), errFull) || !errors.Is(w.End(2), errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

// turns is an endless event file of users that take turns, written as it is read.
func turns(w io.Writer, rounds int) error {
	out, err := NewWriter(w, Header{Clock: Wall})
	for k := 0; k < rounds && err == nil; k++ {
		at, user := int64(10*k), string(rune('a'+k%8))
		for i, e := range []Event{{Do: Try}, {Do: Crit, Token: Token(k + 1)}, {Do: Exit}, {Do: Rem}} {
			e.At, e.User, e.Lock = at+int64(i), user, "x"
			err = errors.Join(err, out.Write(e))
		}
	}
	return errors.Join(err, out.End(int64(10*rounds)))
}

// Memory does not grow with the number of events.
func TestBoundedMemory(t *testing.T) {
	heap := func(rounds int) (used uint64) {
		in, out := io.Pipe()
		go func() { out.CloseWithError(turns(out, rounds)) }()
		r, err := NewReader("turns", in)
		if err != nil {
			t.Fatal(err)
		}
		j := NewJudge(Bounds{Slack: 5, Wait: 1, Bypass: 1, Order: 1})
		if err := Merge([]Source{r}, func(file int, e Event) error { j.Event(file, e); return nil }); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		if report := j.Report(); report.Events != uint64(4*rounds+1) || !report.Accepted {
			t.Errorf("%+v", report)
		}
		return s.HeapAlloc
	}
	few := heap(1000)
	if many := heap(50_000); many > few+256<<10 {
		t.Errorf("%d bytes after 200000 events, %d after 4000", many, few)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(string(write(f, Header{Clock: Wall}, []Event{{At: 1, Do: Try, User: "a", Lock: "x", Group: "g"}}, 3)))
	f.Add(`{"poundlock":"history","version":1,"clock":"wall","window_ns":5}` + "\n\n" + `{"at":1,"do":"cri`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader("f", strings.NewReader(text))
		if err != nil {
			return
		}
		report, err := Read([]*Reader{r}, Bounds{Slack: 3, Wait: 4, Bypass: 1, Order: 2})
		if err == nil && report.Measures.Entries > report.Events {
			t.Error("more entries than events")
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	if err := turns(&text, 25_000); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r, err := NewReader("turns", bytes.NewReader(text.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Read([]*Reader{r}, Bounds{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100_001*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
