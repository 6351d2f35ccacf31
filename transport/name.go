package transport

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	MaxName  = 1024        // bytes of the name of a lock
	wireName = 4 * MaxName // longer ones end the session; up to here they are refused by name
)

// CheckName says what is wrong with the name of a lock. Clients and servers ask it
// both, so that a client of any other make is held to the same.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a lock needs a name")
	case len(name) > MaxName:
		return fmt.Errorf("lock name %.20q... has %d bytes, more than %d", name, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("lock name %q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("lock name %q has a control character", name)
	}
	return nil
}
