package protocol

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An Option is a parameter of one algorithm.
type Option struct {
	Name    string
	Default func(c Config) int64
	// InCheck is the default in the checker, nil: Default. It may turn off what
	// only repeats messages, which the checker delivers in any order anyway. What they
	// do for who waits is Model.Lasts.
	InCheck func(c Config) int64
	// Range is what the option may be, nil: one of Values, or at least 0.
	Range func(c Config) (least, most int64)
	// Sound is the range in which the algorithm keeps its promises, nil: only the
	// default does for certain. A hunt draws from it.
	Sound func(c Config) (least, most int64)
	// Values are the names of its values, from 0 on, by which people choose one; nil: they
	// have none.
	Values []string
	// Local is why only the default runs on a network, "": any value does.
	Local string
	Doc   string // with the unit
}

// Text is a value of the option for people.
func (o Option) Text(v int64) string {
	if v >= 0 && v < int64(len(o.Values)) {
		return o.Values[v]
	}
	return strconv.FormatInt(v, 10)
}

// within is what the option may be.
func (o Option) within(c Config) (least, most int64) {
	switch {
	case o.Range != nil:
		return o.Range(c)
	case o.Values != nil:
		return 0, int64(len(o.Values)) - 1
	}
	return 0, math.MaxInt64
}

// Config is what all processes of one system share. The zero Options are the
// defaults.
type Config struct {
	N       int // members
	Options map[string]int64
}

// Option returns the value of the option called name: the one set in c, else
// its default. It panics when the algorithm has no such option.
func (i Info) Option(c Config, name string) int64 {
	for k := range i.Options {
		if o := &i.Options[k]; o.Name == name {
			if v, ok := c.Options[name]; ok {
				return v
			}
			return o.Default(c)
		}
	}
	panic("protocol: " + i.Name + " has no option " + name)
}

// Measured is c where a message was found to take delay ns: the option that Delay names is that, unless c sets it or its default is
// as much.
func (i Info) Measured(c Config, delay int64) Config {
	if _, given := c.Options[i.Delay]; i.Delay == "" || given || delay <= i.Option(c, i.Delay) {
		return c
	}
	options := map[string]int64{i.Delay: delay}
	maps.Copy(options, c.Options)
	c.Options = options
	return c
}

// Fit is n, or the largest number of members that the algorithm is for.
func (i Info) Fit(n int) int {
	if i.Largest > 0 {
		return min(n, i.Largest)
	}
	return n
}

// Enough reports whether who tries may count on it that up of n members are enough: all that
// are up, or more than half where the algorithm needs a Majority.
func (i Info) Enough(up, n int) bool { return !i.Majority || 2*up > n }

// CheckOptions returns an error that names an option of c which the algorithm
// does not have, or which is out of its range; then it says what the option is for, too.
// Or it says that there are more members than the algorithm is for.
func (i Info) CheckOptions(c Config) error {
	if i.Fit(c.N) < c.N {
		return fmt.Errorf("n=%d: it is for %d members at most", c.N, i.Largest)
	}
	var have []string
	for _, o := range i.Options {
		have = append(have, o.Name)
		least, most := o.within(c)
		switch v := i.Option(c, o.Name); {
		case (v < least || v > most) && o.Values != nil:
			return fmt.Errorf("option %s=%d: want one of %s", o.Name, v, strings.Join(o.Values, ", "))
		case v < least && most == math.MaxInt64:
			return fmt.Errorf("option %s=%d: want at least %d", o.Name, v, least)
		case v < least || v > most:
			why := ""
			if o.Doc != "" {
				why = " (" + o.Doc + ")"
			}
			return fmt.Errorf("option %s=%d: want %d to %d with n=%d%s", o.Name, v, least, most, c.N, why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		switch {
		case slices.Contains(have, name):
		case have == nil:
			return fmt.Errorf("no option %q: it has no options", name)
		default:
			return fmt.Errorf("no option %q: its options are %s", name, strings.Join(have, ", "))
		}
	}
	return nil
}
