package tokenring

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// The claims hold for n > 1, and under load for E >= 10 entries of each process: a run
// begins and ends with up to two messages more or less.
//
// A token that never rests is met somewhere on its way. It may have left p_i when p_i
// tries: then n hops pass, of whose messages n-1 are sent while p_i waits. The slides
// count the messages.
//
// At low load the processes come in turn, the first holder last. So the token that rests
// is always d = 1 place before who asks for it: one REQUEST goes there, and the token
// comes back. TestDistances has the other distances.
var (
	anywhere = []protocol.Claim{
		protocol.Between(protocol.LowLoad, protocol.ToEnter, protocol.Fixed(0), protocol.Linear(1, -1), "0 .. N-1"),
		protocol.Between(protocol.LowLoad, protocol.Messages, protocol.Fixed(1), protocol.Fixed(math.Inf(1)), "1 .. unbounded"),
		protocol.Between(protocol.LowLoad, protocol.Waiting, protocol.Fixed(0), protocol.Linear(1, 0), "0 .. N").PublishedAs("0 .. N-1"),
	}
	nextOne         = protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1").PublishedAs("1 .. N-1")
	perpetualClaims = append(anywhere[:3:3], nextOne, protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Fixed(1), protocol.Fixed(1.05), "1"))
	restingClaims   = []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Fixed(2), "2d, here d = 1"),
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Fixed(2), "2d, here d = 1"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2d, here d = 1"),
		nextOne,
		protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Fixed(1.9), protocol.Fixed(2), "2"),
	}
	// Two who try again at once keep a token that turns round between them, at any
	// distance.
	bidirectionalClaims = append(anywhere[:3:3],
		protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), protocol.Linear(1, -1), "1 .. N-1"),
		protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Fixed(1), protocol.Linear(1, 0), "1 .. N"))
)
