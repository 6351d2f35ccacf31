package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// An Option is what somebody chose of an option of an algorithm.
type Option struct{ Name, Value, Typed string }

// OptionFlag is what --option NAME=VALUE chooses.
func OptionFlag(text string) (Option, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return Option{}, Usagef("--option %q: want NAME=VALUE with a number or a duration", text)
	}
	return Option{name, value, fmt.Sprintf("--option %q", text)}, nil
}

// SetOptions writes what is chosen of the options that an algorithm has. form is its name.
func SetOptions(to map[string]int64, form string, have []protocol.Option, chosen []Option) error {
	for k, x := range chosen {
		o, err := findOption(have, form, x.Name)
		if err != nil {
			return err
		}
		if before := slices.IndexFunc(chosen[:k], func(y Option) bool { return y.Name == x.Name }); before >= 0 {
			return Usagef("%s and %s are about one option; give it once", chosen[before].Typed, x.Typed)
		}
		if to[x.Name], err = x.number(o); err != nil {
			return err
		}
	}
	return nil
}

func findOption(options []protocol.Option, form, name string) (protocol.Option, error) {
	var have []string
	for _, o := range options {
		if o.Name == name {
			return o, nil
		}
		have = append(have, o.Name)
	}
	if len(have) == 0 {
		return protocol.Option{}, Usagef("%s has no option %s, nor any other", form, name)
	}
	err := fmt.Errorf("%s has no option %s; it has %s", form, name, strings.Join(have, ", "))
	return protocol.Option{}, Unknown(err, name, have, "docs/algorithms.md#options says what each is")
}

// number is the value.
func (x Option) number(o protocol.Option) (int64, error) {
	if k := slices.Index(o.Values, x.Value); k >= 0 {
		return int64(k), nil
	}
	v, err := strconv.ParseInt(x.Value, 10, 64)
	switch {
	case err == nil:
		return v, nil
	case o.Values != nil:
		return 0, Usagef("%s: want one of %s", x.Typed, strings.Join(o.Values, ", "))
	}
	d, err := time.ParseDuration(x.Value)
	if err != nil {
		return 0, Usagef("%s: want NAME=VALUE with a number or a duration", x.Typed)
	}
	return d.Nanoseconds(), nil
}
