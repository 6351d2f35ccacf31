package reliable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// push pushes an item that says its number and something.
func push(t *testing.T, w *Window, size int) error {
	t.Helper()
	seq, b := w.Next()
	b = binary.BigEndian.AppendUint64(b, seq)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	return w.Push(append(b, make([]byte, size)...))
}

// split takes the items apart again.
func split(t *testing.T, b []byte) (seqs []uint64) {
	t.Helper()
	for len(b) > 0 {
		seqs = append(seqs, binary.BigEndian.Uint64(b))
		b = b[10+int(binary.BigEndian.Uint16(b[8:])):]
	}
	return seqs
}

// Two windows over connections that break at any moment, with items and
// acknowledgements lost on the way: everything arrives once and in order.
func TestExactlyOnceInOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var from, to Window
		from.MaxItems, from.MaxBytes = 20, 4000
		var wire [][]byte // frames on their way
		var acks []uint64
		var got []uint64
		pushed := uint64(0)
		for step := 0; step < 2000 || len(got) < int(pushed); step++ {
			switch r.IntN(6) {
			case 0:
				if step >= 2000 {
					break
				}
				if err := push(t, &from, r.IntN(300)); err == nil {
					pushed++
				} else if !errors.Is(err, ErrFull) {
					t.Fatal(err)
				}
			case 1:
				if b := from.Take(nil, 1+r.IntN(1000)); len(b) > 0 {
					wire = append(wire, b)
				}
			case 2:
				if len(wire) > 0 {
					for _, seq := range split(t, wire[0]) {
						isNew, err := to.Receive(seq)
						if err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
						if isNew {
							got = append(got, seq)
						}
					}
					wire = wire[1:]
				}
			case 3:
				acks = append(acks, to.Received())
			case 4:
				if len(acks) > 0 {
					if err := from.Ack(acks[0]); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					acks = acks[1:]
				}
			case 5:
				if r.IntN(4) == 0 { // the connection breaks, and another one begins
					received := to.Received()
					if r.IntN(2) == 0 && len(wire) > 0 { // what the old one brought is still looked at
						for _, seq := range split(t, wire[0]) {
							if isNew, err := to.Receive(seq); err != nil {
								t.Fatalf("seed %d: %v", seed, err)
							} else if isNew {
								got = append(got, seq)
							}
						}
					}
					wire, acks = nil, nil
					if r.IntN(2) == 0 {
						from, to = reloaded(t, &from), reloaded(t, &to)
					}
					if err := from.Restart(received); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			}
			if from.Unacked() > 20 {
				t.Fatalf("seed %d: %d items are kept", seed, from.Unacked())
			}
		}
		want := make([]uint64, pushed)
		for i := range want {
			want[i] = uint64(i) + 1
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

func TestTake(t *testing.T) {
	var w Window
	for range 5 {
		if err := push(t, &w, 90); err != nil { // 100 bytes each
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		limit int
		want  string
	}{{250, "[1 2]"}, {1, "[3]"}, {1000, "[4 5]"}, {1000, "[]"}} {
		if got := fmt.Sprint(split(t, w.Take(nil, test.limit))); got != test.want {
			t.Errorf("limit %d: %s, want %s", test.limit, got, test.want)
		}
	}
	if err := w.Restart(3); err != nil {
		t.Fatal(err)
	}
	if err := w.Ack(4); err != nil { // an old connection brought it late
		t.Fatal(err)
	}
	if err := w.Restart(3); err == nil {
		t.Error("item 4 is forgotten, and yet to be sent again")
	}
	if got := fmt.Sprint(split(t, w.Take([]byte{}, 1000))); got != "[5]" {
		t.Errorf("after a restart at 3 and item 4 acknowledged: %s", got)
	}
}

// What the other end cannot have meant is an error, and changes nothing.
func TestErrors(t *testing.T) {
	var w Window
	for range 3 {
		if err := push(t, &w, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Ack(1); err == nil {
		t.Error("item 1 is acknowledged before it is sent")
	}
	w.Take(nil, 1000)
	if err := w.Ack(2); err != nil {
		t.Error(err)
	}
	if err := w.Ack(1); err != nil {
		t.Errorf("an old acknowledgement: %v", err)
	}
	for _, seq := range []uint64{1, 4} {
		if err := w.Restart(seq); err == nil {
			t.Errorf("restarted at %d", seq)
		}
	}
	if w.Unacked() != 1 {
		t.Errorf("%d unacknowledged", w.Unacked())
	}
	if isNew, err := w.Receive(2); isNew || err == nil {
		t.Error("item 2 is received before item 1")
	}
	if isNew, err := w.Receive(0); isNew || err != nil {
		t.Errorf("item 0: %v, %v", isNew, err)
	}
}

// What was written down of a channel may be older than what was carried: the other end says what it lacks.
func TestResume(t *testing.T) {
	for _, received := range []uint64{0, 2, 3} {
		var w Window
		for range 3 {
			if err := push(t, &w, 10); err != nil {
				t.Fatal(err)
			}
		}
		w.Resume(7)
		if err := w.Restart(received); err != nil {
			t.Errorf("%d are received there: %v", received, err)
		}
		if got := split(t, w.Take(nil, 1000)); len(got) != 3-int(received) {
			t.Errorf("%d are received there: %v are sent", received, got)
		}
		if isNew, err := w.Receive(8); !isNew || err != nil {
			t.Errorf("item 8: %v, %v", isNew, err)
		}
	}
	var w Window
	w.Resume(0)
	if w.Restart(1) == nil {
		t.Error("an item that was never pushed is received there")
	}
}

func TestBounds(t *testing.T) {
	w := Window{MaxItems: 2, MaxBytes: 100}
	if err := push(t, &w, 91); !errors.Is(err, ErrFull) {
		t.Errorf("101 bytes: %v", err)
	}
	for range 2 {
		if err := push(t, &w, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := push(t, &w, 0); !errors.Is(err, ErrFull) {
		t.Errorf("a third item: %v", err)
	}
	if got := fmt.Sprint(split(t, w.Take(nil, 1000))); got != "[1 2]" {
		t.Errorf("after ErrFull the window has %s", got)
	}
}

// In steady state nothing is allocated.
func BenchmarkWindow(b *testing.B) {
	var w Window
	item := make([]byte, 40)
	var frame []byte
	b.ReportAllocs()
	for i := range b.N {
		_, buf := w.Next()
		if err := w.Push(append(buf, item...)); err != nil {
			b.Fatal(err)
		}
		if i%64 == 0 {
			frame = w.Take(frame[:0], 1<<20)
			if err := w.Ack(uint64(i) + 1); err != nil {
				b.Fatal(err)
			}
		}
	}
}
