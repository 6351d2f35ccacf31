package node

import (
	"maps"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// maxDelay is the longest message delay that processes are told of: they may wait for
// hundreds of it before they do something that is hardly ever necessary.
const maxDelay = 100 * time.Millisecond

// noteRoundTrip notes how long an answer of the peer of s took, and what that makes of
// the message delay: half of the upper median of the members' round trips, because
// what a process waits for is the answers of a quorum, not those of a slow member.
func (n *Node) noteRoundTrip(s *session, took time.Duration) {
	if n.roles.member() || !n.roles.isMember(s.id) {
		return
	}
	s.mu.Lock()
	s.roundTrip = took
	s.mu.Unlock()
	all := []time.Duration{took}
	for _, other := range n.list() {
		other.mu.Lock()
		if other != s && other.roundTrip > 0 {
			all = append(all, other.roundTrip)
		}
		other.mu.Unlock()
	}
	slices.Sort(all)
	delay := min(all[len(all)/2]/2, maxDelay)
	// In steps of a quarter or more, so that processes agree and little is made anew.
	if old := time.Duration(n.delay.Load()); delay > old+old/4 || delay < old-old/4 {
		n.delay.Store(int64(delay))
	}
}

// A measured is a configuration of processes with the message delay that was measured.
type measured struct {
	delay  time.Duration
	config protocol.Config
}

// system is the configuration of the processes of a kind of locks that are made now.
// An algorithm that has an option for the message delay is told what was measured,
// unless the delay is shorter than its default or Config.System says otherwise.
func (f *factory) system(kind Kind) protocol.Config {
	delay := time.Duration(f.n.delay.Load())
	if m, ok := f.measured[kind]; ok && m.delay == delay {
		return m.config
	}
	c := f.n.c.System
	info := f.n.c.Hosts[kind].Info()
	_, given := c.Options[info.Delay]
	if info.Delay != "" && !given && int64(delay) > info.Option(c, info.Delay) {
		c.Options = maps.Clone(c.Options)
		if c.Options == nil {
			c.Options = map[string]int64{}
		}
		c.Options[info.Delay] = int64(delay)
	}
	f.measured[kind] = measured{delay, c}
	return c
}
