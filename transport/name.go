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
	MaxLabel = maxText     // bytes of the label of a client
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

// CheckLabel says what is wrong with what a client calls itself: servers show it on
// terminals and write it into logs.
func CheckLabel(label string) error {
	switch {
	case len(label) > MaxLabel:
		return fmt.Errorf("label %.20q... has %d bytes, more than %d", label, len(label), MaxLabel)
	case !utf8.ValidString(label):
		return fmt.Errorf("label %q is not UTF-8", label)
	case strings.ContainsFunc(label, unicode.IsControl):
		return fmt.Errorf("label %q has a control character", label)
	}
	return nil
}
