package transport

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
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

// Check says what is wrong with the names and the addresses, which may be missing, or why the table cannot be sent.
func (t Table) Check() error {
	names, addrs := map[string]bool{}, map[string]string{}
	for _, s := range t.Slots {
		other, twice := addrs[s.Addr]
		switch {
		case s.Name == "" || len(s.Name) > 255:
			return fmt.Errorf("name %.20q: want 1 to 255 bytes", s.Name)
		case names[s.Name]:
			return fmt.Errorf("name %q appears twice", s.Name)
		case twice && s.Addr != "":
			return fmt.Errorf("%s and %s have the same address %s: one host that fails would count twice", other, s.Name, s.Addr)
		}
		names[s.Name], addrs[s.Addr] = true, s.Name
	}
	var c protocol.Codec
	t.fields(c.Appending(nil))
	if size := len(c.Bytes()); size > MaxTable || len(t.Slots) > maxSlots {
		return fmt.Errorf("a table of %d members in %d bytes: want at most %d in %d",
			len(t.Slots), size, maxSlots, MaxTable)
	}
	return nil
}

func (t *Table) fields(c *protocol.Codec) {
	c.Uint(&t.Epoch)
	for i := range list(c, &t.Slots, maxSlots) {
		text(c, &t.Slots[i].Name, maxText)
		text(c, &t.Slots[i].Addr, maxText)
	}
}
