package diagram

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/poundlock/poundlock/verify/scenario"
)

// Width is how many columns a text has where nobody says otherwise.
const Width = 100

// Text writes r for a person: one step a line with what it did, then the state of
// each process and the messages that are on their way. What does not fit into width
// columns goes on in the next line.
func Text(w io.Writer, r scenario.Run, width int) error {
	b := bufio.NewWriter(w)
	Steps(b, r, width)
	if len(r.End) > 0 {
		fmt.Fprintln(b, "\nat the end")
		States(b, r.End, r.InFlight, width)
		Registers(b, r.Registers, width)
	}
	return b.Flush()
}

// Steps writes the steps of r, aligned, and marks a loop.
func Steps(w io.Writer, r scenario.Run, width int) {
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
		fmt.Fprintln(w, strings.TrimRight(head+wrap(strings.Join(e.Did(), "; "), len(head), 8+line, width), " "))
	}
	switch {
	case r.Loop == len(r.Steps) && r.Loop > 0:
		fmt.Fprintf(w, "      -- and here it rests for ever --\n")
	case r.Loop >= 0 && len(r.Steps) > 0:
		fmt.Fprintf(w, "      -- and again from step %d --\n", r.Loop+1)
	}
}

// States writes how things stand.
func States(w io.Writer, end []scenario.State, flying []scenario.Flight, width int) {
	name, section := 0, 0
	for _, s := range end {
		name, section = max(name, len(s.Process)), max(section, len(s.Section))
	}
	for _, s := range end {
		head := fmt.Sprintf("      %-*s  ", name, s.Process)
		if section > 0 {
			head += fmt.Sprintf("%-*s  ", section, s.Section)
		}
		fmt.Fprintln(w, strings.TrimRight(head+wrap(s.Text, len(head), len(head), width), " "))
	}
	if len(flying) == 0 {
		return
	}
	texts := make([]string, len(flying))
	for i, f := range flying {
		texts[i] = f.From + " to " + f.To + " " + f.Message
	}
	head := "      on their way: "
	fmt.Fprintln(w, head+wrap(strings.Join(texts, "; "), len(head), 8, width))
}

// wrap breaks text between words so that it stays within width: its first line
// begins in column first, the others are indented by indent.
func wrap(text string, first, indent, width int) string {
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
