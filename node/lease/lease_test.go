package lease

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The holder's lease ends strictly before the grantor's, in real time, for any
// delay of the renewal and any two clocks whose rates differ by less than Drift.
func TestHolderFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		terms := Terms{Length: time.Duration(1 + r.Int64N(int64(time.Minute))), Drift: r.Float64() * 0.1}
		terms.Margin = Margin(terms.Length)
		// A clock reads offset + rate*time. The hard case is a holder whose clock
		// is the slower one, by almost all that is allowed.
		theirs := 0.9 + r.Float64()*0.2
		mine := theirs * (1 - terms.Drift*0.999)
		if r.IntN(2) == 0 {
			mine, theirs = theirs, mine
		}
		offset := time.Duration(r.Int64N(int64(time.Hour)))
		h := Lease{Length: terms.Held()}
		g := Lease{Length: terms.Length}
		sent := time.Duration(r.Int64N(int64(time.Hour)))
		heard := sent + time.Duration(r.Int64N(int64(time.Second)))
		h.Renew(time.Duration(float64(sent) * mine))
		g.Renew(offset + time.Duration(float64(heard)*theirs))
		ends := time.Duration(float64(h.End()) / mine)
		suspects := time.Duration(float64(g.End()-offset) / theirs)
		// Rounding to whole nanoseconds of hours costs some.
		if slack := 10 * time.Nanosecond; ends >= suspects+slack {
			t.Fatalf("%+v, rates %v and %v: the holder until %v, the grantor until %v",
				terms, mine, theirs, ends, suspects)
		}
	}
}

func TestHolder(t *testing.T) {
	h := Lease{Length: Terms{Length: 10 * time.Second, Drift: 0.01, Margin: 400 * time.Millisecond}.Held()}
	if !h.Lapsed(-time.Hour) {
		t.Error("a lease that was never renewed is alive")
	}
	h.Renew(5 * time.Second)
	if want := 14500 * time.Millisecond; h.End() != want || h.Lapsed(want-1) || !h.Lapsed(want) {
		t.Errorf("it ends at %v, want %v", h.End(), want)
	}
	h.Renew(time.Second) // an answer that was overtaken
	if h.End() != 14500*time.Millisecond {
		t.Errorf("an old answer moved the end to %v", h.End())
	}
}

func TestGrantor(t *testing.T) {
	g := Lease{Length: time.Second}
	g.Renew(time.Minute)
	if want := 61 * time.Second; g.End() != want || g.Lapsed(want-1) || !g.Lapsed(want) {
		t.Errorf("it ends at %v, want %v", g.End(), want)
	}
	g.Renew(30 * time.Second)
	if g.End() != 61*time.Second {
		t.Errorf("an old renewal moved the end to %v", g.End())
	}
}
