package node

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// What labels take is bounded: beyond, a user is known by its client alone. All of it is
// given back.
func TestLabelBudget(t *testing.T) {
	const most = 10 * (100 + labelCost)
	l := labels{most: most}
	text := []byte(strings.Repeat("x", 100))
	instances := []*instance{{}, {}}
	for k := range 20 {
		l.set(instances[k%2], protocol.ID(k), text)
	}
	if l.bytes > most || l.get(instances[1], 9) == "" || l.get(instances[0], 10) != "" {
		t.Errorf("%d bytes of %d; %v", l.bytes, most, l.known)
	}
	l.set(instances[0], 0, []byte("short"))
	if l.get(instances[0], 0) != "short" {
		t.Error("a shorter label is not taken in the place of a longer one")
	}
	for k := range 20 {
		l.set(instances[k%2], protocol.ID(k), nil)
	}
	if l.bytes != 0 || len(l.known) != 0 {
		t.Errorf("%d bytes are left, %v", l.bytes, l.known)
	}
}
