package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A single is a flag with one value, which is given once: of two values that say what
// runs, such as two forms of an algorithm, none should go unheard.
type single struct {
	pflag.Value
	text  string
	given bool
}

// once makes each flag of s a single that is neither a list nor a bool.
func once(s *pflag.FlagSet) {
	s.VisitAll(func(f *pflag.Flag) {
		_, list := f.Value.(pflag.SliceValue)
		if kind := f.Value.Type(); list || kind == "bool" || kind == "stringToInt" {
			return
		}
		f.Value = &single{Value: f.Value}
	})
}

// errTwice is about a flag with one value.
type errTwice struct{ before string }

func (e errTwice) Error() string { return fmt.Sprintf("it was %q before; give it once", e.before) }

func (v *single) Set(text string) error {
	if v.given {
		return errTwice{v.text}
	}
	err := v.Value.Set(text)
	v.text, v.given = text, err == nil
	return err
}
