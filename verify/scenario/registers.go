package scenario

import (
	"fmt"
	"strconv"
	"strings"
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

// accesses reports whether the verb is about a register.
func (v Verb) accesses() bool { return v == Read || v == Begin || v == Write }

// Found is Step.Text of a Read that finds a value which the register need not hold.
func Found(register string, value uint64) string {
	return register + " " + strconv.FormatUint(value, 10)
}

// register parses what follows the process of an access.
func register(v Verb, words []string) (string, error) {
	switch {
	case len(words) == 0:
		return "", fmt.Errorf("scenario: %s needs a process and a register", v)
	case len(words) == 2 && v == Read:
		value, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return "", fmt.Errorf("scenario: %q is not the value of a register", words[1])
		}
		return Found(words[0], value), nil
	case len(words) > 1:
		return "", fmt.Errorf("scenario: unexpected %q", words[len(words)-1])
	}
	return words[0], nil
}

// accessed completes the event of a step about a register.
func (e *Event) accessed(s Step) { e.Register, _, _ = strings.Cut(s.Text, " ") }

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
