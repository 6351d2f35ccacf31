package slots

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// MaxNames bounds what is locked together.
const MaxNames = 1000

// CheckNames says what is wrong with names that are to be locked together. They
// are in canonical order: bytewise ascending.
func CheckNames(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("a lock needs a name")
	case len(names) > MaxNames:
		return fmt.Errorf("%d names: at most %d locks are held together", len(names), MaxNames)
	}
	for i, name := range names {
		if err := transport.CheckName(name); err != nil {
			return err
		}
		if i > 0 && name == names[i-1] {
			return fmt.Errorf("lock %q is named twice", name)
		}
	}
	return nil
}

// CheckGroup says what is wrong with a group of holders that share their locks.
func CheckGroup(group string) error {
	if err := transport.CheckText("group", group, transport.MaxName); err != nil {
		return err
	}
	if _, err := protocol.ParseGroups(group); err != nil || strings.ContainsAny(group, ","+protocol.Alone) {
		return fmt.Errorf("group %q: want 1 to %d letters, digits or signs without spaces, and none of , ! | = #", group, transport.MaxName)
	}
	return nil
}

// MaxGroups bounds the groups of which any one will do: a request has room for so many.
const MaxGroups = 3

// CheckGroups says what is wrong with groups of which any one will do.
func CheckGroups(groups []string) error {
	if len(groups) > MaxGroups {
		return fmt.Errorf("%d groups: want %d at most, of which any one will do", len(groups), MaxGroups)
	}
	for i, g := range groups {
		if err := CheckGroup(g); err != nil {
			return err
		}
		if slices.Contains(groups[:i], g) {
			return fmt.Errorf("group %q is named twice", g)
		}
	}
	return nil
}

// MaxPermits bounds the permits of a semaphore: a waiter stands in the queue of
// each of them, at every server.
const MaxPermits = 100

// Permits are the locks of which a semaphore of n permits consists: NAME#1 to
// NAME#n.
func Permits(name string, n int) ([]string, error) {
	if n < 1 || n > MaxPermits {
		return nil, fmt.Errorf("a semaphore of %d permits: want 1 to %d", n, MaxPermits)
	}
	if name == "" {
		return nil, errors.New("a semaphore needs a name")
	}
	permits := make([]string, n)
	for i := range permits {
		permits[i] = fmt.Sprintf("%s#%d", name, i+1)
		if err := transport.CheckName(permits[i]); err != nil {
			return nil, fmt.Errorf("permit %d of a semaphore: %w", i+1, err)
		}
	}
	return permits, nil
}
