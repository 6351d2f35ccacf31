package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/diagram"
)

// walk shows a run step by step on a terminal, as its keys say.
func (p *replay) walk(in, out *os.File) error {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), old) }() // nothing else can be done
	size := func() (columns, rows int) {
		_, rows, _ = cli.TerminalSize(out)
		return width(out), cmp.Or(rows, 24)
	}
	return p.steps(bufio.NewReader(in), out, size)
}

// steps shows the run after step 0, and then after the one that each key says, until
// one says that it is enough.
func (p *replay) steps(keys *bufio.Reader, out io.Writer, size func() (columns, rows int)) error {
	at, digits := 0, 0
	for {
		columns, rows := size()
		page := strings.ReplaceAll(p.page(at, columns, rows), "\n", "\r\n")
		if digits > 0 {
			page += fmt.Sprint(digits)
		}
		if _, err := io.WriteString(out, "\x1b[2J\x1b[H"+page); err != nil {
			return err
		}
		key, err := keys.ReadByte()
		if err != nil {
			key = 'q' // the terminal is gone
		}
		switch {
		case key >= '0' && key <= '9':
			digits = min(10*digits+int(key-'0'), len(p.Run.Steps))
			continue
		case key == '\r' && digits > 0, key == '\n' && digits > 0:
			at = digits
		case key == 'n', key == ' ', key == '\r', key == '\n':
			at++
		case key == 'p':
			at--
		case key == 'q', key == 'C'-'@', key == 'D'-'@': // ^C and ^D are keys here
			_, err := io.WriteString(out, "\r\n")
			return err
		}
		digits, at = 0, min(max(at, 0), len(p.Run.Steps))
	}
}

// page is what a terminal of that size shows after step at: the steps around it, and how
// things stand.
func (p *replay) page(at, columns, rows int) string {
	var states bytes.Buffer
	diagram.States(&states, p.stands[at].End, p.stands[at].InFlight, columns)
	diagram.Registers(&states, p.stands[at].Registers, columns)
	var steps bytes.Buffer
	diagram.Steps(&steps, p.Run, columns-1) // and the mark
	lines := strings.Split(strings.TrimRight(steps.String(), "\n"), "\n")
	current := 0
	for i, line := range lines {
		mark := " "
		var n int
		if k, _ := fmt.Sscanf(line, "%d ", &n); k == 1 && n == at && strings.HasPrefix(line, fmt.Sprintf("%4d  ", n)) {
			mark, current = ">", i
		}
		lines[i] = mark + line
	}
	room := max(rows-strings.Count(states.String(), "\n")-5, 3)
	first := min(max(current-room/2, 0), max(len(lines)-room, 0))
	lines = lines[first:min(first+room, len(lines))]
	head := fmt.Sprintf("after step %d of %d", at, len(p.Run.Steps))
	if v := p.Violated; v != nil && at >= v.Step {
		head += "; " + p.verdict()
	}
	return strings.Join(lines, "\n") + "\n\n" + head + "\n" + states.String() +
		"n, Enter: next   p: back   NUMBER Enter: go there   q: quit  "
}
