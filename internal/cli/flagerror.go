package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError says what a flag wants, where a parser would say what it did with the
// value.
func FlagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	f := bad.GetFlag()
	want := cmp.Or(Wanted(f.Value.Type()), bad.Unwrap().Error())
	if errors.Is(err, strconv.ErrRange) {
		want += "; this one is out of range"
	}
	return fmt.Errorf("--%s %q: %s", f.Name, bad.GetValue(), want)
}

// unknownFlag is a hint about a flag that a command does not have, "" where err is about
// something else.
func unknownFlag(cmd *cobra.Command, err error) string {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return ""
	}
	typed := missing.GetSpecifiedName()
	if several := missing.GetSpecifiedShortnames(); len(several) > 1 { // as -timeout: a name with one dash
		typed, _, _ = strings.Cut(several, "=")
	}
	var names []string
	for _, name := range Nearest(typed, FlagNames(cmd)) {
		names = append(names, "--"+name)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean %s? See: %s --help", strings.Join(names, " or "), cmd.CommandPath())
}

// Wanted is what flags of a type want, "" where their own errors say so.
func Wanted(kind string) string {
	switch kind {
	case "bool":
		return "want true or false"
	case "int", "int64":
		return "want a whole number"
	case "uint64":
		return "want a whole number of at least 0"
	case "float64":
		return "want a number"
	case "stringToInt":
		return "want NAME=NUMBER, with commas between them, such as amnesia=1"
	case "duration":
		return "want a duration such as 250ms or 1m30s"
	}
	return ""
}
