package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/poundlock/poundlock/internal/cli"
)

// A listing prints rows, each a name and what is to be said of it.
type listing struct {
	*bufio.Writer
	out  io.Writer // where all goes in the end
	wide int       // columns of a name
}

func newListing(out io.Writer, wide int) listing { return listing{bufio.NewWriter(out), out, wide} }

func (l listing) row(name, format string, args ...any) {
	fmt.Fprintf(l, "%-*s %s\n", l.wide, name, fmt.Sprintf(format, args...))
}

func (l listing) rowIf(said bool, name, format string, args ...any) {
	if said {
		l.row(name, format, args...)
	}
}

// list is a row with commas, behind which it is broken to fit a terminal.
func (l listing) list(name, list string) {
	for _, line := range cli.Items(l.out, l.wide+1, list) {
		l.row(name, "%s", line)
		name = ""
	}
}
