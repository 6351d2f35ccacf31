package reliable

import (
	"bytes"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// reloaded is w as another process goes on with it.
func reloaded(t *testing.T, w *Window) Window {
	t.Helper()
	b := protocol.AppendState(nil, w)
	next := Window{MaxItems: w.MaxItems, MaxBytes: w.MaxBytes}
	if rest, err := protocol.LoadState(append(b, 'x'), &next); err != nil || string(rest) != "x" {
		t.Fatalf("%v, rest %q", err, rest)
	}
	return next
}

// A window that is not carried over is noticed: what was received comes again, and
// what was sent is never acknowledged.
func TestNotReloaded(t *testing.T) {
	var from, to Window
	for range 3 {
		if err := push(t, &from, 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, seq := range split(t, from.Take(nil, 1000)) {
		if _, err := to.Receive(seq); err != nil {
			t.Fatal(err)
		}
	}
	if isNew, _ := new(Window).Receive(1); !isNew {
		t.Error("an empty window knows item 1")
	}
	if again := reloaded(t, &to); again.Received() != 3 {
		t.Errorf("received %d", again.Received())
	}
	if err := new(Window).Restart(to.Received()); err == nil {
		t.Error("an empty window has sent three items")
	}
	again := reloaded(t, &from)
	if err := again.Restart(to.Received()); err != nil || again.Unacked() != 0 {
		t.Errorf("%v, %d unacknowledged", err, again.Unacked())
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                        {},
		"more items than there are":      {0, 0, 0, 2, 1},
		"more bytes than there are":      {0, 0, 0, 1, 2, 'a'},
		"more bytes than the bound":      {0, 0, 0, 2, 3, 2, 'a', 'b', 'c', 'd', 'e'},
		"more items than the bound":      {0, 0, 0, 3, 0, 0, 0},
		"items sent that there were not": {0, 0, 2, 1, 1, 'a'},
		"numbers that overflow":          {0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 1, 0},
	} {
		w := Window{MaxItems: 2, MaxBytes: 4}
		if _, err := protocol.LoadState(b, &w); err == nil {
			t.Errorf("%s: loaded %+v", name, w)
		}
	}
}

func FuzzLoadState(f *testing.F) {
	var w Window
	_, b := w.Next()
	if err := w.Push(append(b, "item"...)); err != nil {
		f.Fatal(err)
	}
	f.Add(protocol.AppendState(nil, &w))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w Window
		rest, err := protocol.LoadState(b, &w)
		if err != nil {
			return
		}
		if again := protocol.AppendState(nil, &w); !bytes.Equal(again, b[:len(b)-len(rest)]) {
			t.Errorf("%x is written %x", b, again)
		}
		if err := w.Restart(w.Acked()); err != nil {
			t.Error(err)
		}
		w.Take(nil, 10)
	})
}
