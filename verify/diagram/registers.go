package diagram

import (
	"fmt"
	"io"
	"strings"

	"github.com/poundlock/poundlock/verify/scenario"
)

// Registers writes what the shared memory holds; without any, nothing.
func Registers(w io.Writer, cells []scenario.Cell, width int) {
	if len(cells) > 0 {
		head := "      registers: "
		fmt.Fprintln(w, head+wrap(cellText(cells), len(head), 8, width))
	}
}

func cellText(cells []scenario.Cell) string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprintf("%s = %d", c.Register, c.Value)
		if c.Writers > 0 {
			texts[i] += " (being written)"
		}
	}
	return strings.Join(texts, "; ")
}

// accessText is the label of a step that begins or ends an access.
func accessText(e scenario.Event) string {
	if e.Verb == scenario.Read {
		return fmt.Sprintf("%s is %d", e.Register, e.Value)
	}
	return fmt.Sprintf("%s %s := %d", e.Verb, e.Register, e.Value)
}
