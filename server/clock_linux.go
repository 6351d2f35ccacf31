package server

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// checkClock returns an error when the kernel does not know its clock to be
// synchronised with real time.
func checkClock() error {
	state, err := unix.Adjtimex(&unix.Timex{})
	if err != nil {
		return fmt.Errorf("cannot ask the kernel whether its clock is synchronised: %w", err)
	}
	if state == unix.TIME_ERROR {
		return errors.New("the kernel's clock is not synchronised")
	}
	return nil
}
