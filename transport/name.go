package transport

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	MaxName  = 1024    // bytes of the name of a lock
	MaxLabel = maxText // bytes of the label of a client

	MaxUserLabel = 256 // bytes of the label of one user of a client's lock

	wireName = 4 * MaxName // longer ones end the session; up to here they are refused by name
)

// CheckName says what is wrong with the name of a lock. Clients and servers ask it
// both, so that a client of any other make is held to the same.
func CheckName(name string) error {
	if name == "" {
		return errors.New("a lock needs a name")
	}
	return CheckText("lock name", name, MaxName)
}

// CheckLabel says what is wrong with what a client calls itself: servers show it on
// terminals and write it into logs.
func CheckLabel(label string) error { return CheckText("label", label, MaxLabel) }

// CheckUserLabel is CheckLabel for what one user of a client is called beside it.
func CheckUserLabel(label string) error { return CheckText("label", label, MaxUserLabel) }

// CheckText says what is wrong with a text of at most so many bytes that people are shown.
func CheckText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("%s %.20q... has %d bytes, more than %d", what, text, len(text), most)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s %q is not UTF-8", what, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s %q has a control character", what, text)
	}
	return nil
}
