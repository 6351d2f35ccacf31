package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	columns := 80
	p := &Progress{out: &b, columns: func() int { return columns }, began: time.Now()}
	show := func(text string, part float64) {
		p.shown = time.Time{}
		p.Show(text, part)
	}
	show("1000 states", -1)
	p.Finish()
	if b.Len() != 0 {
		t.Errorf("a run below 2s shows %q", b.String())
	}
	p.began = time.Now().Add(-4 * time.Second)
	const long = "4 000 000 states, 1 000 000/s, depth 7, frontier 12 345, 100 MiB"
	show(long, -1)
	p.Show("too soon", -1)
	if b.String() != "\r"+long {
		t.Errorf("%q, want %q", b.String(), long)
	}
	b.Reset()
	show("1 state", -1)
	if len(b.String()) != len("\r"+long) {
		t.Errorf("%q does not cover %q", b.String(), long)
	}
	b.Reset()
	if p.Finish(); b.String() != "\r"+strings.Repeat(" ", len(long))+"\r" {
		t.Errorf("the line is left: %q", b.String())
	}
	b.Reset()
	if show("sim", 0.25); strings.TrimRight(b.String(), " ") != "\rsim  25% [#####               ]" {
		t.Errorf("%q", b.String())
	}
	for columns = 2; columns < 100; columns++ { // no terminal is narrower
		for _, part := range []float64{-1, 0, 1, 2} {
			b.Reset()
			show(long, part)
			p.Finish()
			for _, line := range strings.Split(b.String(), "\r") {
				if len(line) >= columns {
					t.Errorf("%q wraps in %d columns", line, columns)
				}
			}
		}
	}
	p = nil
	p.Show("nobody sees it", 1)
	p.Finish()
}
