package history_test

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// Two users of a lock, both let in.
func ExampleMonitor() {
	const ms = 1_000_000
	var m history.Monitor
	m.Reset(2)
	m.Input(0, 0, protocol.Input{Kind: protocol.Try})
	m.Input(1, 1*ms, protocol.Input{Kind: protocol.Try})
	m.Act(0, 2*ms, protocol.Act{Do: protocol.Crit})
	m.Act(1, 3*ms, protocol.Act{Do: protocol.Crit})
	fmt.Println(m.Measures().Waiting.Mean, "ms to wait")
	fmt.Println(m.Violations())
	// Output:
	// 2 ms to wait
	// [3ms exclusion: 1 entered while 0 is inside]
}
