package protocol

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// A value has a field of each kind that a Codec visits.
type value struct {
	n      int
	number uint64
	few    [2]uint64
	clock  uint64
	time   uint64
	own    uint64
	kind   uint8
	yes    bool
	flags  [2]bool
	id     ID
	any    ID
	epoch  Epoch
	text   Group
	set    Set
	list   []item
	end    uint64
}

type item struct {
	id   ID
	time uint64
}

var own = Counter{User: 7}

// State implements Stateful.
func (v *value) State(c *Codec) {
	c.Uints(&v.number)
	c.Words(v.few[:])
	c.Clock(&v.clock)
	c.Time(&v.time)
	c.Count(&v.own, own)
	Upto(c, &v.kind, 3)
	c.Bools(&v.yes)
	c.Flags(v.flags[:])
	c.ID(&v.id, v.n)
	c.AnyID(&v.any)
	c.Epoch(&v.epoch, 9)
	Text(c, &v.text)
	c.Set(v.set, v.n)
	for i := range List(c, &v.list) {
		if c.ID(&v.list[i].id, v.n); v.list[i].id > 0 {
			c.Time(&v.list[i].time)
		}
	}
	c.Uint(&v.end)
}

func newValue(n int) *value { return &value{n: n, set: NewSet(n)} }

func example() *value {
	v := newValue(70)
	v.number, v.few, v.clock, v.time, v.own = 1<<40, [2]uint64{0, 200}, 9, 3, 5
	v.kind, v.yes, v.flags, v.id, v.any = 3, true, [2]bool{false, true}, 69, 1<<63
	v.epoch, v.text = Epoch{2, 9}, "a group"
	v.set.Add(0)
	v.set.Add(69)
	v.list = []item{{id: 0}, {1, 4}, {2, 0}}
	v.end = math.MaxUint64
	return v
}

// What is appended is read back, and appended again the same, into memory that held
// something else; what is cut short, or is not the shortest form, is refused.
func TestCodec(t *testing.T) {
	b := AppendState([]byte("head"), example())[4:]
	used := example()
	used.list, used.set[0] = append(used.list, used.list...), 77
	for i := range used.list {
		used.list[i] = item{5, 5}
	}
	for _, v := range []*value{newValue(70), used} {
		rest, err := LoadState(append(slices.Clone(b), "tail"...), v)
		if err != nil || string(rest) != "tail" {
			t.Fatalf("%q is left, %v", rest, err)
		}
		if got, want := fmt.Sprint(*v), fmt.Sprint(*example()); got != want {
			t.Errorf("read back as %s, want %s", got, want)
		}
		if got := AppendState(nil, v); !bytes.Equal(got, b) {
			t.Errorf("encoded again as %x, want %x", got, b)
		}
		if got := testing.AllocsPerRun(10, func() {
			var c Codec
			v.State(c.Appending(b[:0:cap(b)]))
			v.State(c.Loading(b))
		}); got > 1 { // the text
			t.Errorf("%g allocations", got)
		}
	}
	for cut := range b {
		if _, err := LoadState(b[:cut], newValue(70)); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes of %d: %v", cut, len(b), err)
		}
	}
	for at := range b {
		for _, x := range []byte{0, 1, 0x80, 0xff} {
			other := slices.Clone(b)
			other[at] = x
			v := newValue(70)
			if rest, err := LoadState(other, v); err == nil && !bytes.Equal(AppendState(nil, v), other[:len(other)-len(rest)]) {
				t.Errorf("%x is accepted, and has another encoding", other)
			}
		}
	}
}

// Each bound of a field is one for what is read.
func TestCodecBounds(t *testing.T) {
	for name, change := range map[string]func(v *value){
		"kind":           func(v *value) { v.kind = 4 },
		"member":         func(v *value) { v.id = 70 },
		"leader":         func(v *value) { v.epoch.Leader = 10 },
		"nobody's epoch": func(v *value) { v.epoch.Round = 0 },
		"set":            func(v *value) { v.set[1] = 1 << 6 },
		"member of list": func(v *value) { v.list[2].id = 70 },
	} {
		v := example()
		change(v)
		if _, err := LoadState(AppendState(nil, v), newValue(70)); !errors.Is(err, ErrShort) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := append(slices.Repeat([]byte{0xff}, 9), 1)
	var list []item
	c := new(Codec).Loading(long)
	if List(c, &list); len(list) > 0 || c.from.Err == nil {
		t.Errorf("a list of %d elements of no bytes, %v", len(list), c.from.Err)
	}
	c = new(Codec).Loading([]byte{1})
	if c.Want(false); c.from.Err == nil {
		t.Error("an unwanted value is taken")
	}
	if c = new(Codec).Appending(nil); true {
		c.Want(false)
		if c.from.Err != nil {
			t.Error("a value that is appended is refused")
		}
	}
}

// Values of counters are moved in a state, and in a copy of what a message points to. A
// time of 0 stays none.
func TestCodecMoves(t *testing.T) {
	more := func(c Counter, v uint64) uint64 {
		if c == own {
			return v + 1000
		}
		return v + 100
	}
	v := example()
	MapState[int](process{v}, more)
	want := example()
	want.clock, want.time, want.own, want.list[1].time = 109, 103, 1005, 104
	if got, want := fmt.Sprint(*v), fmt.Sprint(*want); got != want {
		t.Errorf("moved to %s, want %s", got, want)
	}
	type message struct {
		list []uint64
		more *item
	}
	fields := func(m message, c *Codec) message {
		for i := range List(c, &m.list) {
			c.Count(&m.list[i], Counter{User: c.To})
		}
		c.Time(&Pointer(c, &m.more).time)
		return m
	}
	m := message{[]uint64{1, 2}, &item{time: 3}}
	moved := m
	MapMsg(fields)(Channel{From: 1, To: 7}, &moved, more)
	if got := fmt.Sprint(m.list, *m.more, moved.list, *moved.more); got != "[1 2] {0 3} [1001 1002] {0 103}" {
		t.Error(got)
	}
}

type process struct{ *value }

func (process) Step(Event[int], *Out[int]) {}

func TestSet(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 200} {
		s, last := NewSet(n), ID(n-1)
		s.Add(last)
		s.Add(0)
		s.Add(last)
		if want := min(n, 2); s.Len() != want || !s.Has(0) || !s.Has(last) || n > 2 && s.Has(1) {
			t.Errorf("n=%d: %v", n, s)
		}
		for id := range s.All() {
			s.Remove(id)
		}
		if s.Len() != 0 {
			t.Errorf("n=%d: %v is left", n, s)
		}
		s.Add(last)
		if got := slices.Collect(s.All()); !slices.Equal(got, []ID{last}) {
			t.Errorf("n=%d: %v", n, got)
		}
		if s.Clear(); s.Len() != 0 {
			t.Errorf("n=%d: %v is left", n, s)
		}
		for range s.All() {
			t.Errorf("n=%d: the empty set has somebody", n)
		}
	}
}

// Of two different stamps one is before the other: the one with the smaller time, and of
// equal times the one with the smaller id.
func TestStamp(t *testing.T) {
	order := []Stamp{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {3, 0}}
	for i, a := range order {
		for j, b := range order {
			if a.Before(b) != (i < j) || a.Compare(b) != cmp.Compare(i, j) {
				t.Errorf("%v before %v: %v", a, b, a.Before(b))
			}
		}
	}
	for _, s := range []Stamp{{}, {1, 0}, {200, 2}} {
		var c Codec
		c.Appending(nil).Stamp(&s, 3)
		got := Stamp{7, 7}
		c.Loading(c.Bytes()).Stamp(&got, 3)
		if rest, err := c.Rest(); got != s || len(rest) > 0 || err != nil {
			t.Errorf("%v is read back as %v, %v", s, got, err)
		}
	}
}

// An outer value may have another one behind a pointer, and holds bytes and a message.
type outer struct {
	inner *item
	raw   []byte
	msg   item
}

func (o *outer) State(c *Codec) {
	if i := Optional(c, &o.inner); i != nil {
		c.Uint(&i.time)
	}
	size := uint64(len(o.raw))
	c.Uint(&size)
	c.Raw(&o.raw, int(size))
	Nested(c, &o.msg, func(m item, c *Codec) item {
		c.Uint(&m.time)
		m.id = 5 // which Fields may rebuild
		return m
	})
}

// What is optional, raw or nested is read back into memory that held something else; and what
// is appended stays as it is, since others may read it.
func TestNested(t *testing.T) {
	for _, want := range []outer{{inner: &item{time: 3}, raw: []byte("abc"), msg: item{time: 4}}, {}} {
		b := AppendState(nil, &want)
		if want.msg.id != 0 {
			t.Error("a message is written to while it is appended")
		}
		got := outer{&item{9, 9}, []byte("more than there is"), item{9, 9}}
		if rest, err := LoadState(b, &got); err != nil || len(rest) > 0 || string(got.raw) != string(want.raw) ||
			got.msg != (item{5, want.msg.time}) || (got.inner == nil) != (want.inner == nil) || got.inner != nil && *got.inner != *want.inner {
			t.Errorf("%x is read as %+v, %v, %d bytes left", b, got, err, len(rest))
		}
		for cut := range b {
			if _, err := LoadState(b[:cut], new(outer)); !errors.Is(err, ErrShort) {
				t.Errorf("%d bytes of %d: %v", cut, len(b), err)
			}
		}
	}
}
