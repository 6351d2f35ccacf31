package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A stdout is standard output. It remembers the first error, because what prints help, a
// version or a completion script does not look at it.
type stdout struct {
	file *os.File
	err  error
}

func (o *stdout) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Fd is for those that look whether it is a terminal.
func (o *stdout) Fd() uintptr { return o.file.Fd() }

// TerminalSize is how large a terminal is, if out is one: 0 and 0 where it does not say.
func TerminalSize(out io.Writer) (columns, lines int, is bool) {
	file, ok := out.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, 0, false
	}
	columns, lines, _ = term.GetSize(int(file.Fd()))
	return columns, lines, true
}
