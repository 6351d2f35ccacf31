package node

import (
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// maxDelay is the longest message delay that processes are told of: they may wait for
// hundreds of it before they do something that is hardly ever necessary.
const maxDelay = 100 * time.Millisecond

// A measured is a configuration of processes with the message delay that was measured.
type measured struct {
	delay  time.Duration
	config protocol.Config
}

// system is the configuration of the processes of a kind of locks that are made now.
// An algorithm that has an option for the message delay is told what was measured,
// unless the delay is shorter than its default or Config.System says otherwise.
func (f *factory) system(kind Kind) protocol.Config {
	delay := time.Duration(f.n.sessions.delay.Load())
	if m, ok := f.measured[kind]; ok && m.delay == delay {
		return m.config
	}
	c := f.n.c.Hosts[kind].Info().Measured(f.n.c.System, int64(delay))
	f.measured[kind] = measured{delay, c}
	f.version++
	delete(f.fresh, kind) // whose spare ones are of another configuration
	return c
}
