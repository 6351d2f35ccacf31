package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/verify/check"
)

func TestBytesFlag(t *testing.T) {
	for text, want := range map[string]struct {
		size int64
		text string
	}{
		"4GiB": {4 << 30, "4GiB"}, "500MiB": {500 << 20, "500MiB"}, "1.5 KiB": {1536, "1536"},
		"2MB": {2e6, "2000000"}, "12345": {12345, "12345"}, "1024MiB": {1 << 30, "1GiB"},
	} {
		var b bytesFlag
		if err := b.Set(text); err != nil || int64(b) != want.size || b.String() != want.text {
			t.Errorf("%q: %d %s, %v", text, int64(b), b.String(), err)
		}
	}
	for _, text := range []string{"", "x", "-1GiB", "0", "9999999TiB", "NaN", "GiB"} {
		var b bytesFlag
		if err := b.Set(text); err == nil {
			t.Errorf("%q: accepted as %d", text, int64(b))
		}
	}
}

func TestCheckProgress(t *testing.T) {
	var b bytes.Buffer
	columns := 80
	show, finish := checkProgress(&b, func() int { return columns })
	show(check.Progress{States: 1000, Elapsed: time.Second})
	finish()
	if b.Len() != 0 {
		t.Errorf("a run below 2s shows %q", b.String())
	}
	long := check.Progress{States: 4000000, Elapsed: 4 * time.Second, Depth: 7, Frontier: 12345, Memory: 100 << 20}
	show(long)
	const want = "\r4 000 000 states, 1 000 000/s, depth 7, frontier 12 345, 100 MiB"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	show(check.Progress{States: 1, Elapsed: 4 * time.Second})
	if len(b.String()) != len(want) {
		t.Errorf("%q does not cover %q", b.String(), want)
	}
	b.Reset()
	if finish(); b.String() != "\r"+strings.Repeat(" ", len(want)-1)+"\r" {
		t.Errorf("the line is left: %q", b.String())
	}
	for columns = 2; columns < 30; columns++ { // terminalColumns returns no less
		b.Reset()
		show(long)
		finish()
		for _, line := range strings.Split(b.String(), "\r") {
			if len(line) >= columns {
				t.Errorf("%q wraps in %d columns", line, columns)
			}
		}
	}
}
