package diagram

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/poundlock/poundlock/verify/scenario"
)

// width is how many columns a text has: what does not fit goes on in the next line.
const width = 100

// Text writes r for a person: one step a line with what it did, then the state of
// each process and the messages that are on their way.
func Text(w io.Writer, r scenario.Run) error {
	b := bufio.NewWriter(w)
	Steps(b, r)
	if len(r.End) > 0 {
		fmt.Fprintln(b, "\nat the end")
		States(b, r.End, r.InFlight)
		Registers(b, r.Registers)
	}
	return b.Flush()
}

// Steps writes the steps of r, aligned, and marks a loop.
func Steps(w io.Writer, r scenario.Run) {
	line := 0 // the width of the column of lines, which long ones exceed
	for _, e := range r.Steps {
		if n := utf8.RuneCountInString(e.Line); n <= width/2 {
			line = max(line, n)
		}
	}
	for i, e := range r.Steps {
		if i == r.Loop {
			fmt.Fprintf(w, "      -- from here on for ever --\n")
		}
		head := fmt.Sprintf("%4d  %-*s  ", i+1, line, e.Line)
		fmt.Fprintln(w, strings.TrimRight(head+wrap(strings.Join(e.Did(), "; "), len(head), 8+line), " "))
	}
	switch {
	case r.Loop == len(r.Steps) && r.Loop > 0:
		fmt.Fprintf(w, "      -- and here it rests for ever --\n")
	case r.Loop >= 0 && len(r.Steps) > 0:
		fmt.Fprintf(w, "      -- and again from step %d --\n", r.Loop+1)
	}
}

// States writes how things stand.
func States(w io.Writer, end []scenario.State, flying []scenario.Flight) {
	name, section := 0, 0
	for _, s := range end {
		name, section = max(name, len(s.Process)), max(section, len(s.Section))
	}
	for _, s := range end {
		head := fmt.Sprintf("      %-*s  ", name, s.Process)
		if section > 0 {
			head += fmt.Sprintf("%-*s  ", section, s.Section)
		}
		fmt.Fprintln(w, strings.TrimRight(head+wrap(s.Text, len(head), len(head)), " "))
	}
	if len(flying) == 0 {
		return
	}
	texts := make([]string, len(flying))
	for i, f := range flying {
		texts[i] = f.From + " to " + f.To + " " + f.Message
	}
	head := "      on their way: "
	fmt.Fprintln(w, head+wrap(strings.Join(texts, "; "), len(head), 8))
}

// wrap breaks text between words so that it stays within width: its first line
// begins in column first, the others are indented by indent.
func wrap(text string, first, indent int) string {
	var b strings.Builder
	column := first
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0 && column+n <= width:
		case i == 0, column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
