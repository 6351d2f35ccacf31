package cli

import (
	"encoding/json"
	"io"
	"strings"
)

// JSON prints one object for programs, with line breaks for people.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Plural is a noun for k things.
func Plural(k int, noun string) string {
	if k == 1 {
		return noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return noun + "s"
}
