package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func TestCheckOptions(t *testing.T) {
	at := func(v int64) func(Config) int64 { return func(Config) int64 { return v } }
	i := Info{Options: []Option{
		{Name: "size", Default: at(1), Range: func(c Config) (least, most int64) { return 1, int64(c.N) }, Doc: "at once"},
		{Name: "pause", Default: at(7)},
	}}
	for _, c := range []struct {
		info    Info
		options map[string]int64
		want    string
	}{
		{i, nil, ""},
		{i, map[string]int64{"size": 4, "pause": 0}, ""},
		{i, map[string]int64{"size": 5}, "option size=5: want 1 to 4 with n=4 (at once)"},
		{i, map[string]int64{"size": 0}, "option size=0: want 1 to 4 with n=4 (at once)"},
		{i, map[string]int64{"pause": -1}, "option pause=-1: want at least 0"},
		{i, map[string]int64{"sise": 1}, `no option "sise": its options are size, pause`},
		{Info{}, map[string]int64{"size": 1}, `no option "size": it has no options`},
		{Info{Largest: 4}, nil, ""},
		{Info{Largest: 3}, nil, "n=4: it is for 3 members at most"},
	} {
		got := ""
		if err := c.info.CheckOptions(Config{N: 4, Options: c.options}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.options, got, c.want)
		}
	}
}

// Two groups of members that are enough share one, where an algorithm needs a majority.
func TestEnough(t *testing.T) {
	for n := range 6 {
		for up := range n + 1 {
			if !(Info{}).Enough(up, n) {
				t.Errorf("%d of %d: no algorithm needs more than are up", up, n)
			}
			if got := (Info{Majority: true}).Enough(up, n); got != (up > n-up) {
				t.Errorf("%d of %d are enough: %v", up, n, got)
			}
		}
	}
}

// A member that came back, and takes no part yet, does not count; and it may crash when nobody else may.
func TestSpare(t *testing.T) {
	type process struct{ Process[int] }
	whole, back := &process{}, &process{}
	a := Algorithm[int]{Info: Info{Majority: true}, Unsettled: func(procs []Stateful) (k int) {
		for _, p := range procs {
			if p == back {
				k++
			}
		}
		return k
	}}
	for _, c := range []struct {
		procs []Stateful
		may   []bool
	}{
		{[]Stateful{whole, whole, whole}, []bool{true, true, true}},
		{[]Stateful{whole, nil, whole}, []bool{false, true, false}},
		{[]Stateful{whole, back, whole}, []bool{false, true, false}},
	} {
		before := slices.Clone(c.procs)
		for i, want := range c.may {
			if got := a.Spare(c.procs, ID(i)); got != want {
				t.Errorf("%v: process %d may crash: %v, want %v", c.procs, i, got, want)
			}
		}
		if !slices.Equal(c.procs, before) {
			t.Error("the processes have changed")
		}
	}
}

// A Reader accepts exactly what was appended: the shortest form, whole.
func TestReader(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 1<<63 - 1, 1<<64 - 1} {
		b := binary.AppendUvarint(nil, v)
		r := Reader{Rest: append(b, 9)}
		if got := r.Uint(); got != v || r.Err != nil || !bytes.Equal(r.Rest, []byte{9}) {
			t.Errorf("%d: got %d, %v, rest %v", v, got, r.Err, r.Rest)
		}
		r = Reader{Rest: b[:len(b)-1]}
		if r.Uint(); !errors.Is(r.Err, ErrShort) {
			t.Errorf("%d cut short: %v", v, r.Err)
		}
	}
	for _, text := range []string{"", "a", "two words"} {
		b := AppendText(nil, text)
		r := Reader{Rest: append(b, 9)}
		if got := r.Text(); got != text || r.Err != nil || !bytes.Equal(r.Rest, []byte{9}) {
			t.Errorf("%q: got %q, %v, rest %v", text, got, r.Err, r.Rest)
		}
	}
	for name, read := range map[string]func(*Reader){
		"a longer form of 0":           func(r *Reader) { r.Rest = []byte{0x80, 0}; r.Uint() },
		"more than most":               func(r *Reader) { r.Rest = []byte{4}; r.Max(3) },
		"a length beyond the input":    func(r *Reader) { r.Rest = []byte{2, 1}; r.Len() },
		"a text that is cut short":     func(r *Reader) { r.Rest = []byte{2, 'a'}; r.Text() },
		"a boolean that is neither":    func(r *Reader) { r.Rest = []byte{2}; r.Bool() },
		"anything after a first error": func(r *Reader) { r.Rest = []byte{4, 1}; r.Max(3); r.Uint() },
	} {
		var r Reader
		if read(&r); !errors.Is(r.Err, ErrShort) || len(r.Rest) != 0 {
			t.Errorf("%s: error %v, rest %v", name, r.Err, r.Rest)
		}
	}
}

// Events and effects are numbered in several files. Two that had one number would not compile here.
var (
	_ = map[Kind]bool{
		Start: true, Try: true, Cancel: true, Exit: true, Receive: true,
		Timeout: true, Suspect: true, Restore: true, Drain: true,
		Value: true, Lead: true, Issue: true, Decide: true, Captured: true,
	}
	_ = map[Do]bool{
		Send: true, Broadcast: true, Crit: true, Rem: true, Ejected: true,
		SetTimer: true, StopTimer: true, Owner: true, Read: true,
		Write: true, Await: true, Leader: true, Revoke: true, Invoke: true,
		Outcome: true, Propose: true, Resume: true, Capture: true, Install: true,
	}
)

// The next process of a ring is the first one behind that is not in the set, round the end, or the process itself.
func TestAfter(t *testing.T) {
	s := NewSet(5)
	for _, step := range []struct {
		add  ID
		want []ID // behind 0, 1, ..
	}{
		{1, []ID{2, 2, 3, 4, 0}},
		{4, []ID{2, 2, 3, 0, 0}},
		{0, []ID{2, 2, 3, 2, 2}},
		{3, []ID{2, 2, 2, 2, 2}},
		{2, []ID{0, 1, 2, 3, 4}},
	} {
		s.Add(step.add)
		for id, want := range step.want {
			if got := s.After(ID(id), 5); got != want {
				t.Errorf("with %d in it, %d is behind %d, want %d", step.add, got, id, want)
			}
		}
	}
}
