package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/catalog"
)

func algorithmsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "algorithms",
		Short: "List the algorithms and their variants",
		Args:  cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var table bytes.Buffer
			w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ALGORITHM\tVARIANT\tWHAT\tSOURCE")
			widest := 0
			for _, e := range catalog.All {
				i := e.Info()
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Name, i.Variant, i.Title, i.Source)
			}
			_ = w.Flush() // to memory
			for line := range bytes.Lines(table.Bytes()) {
				widest = max(widest, utf8.RuneCount(line)-1)
			}
			text := table.String()
			if columns, _, terminal := cli.TerminalSize(c.OutOrStdout()); terminal && 0 < columns && columns < widest {
				text = paragraphs(columns)
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return cli.Exit(cli.ExitInternal, err)
		},
	}
}

// paragraphs are the algorithms for a terminal on which their table has no room.
func paragraphs(columns int) string {
	var b strings.Builder
	const indent = "    "
	for _, e := range catalog.All {
		i := e.Info()
		fmt.Fprintln(&b, form(i))
		for _, text := range []string{i.Title, i.Source} {
			for line := range strings.Lines(cli.Fill(text, max(1, columns-len(indent))) + "\n") {
				b.WriteString(indent + line)
			}
		}
	}
	return b.String()
}
