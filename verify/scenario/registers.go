package scenario

import (
	"fmt"
	"strconv"
)

// The values of Effect.Do of who accesses a register.
const (
	Reads  = "read"
	Writes = "write"
	Awaits = "await"
)

// A Cell is one register at the end of a run.
type Cell struct {
	Register string `json:"register"`
	Value    uint64 `json:"value"`
	// Writers is how many writes have begun and not ended: reads may find anything.
	Writers int `json:"writers,omitempty"`
}

// Found is Step.Text of a Read that finds a value which the register need not hold.
func Found(register string, value uint64) string {
	return register + " " + strconv.FormatUint(value, 10)
}

// ended says in a sentence which access ended with the step, "" if none did.
func (e Event) ended() string {
	switch e.Verb {
	case Read:
		return fmt.Sprintf("%s finds %d in %s", e.Process, e.Value, e.Register)
	case Begin:
		return fmt.Sprintf("%s begins to write %d to %s", e.Process, e.Value, e.Register)
	case Write:
		return fmt.Sprintf("%s has written %d to %s", e.Process, e.Value, e.Register)
	}
	return ""
}

// asked says in a sentence which access a process asks for.
func (f Effect) asked(process string) string {
	switch f.Do {
	case Reads:
		return fmt.Sprintf("%s is to read %s", process, f.Register)
	case Writes:
		return fmt.Sprintf("%s is to write %d to %s", process, f.Value, f.Register)
	}
	return fmt.Sprintf("%s waits until %s is 0 or at least %d", process, f.Register, f.Value)
}
