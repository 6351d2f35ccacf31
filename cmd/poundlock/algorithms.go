package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/catalog"
)

func algorithmsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "algorithms",
		Short: "List the algorithms and their variants",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ALGORITHM\tVARIANT\tWHAT\tSOURCE")
			for _, e := range catalog.All {
				i := e.Info()
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Name, i.Variant, i.Title, i.Source)
			}
			if err := w.Flush(); err != nil {
				return &exitStatus{code: exitInternal, err: err}
			}
			return nil
		},
	}
}
