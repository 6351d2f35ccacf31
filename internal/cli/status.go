package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses, in the spirit of sysexits.h and env(1).
const (
	ExitHolds       = 0
	ExitError       = 1
	ExitViolated    = 1
	ExitNot         = 1 // it was asked, and is not so
	ExitUndecided   = 3
	ExitUsage       = 64
	ExitNoQuorum    = 69
	ExitInternal    = 70 // an algorithm's false claim, or output that cannot be written
	ExitLost        = 74
	ExitNotAcquired = 75
	ExitUnknown     = 76 // whoever knows cannot be asked any more
	ExitCannotRun   = 126
)

// A Status is an error that ends the program with its code. Err may be nil: nothing is
// printed.
type Status struct {
	Code int
	Err  error
	Hint string // one line on what to do, "" for none
}

func (e *Status) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Status) Unwrap() error { return e.Err }

// Usagef is a wrong call.
func Usagef(format string, args ...any) *Status {
	return &Status{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// WithHint adds one line on what to do.
func (e *Status) WithHint(hint string) *Status {
	e.Hint = hint
	return e
}

// Exit gives an error its code, unless it has one. Without an error it is nil.
func Exit(code int, err error) error {
	if status := new(Status); err == nil || errors.As(err, &status) {
		return err
	}
	return &Status{Code: code, Err: err}
}

// Within is the error of a flag whose value is not between two others, else nil.
func Within[T ~int | ~int64](flag string, value, least, most T) error {
	if least <= value && value <= most {
		return nil
	}
	return Usagef("%s %v: want %s to %s", flag, value, brief(least), brief(most))
}

// AtLeast is the error of a flag whose value is smaller than another one, else nil.
func AtLeast[T ~int | ~int64](flag string, value, least T) error {
	if least <= value {
		return nil
	}
	return Usagef("%s %v: want at least %s", flag, value, brief(least))
}

// brief is a number, or a duration without the parts that are 0: 10m, and not 10m0s.
func brief(v any) string {
	text := fmt.Sprint(v)
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	if text == "0s" {
		return "0"
	}
	return text
}

// NoArguments checks the arguments of a command that takes flags only.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no argument: what is %q?", cmd.Name(), args[0])
	}
	return nil
}

// Elsewhere are hidden commands of the names that another program has: they say so.
func Elsewhere(program string, names ...string) (all []*cobra.Command) {
	for _, name := range names {
		all = append(all, &cobra.Command{
			Use:                name,
			Short:              "A command of " + program,
			Hidden:             true,
			DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return Usagef("%s is a command of %s", name, program).
					WithHint(fmt.Sprintf("%s %s, or in a clone: go run ./cmd/%[1]s %[2]s", program, name))
			},
		})
	}
	return all
}
