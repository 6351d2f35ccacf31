package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A Progress is a line on a terminal that says how far something is. It comes once that has
// taken two seconds, and changes ten times a second at most. A nil one shows nothing.
type Progress struct {
	out          io.Writer
	columns      func() int // of the terminal
	began, shown time.Time
	most         int // of the characters that were shown
}

// NewProgress begins now. It is nil where standard error is no terminal.
func NewProgress() *Progress {
	if _, _, is := TerminalSize(os.Stderr); !is {
		return nil
	}
	columns := func() int {
		if n, _, _ := TerminalSize(os.Stderr); n > 1 {
			return n
		}
		return 80 // it does not say
	}
	return &Progress{out: os.Stderr, columns: columns, began: time.Now()}
}

// Show says how far it is: with an ASCII text, and with the part that is done, from 0 to 1,
// as a bar. A negative part is unknown.
func (p *Progress) Show(text string, part float64) {
	if p == nil || time.Since(p.began) < 2*time.Second || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	const width = 20
	bar, room := "", p.columns()-1 // a line that wraps cannot be written over
	if part >= 0 && room > 2*width {
		part = min(part, 1)
		bar = fmt.Sprintf(" %3.0f%% [%-*s]", 100*part, width, strings.Repeat("#", int(part*width)))
	}
	line := text[:min(len(text), room-len(bar))] + bar
	p.most = max(p.most, len(line))
	// Spaces wipe out what was longer: not every terminal knows another way.
	fmt.Fprintf(p.out, "\r%-*s", min(p.most, room), line)
}

// Finish removes the line.
func (p *Progress) Finish() {
	if p != nil && p.most > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", min(p.most, p.columns()-1), "")
	}
}
