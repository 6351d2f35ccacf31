package load

import (
	"math"
	"testing"
	"time"

	"github.com/poundlock/poundlock/verify/history"
)

func TestQuantiles(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(100-i)*time.Millisecond)
	}
	if q := Of(times, time.Millisecond); *q != (Quantiles{50, 99}) {
		t.Errorf("quantiles of 1 to 100: %v", *q)
	}
	if q := Of(times[:1], 2*time.Millisecond); *q != (Quantiles{0.5, 0.5}) {
		t.Errorf("quantiles of one value, in units of two: %v", *q)
	}
	if Of(nil, time.Second) != nil || Of(times, 0) != nil {
		t.Error("quantiles of nothing, or in units of nothing")
	}
}

func TestHandovers(t *testing.T) {
	w := &Window{
		Users: []User{{Name: "a"}, {Name: "a"}, {Name: "b"}},
		Records: [][]Record{
			{{0, 1, 10, 11, 7, ""}, {11, 30, 40, 41, 9, ""}, {41, 42, 50, 51, 10, ""}},
			{{2, 15, 20, 21, 8, ""}, {60, 61, 70, 71, 11, ""}},
			{{3, 12, 13, 14, 1, ""}}, // another lock
		},
	}
	// From 10 to 15 and from 20 to 30; 42 follows its own user, and 61 had not called.
	if times := w.Handovers(); len(times) != 2 || times[0] != 5 || times[1] != 10 {
		t.Errorf("hand-overs %v", times)
	}
	r := w.Judge()
	if !r.Accepted || r.Events != 24 || r.Locks != 2 || r.Measures.Entries != 6 || r.Measures.MaxBypass != 1 {
		t.Errorf("%+v", r)
	}
	w.Records[1][0].Entered = 10 // when the other one leaves
	if r := w.Judge(); !r.Accepted {
		t.Errorf("one entered when the other left: %+v", r)
	}
	w.Records[1][0].Entered = 9
	if r := w.Judge(); r.Accepted || len(r.Violations) != 1 || r.Violations[0].Property != history.Exclusion {
		t.Errorf("one entered before the other left: %+v", r)
	}
	if got := w.Grants(); got != 6 {
		t.Errorf("%d grants", got)
	}
	if j, want := w.Jain(), 36.0/(3*(9+4+1)); math.Abs(j-want) > 1e-9 {
		t.Errorf("Jain's index %v, want %v", j, want)
	}
	if j := (&Window{Records: make([][]Record, 2)}).Jain(); j != 0 {
		t.Errorf("Jain's index of nothing: %v", j)
	}
}

// Users that share are inside together, with tokens in any order, and hand the lock over when the last of them leaves.
func TestShared(t *testing.T) {
	w := &Window{
		Users: []User{{Name: "a"}, {Name: "a"}, {Name: "a"}},
		Records: [][]Record{
			{{0, 1, 30, 31, 7, "shared"}, {31, 60, 70, 71, 11, "shared"}},
			{{2, 5, 20, 21, 6, "shared"}},
			{{3, 34, 40, 41, 9, ""}},
		},
	}
	// From 30 to 34, and from 40 to 60.
	if times := w.Handovers(); len(times) != 2 || times[0] != 4 || times[1] != 20 {
		t.Errorf("hand-overs %v", times)
	}
	if w.Part(true).Grants() != 3 || w.Grants() != 4 {
		t.Errorf("%d of %d grants are shared", w.Part(true).Grants(), w.Grants())
	}
	if r := w.Judge(); !r.Accepted || r.Measures.Concurrency.Max != 2 || r.Measures.Sessions != 3 {
		t.Errorf("%+v", r)
	}
	for what, plant := range map[string]func(){
		"a writer beside a reader":     func() { w.Records[2][0].Entered = 29 },
		"another group beside readers": func() { w.Records[1][0].Group = "others" },
	} {
		kept := []Record{w.Records[1][0], w.Records[2][0]}
		plant()
		if r := w.Judge(); r.Accepted || r.Violations[0].Property != history.Exclusion {
			t.Errorf("%s: %+v", what, r)
		}
		w.Records[1][0], w.Records[2][0] = kept[0], kept[1]
	}
	w.Records[2][0].Token = 7
	if r := w.Judge(); r.Accepted || r.Violations[0].Property != history.Reuse {
		t.Errorf("a writer with the token of a reader: %+v", r)
	}
}
