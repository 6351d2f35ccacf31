package transport

import (
	"encoding/binary"
	"fmt"
)

// MaxTable is the most bytes that the encoding of a slot table has: it must fit
// into a refusal, which must fit into a handshake.
const MaxTable = MaxHandshake / 2

const maxSlots = 1 << 10

// A Table is a slot table: which process is where, from one epoch to the next.
type Table struct {
	Epoch uint64
	Slots []Slot // in the order of ids
}

// A Slot is one server of a Table.
type Slot struct {
	Name string
	Addr string // host:port, or unix:/path
}

// Check says whether the table can be sent.
func (t Table) Check() error {
	if size := len(t.append(nil)); size > MaxTable || len(t.Slots) > maxSlots {
		return fmt.Errorf("a slot table of %d servers in %d bytes: want at most %d in %d",
			len(t.Slots), size, maxSlots, MaxTable)
	}
	return nil
}

func (t Table) append(b []byte) []byte {
	b = binary.AppendUvarint(b, t.Epoch)
	b = binary.AppendUvarint(b, uint64(len(t.Slots)))
	for _, s := range t.Slots {
		b = appendBytes(appendBytes(b, s.Name), s.Addr)
	}
	return b
}

func readTable(r *reader) (t Table) {
	t.Epoch = r.Uint()
	for range r.Max(maxSlots) {
		if r.Err != nil {
			break
		}
		t.Slots = append(t.Slots, Slot{r.string(maxText), r.string(maxText)})
	}
	return t
}
