package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// The properties of elections, by name.
const (
	// Epochs: no two processes ever name different leaders of one epoch, and none names an
	// earlier epoch than before in the same life.
	Epochs = "epochs"
	// Agreement: when nothing is left that must happen, all live processes name the live
	// one with the highest id.
	Agreement = "agreement"
)

// A Term is an epoch with the process that leads it.
type Term struct {
	Epoch  uint64
	Leader protocol.ID
}

// Terms are those that were named, by increasing epoch, each once.
type Terms []Term

// Add adds a term. It returns an error if another process was named the leader of that
// epoch; name is how processes are called.
func (t *Terms) Add(n Term, name func(protocol.ID) string) error {
	i, known := slices.BinarySearchFunc(*t, n, byEpoch)
	if !known {
		*t = slices.Insert(*t, i, n)
		return nil
	}
	return (*t)[i].agrees(n, name)
}

// With returns a list with one more term, as Add makes it, and leaves t as it is.
func (t Terms) With(n Term, name func(protocol.ID) string) (Terms, error) {
	more := slices.Clone(t)
	err := more.Add(n, name)
	return more, err
}

// Agree returns an error if two lists name different leaders of one epoch.
func (t Terms) Agree(o Terms, name func(protocol.ID) string) error {
	for _, n := range o {
		if i, known := slices.BinarySearchFunc(t, n, byEpoch); known {
			if err := t[i].agrees(n, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func byEpoch(a, b Term) int { return cmp.Compare(a.Epoch, b.Epoch) }

func (t Term) agrees(o Term, name func(protocol.ID) string) error {
	if t.Leader == o.Leader {
		return nil
	}
	return fmt.Errorf("epochs: both %s and %s are named the leader of epoch %d", name(t.Leader), name(o.Leader), t.Epoch)
}

// A Leading is what one process says of who leads.
type Leading struct {
	Up    bool // it lives
	Named bool // it named somebody in this life
	Term       // the last one that it named, where Named
}

// Name records that the process names a leader. It returns an error if it named a later
// epoch before, in the same life.
func (l *Leading) Name(t Term) error {
	before := *l
	l.Named, l.Term = true, t
	if before.Named && t.Epoch < before.Epoch {
		return fmt.Errorf("epochs: epoch %d is named after epoch %d", t.Epoch, before.Epoch)
	}
	return nil
}

// Leaders is what each process says, by id.
type Leaders []Leading

// Agreement returns an error unless all live processes name the live one with the highest
// id.
func (l Leaders) Agreement(name func(protocol.ID) string) error {
	highest := protocol.ID(0)
	for id, p := range l {
		if p.Up {
			highest = protocol.ID(id)
		}
	}
	for id, p := range l {
		if !p.Up || p.Named && p.Leader == highest {
			continue
		}
		whom := "nobody"
		if p.Named {
			whom = name(p.Leader)
		}
		return fmt.Errorf("agreement: nothing is left that must happen, and %s names %s, not %s",
			name(protocol.ID(id)), whom, name(highest))
	}
	return nil
}

// One returns an error if more than one live process names itself.
func (l Leaders) One(name func(protocol.ID) string) error {
	var rivals []string
	for id, p := range l {
		if p.Up && p.Named && p.Leader == protocol.ID(id) {
			rivals = append(rivals, name(p.Leader))
		}
	}
	if len(rivals) < 2 {
		return nil
	}
	return fmt.Errorf("one-leader: %s lead at the same time", strings.Join(rivals, " and "))
}
