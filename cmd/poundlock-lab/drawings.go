package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

type drawings struct{ svg, shiviz string }

func (d *drawings) register(s *pflag.FlagSet) {
	s.StringVar(&d.svg, "svg", "", "`file` to write a space-time diagram of the run to")
	s.StringVar(&d.shiviz, "shiviz", "", "`file` to write the run to as a log for ShiViz")
}

func (d *drawings) files() []fileFlag { return []fileFlag{{"--svg", d.svg}, {"--shiviz", d.shiviz}} }

func (d *drawings) write(r scenario.Run, title, reason string) error {
	return errors.Join(
		create(d.svg, func(w io.Writer) error { return diagram.SVG(w, r, title, reason) }),
		create(d.shiviz, func(w io.Writer) error { return diagram.ShiViz(w, r) }),
	)
}

// A fileFlag is a flag with the file that it names, "" for none.
type fileFlag struct{ name, path string }

// differ refuses two flags that name one file, of which one would destroy what the
// other one reads or writes. Devices are no such files.
func differ(flags ...fileFlag) error {
	for i, a := range flags {
		for _, b := range flags[:i] {
			if a.path == "" || filepath.Clean(a.path) != filepath.Clean(b.path) {
				continue
			}
			if is, err := os.Stat(a.path); err != nil || is.Mode().IsRegular() {
				return cli.Usagef("one file for %s and %s: %s", b.name, a.name, filepath.Clean(a.path))
			}
		}
	}
	return nil
}

// writable says why one of the files could not be written, before a search that may take
// hours. It leaves behind what it found.
func writable(flags ...fileFlag) error {
	for _, f := range flags {
		if f.path == "" {
			continue
		}
		_, missing := os.Stat(f.path)
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return cli.Usagef("%s: %w", f.name, err)
		}
		if missing != nil {
			os.Remove(f.path)
		}
	}
	return nil
}

// create writes a file, unless its path is "".
func create(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if path == "" {
		return nil
	}
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// width is how many columns the text of a run has on out.
func width(out io.Writer) int {
	if columns, _, terminal := cli.TerminalSize(out); terminal && columns > 0 {
		return min(columns, diagram.Width)
	}
	return diagram.Width
}
