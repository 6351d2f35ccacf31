package protocol

import "fmt"

// A Reason says why a process gave up a Try: Rem carries it. Its text is for people, in traces
// and in errors.
type Reason uint8

// The reasons. The zero Reason is none: the user asked for it, or did not want to wait.
const (
	TooFew     Reason = iota + 1 // too few servers would support anybody
	NoMajority                   // the process is in no majority of the processes
)

// Err is r, and nil where r is none.
func (r Reason) Err() error {
	if r == 0 {
		return nil
	}
	return r
}

// Error implements error.
func (r Reason) Error() string {
	switch r {
	case 0:
		return ""
	case TooFew:
		return "too few servers give it now: the others drain, refuse it or are away"
	case NoMajority:
		return "no majority of the processes is in reach"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Reason is that of a Rem.
func (a Act) Reason() Reason { return Reason(a.Arg) }
