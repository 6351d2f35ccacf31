package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/internal/faultdisk"
	"github.com/poundlock/poundlock/internal/journal"
)

// A disk that has one file.
type disk struct {
	*faultdisk.Disk
	b []byte
}

func (d disk) Open(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.b)), nil }

var written = []string{"first", "", "the third one", "\x00\x00\x00\x00 inside"}

// write writes a journal with a checkpoint of two records and two more, and returns the file.
func write(t *testing.T) []byte {
	t.Helper()
	d := faultdisk.New(0)
	j, err := journal.Open(d, 0)
	if err == nil {
		err = j.Replace(records(written[:2]))
	}
	for _, r := range written[2:] {
		err = errors.Join(err, j.Append([]byte(r)))
	}
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return content(t, d)
}

func content(t *testing.T, d *faultdisk.Disk) []byte {
	t.Helper()
	f, err := d.Open("journal")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func records(list []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, r := range list {
			if !yield([]byte(r), nil) {
				return
			}
		}
	}
}

// read reads a file.
func read(t *testing.T, b []byte) (list []string, err error) {
	t.Helper()
	j, err := journal.Open(disk{faultdisk.New(0), b}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range j.Records() {
		if err != nil {
			return list, err
		}
		list = append(list, string(r))
	}
	return list, nil
}

// What is cut off at any byte, and what follows there, is read as far as it is whole.
func TestTorn(t *testing.T) {
	b := write(t)
	for k := range len(b) + 1 {
		for _, rest := range [][]byte{nil, make([]byte, 100), []byte("\xf1rec\x00\x00\x00\x01garbage"), bytes.Repeat([]byte("\xf1rec"), 30)} {
			list, err := read(t, slices.Concat(b[:k], rest))
			if len(list) > len(written) || !slices.Equal(list, written[:len(list)]) {
				t.Fatalf("%d bytes, then %.8q: %q", k, rest, list)
			}
			if k == len(b) && len(list) < len(written) {
				t.Errorf("all bytes, then %.8q: %q", rest, list)
			}
			if err != nil && (!errors.Is(err, journal.ErrDamaged) || len(list) > 0) {
				t.Errorf("%d bytes, then %.8q: %v", k, rest, err)
			}
			if err == nil && len(list) == 0 {
				t.Errorf("%d bytes, then %.8q: it has no beginning, and is read", k, rest)
			}
		}
	}
}

// What a record has inside is nothing special: whoever chooses it cannot make it look like many records, each of which would be looked at
// when it is torn. Its mark is the begin of the salt, which differs in each file, and is nowhere else.
func TestMark(t *testing.T) {
	const titled = len("poundlock journal 1\n")
	var marks []string
	for _, text := range []string{"\xf1rec", "\x00\x00\x00\x00", "poundlock journal 1\n"} {
		d := faultdisk.New(0)
		j, err := journal.Open(d, 0)
		if err == nil {
			err = j.Replace(records(written[:1]))
		}
		whole := d.Size("journal")
		if err = errors.Join(err, j.Append(bytes.Repeat([]byte(text), 1000)), j.Close()); err != nil {
			t.Fatal(err)
		}
		b := content(t, d)
		mark := b[titled:][:4]
		marks = append(marks, string(mark))
		if k := bytes.Count(b, mark); k != 3 { // in the title, and before each record
			t.Errorf("%q: its mark is there %d times", text, k)
		}
		if k := bytes.LastIndex(b, mark); k != whole {
			t.Errorf("%q: a mark at byte %d, want the last one at %d", text, k, whole)
		}
		if list, err := read(t, b[:len(b)-1]); err != nil || !slices.Equal(list, written[:1]) {
			t.Errorf("%q: %q, %v", text, list, err)
		}
	}
	if slices.Sort(marks); len(slices.Compact(marks)) < 3 {
		t.Errorf("two files have one mark: %q", marks)
	}
}

// A bit that has changed anywhere is noticed. Only at the end it may be a torn one.
func TestDamaged(t *testing.T) {
	b := write(t)
	last := len(b) - len(written[3]) - 12
	for k := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[k] ^= 1 << bit
			list, err := read(t, c)
			switch {
			case k < last && !errors.Is(err, journal.ErrDamaged), k >= last && err != nil:
				t.Errorf("bit %d of byte %d: %q, %v", bit, k, list, err)
			case len(list) >= len(written) || !slices.Equal(list, written[:len(list)]):
				t.Errorf("bit %d of byte %d: %q", bit, k, list)
			}
		}
	}
}

// Records of another file, at the same place, are none of this one.
func TestSalt(t *testing.T) {
	a, b := write(t), write(t)
	last := len(b) - len(written[3]) - 12
	if list, err := read(t, slices.Concat(a[:last], b[last:])); err != nil || len(list) != len(written)-1 {
		t.Errorf("%q, %v", list, err)
	}
}

// After a loss of power at any step there are the records of before or after the call that it came in, if no call before has failed.
func TestPower(t *testing.T) {
	for _, loss := range faultdisk.Losses {
		for step := 1; ; step++ {
			d := faultdisk.New(step)
			j, err := journal.Open(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			var before, after []string
			call := func(f func() error, then ...string) {
				if err == nil {
					before, after = after, then
					err = f()
				}
			}
			call(func() error { return j.Replace(records([]string{"a"})) }, "a")
			call(func() error { return j.Append([]byte("b")) }, "a", "b")
			call(func() error { return j.Replace(records([]string{"c", "d"})) }, "c", "d")
			call(func() error { return j.Append([]byte("e")) }, "c", "d", "e")
			if err == nil {
				break
			}
			if err := j.Append(nil); err == nil {
				t.Error("it goes on after an error")
			}
			next, err := journal.Open(d.After(loss, 0), 0)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for r, err := range next.Records() {
				if err != nil {
					t.Fatalf("step %d, loss %d: %v", step, loss, err)
				}
				list = append(list, string(r))
			}
			if !slices.Equal(list, before) && !slices.Equal(list, after) {
				t.Errorf("step %d, loss %d: %q, want %q or %q", step, loss, list, before, after)
			}
		}
	}
}

func TestInUse(t *testing.T) {
	path := t.TempDir() + "/a/b"
	one, err := journal.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.OpenDir(path); !errors.Is(err, journal.ErrInUse) {
		t.Errorf("%v", err)
	}
	one.Close()
	again, err := journal.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	j, err := journal.Open(again, 0)
	if err != nil || j.Exists() {
		t.Errorf("%v, there is one: %v", err, j.Exists())
	}
	if err := j.Replace(records(written)); err != nil {
		t.Error(err)
	}
	if next, err := journal.Open(again, 0); err != nil || !next.Exists() {
		t.Errorf("%v", err)
	} else if got := fmt.Sprint(next.Where()); got != path+"/journal, at byte 0" {
		t.Error(got)
	}
}
