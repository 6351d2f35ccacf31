package kv_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a system of one member, and a section there.
func alone(t *testing.T, o sections.Object) (*sections.Member, *sections.Section) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := sections.Open(t.Context(), sections.Config{
		Name: "a", Members: []sections.Peer{{Name: "a", Addr: l.Addr().String()}}, Listener: l, Bootstrap: true,
		Objects: map[string]sections.Object{"o": o},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	s, err := m.Enter(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// What each operation does, one after the other.
func TestOperations(t *testing.T) {
	ctx := t.Context()
	m, s := alone(t, &kv.Store{})
	get := func(key string) func() (string, error) {
		return func() (string, error) {
			v, found, err := kv.Get(ctx, s, key)
			return fmt.Sprintf("%q %v", v, found), err
		}
	}
	put := func(key string, value []byte) func() (string, error) {
		return func() (string, error) { return "", kv.Put(ctx, s, key, value) }
	}
	swap := func(key string, old, next []byte) func() (string, error) {
		return func() (string, error) {
			done, err := kv.CompareAndSwap(ctx, s, key, old, next)
			return fmt.Sprint(done), err
		}
	}
	txn := func(where, then []kv.Pair) func() (string, error) {
		return func() (string, error) {
			done, err := kv.Txn(ctx, s, where, then)
			return fmt.Sprint(done), err
		}
	}
	one, two, nothing := []byte("1"), []byte("2"), []byte{}
	for k, step := range []struct {
		do   func() (string, error)
		want string
	}{
		{get("a"), `"" false`},
		{put("a", one), ""},
		{get("a"), `"1" true`},
		{put("a", nil), ""}, // which is not to delete it
		{get("a"), `"" true`},
		{swap("a", nil, one), "false"},
		{swap("a", two, one), "false"},
		{swap("a", nothing, one), "true"},
		{swap("b", nothing, one), "false"},
		{swap("b", nil, two), "true"},
		{swap("b", two, nil), "true"},
		{get("b"), `"" false`},
		{txn([]kv.Pair{{"a", one}, {"b", one}}, []kv.Pair{{"a", two}}), "false"},
		{txn([]kv.Pair{{"a", one}, {"b", nil}}, []kv.Pair{{"a", nil}, {"b", one}, {"c", nothing}}), "true"},
		{get("a"), `"" false`},
		{get("b"), `"1" true`},
		{func() (string, error) { return "", kv.Delete(ctx, s, "b") }, ""},
		{func() (string, error) { return "", kv.Delete(ctx, s, "b") }, ""},
		{get("b"), `"" false`},
		{txn(nil, nil), "true"},
	} {
		if got, err := step.do(); got != step.want || err != nil {
			t.Errorf("step %d: %s, %v, want %s", k, got, err, step.want)
		}
	}
	if err := m.View("o", func(o sections.Object) {
		if store := o.(*kv.Store); !slices.Equal(store.Keys(), []string{"c"}) || store.Get("c") == nil || store.Get("a") != nil {
			t.Errorf("it has %q", store.Keys())
		}
	}); err != nil {
		t.Error(err)
	}
	s.Exit()
	if err := kv.Put(ctx, s, "a", one); err == nil {
		t.Error("it is executed after Exit")
	}
}

// An object that is no Store is noticed: it refuses the operation, or its result is none.
func TestForeign(t *testing.T) {
	_, s := alone(t, lenient{&counters.Store{}})
	if _, _, err := kv.Get(t.Context(), s, "a"); err == nil || !strings.Contains(err.Error(), "is not a Store") {
		t.Errorf("Get: %v", err)
	}
	if err := kv.Put(t.Context(), s, "a", nil); err == nil || !strings.Contains(err.Error(), "is not a Store") {
		t.Errorf("Put: %v", err)
	}
}

// A lenient object takes any operation.
type lenient struct{ *counters.Store }

func (lenient) Check([]byte) error  { return nil }
func (lenient) Apply([]byte) []byte { return []byte("?") }

// Of what is no operation or no whole snapshot nothing is taken over, and of a whole one nothing before its time.
func TestHostile(t *testing.T) {
	var ops [][]byte
	tap := &tapped{taken: &ops}
	_, s := alone(t, tap)
	if _, err := kv.Txn(context.Background(), s, []kv.Pair{{"a", nil}, {"b", nil}}, []kv.Pair{{"a", []byte("1")}, {"b", []byte{}}}); err != nil {
		t.Fatal(err)
	}
	s.Exit()
	txn := ops[0]
	for k := range txn {
		if tap.Check(txn[:k]) == nil {
			t.Errorf("%q is an operation", txn[:k])
		}
	}
	for _, op := range [][]byte{append(bytes.Clone(txn), 0), {9}} {
		if tap.Check(op) == nil {
			t.Errorf("%q is an operation", op)
		}
	}
	snapshot := tap.Snapshot()
	var store kv.Store
	for k := range snapshot {
		if _, err := store.Restore(snapshot[:k]); err == nil {
			t.Errorf("%q is a snapshot", snapshot[:k])
		}
	}
	if _, err := store.Restore(append(bytes.Clone(snapshot), 0)); err == nil {
		t.Error("a byte more is a snapshot")
	}
	replace, err := store.Restore(snapshot)
	if err != nil || store.Keys() != nil {
		t.Fatalf("%q, %v", store.Keys(), err)
	}
	if replace(); !bytes.Equal(store.Snapshot(), snapshot) || string(store.Get("a")) != "1" || store.Get("b") == nil {
		t.Errorf("%q is restored as %q", snapshot, store.Snapshot())
	}
}

// A tapped Store keeps the operations that it executes.
type tapped struct {
	kv.Store
	taken *[][]byte
}

func (s *tapped) Apply(op []byte) []byte {
	*s.taken = append(*s.taken, bytes.Clone(op))
	return s.Store.Apply(op)
}
