package history

import (
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// Four events of users that take turns.
func BenchmarkMonitor(b *testing.B) {
	m, at := newMonitor(10), int64(0)
	for i := 0; b.Loop(); i++ {
		u := i % 10
		at += 10
		m.Input(u, at, protocol.Input{Kind: protocol.Try})
		m.Act(u, at+1, protocol.Act{Do: protocol.Crit, Arg: uint64(i + 1)})
		m.Input(u, at+2, protocol.Input{Kind: protocol.Exit})
		m.Act(u, at+3, protocol.Act{Do: protocol.Rem})
	}
	if m.Total() != 0 {
		b.Error(m.Violations())
	}
}
