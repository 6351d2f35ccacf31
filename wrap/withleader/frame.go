package withleader

import "github.com/poundlock/poundlock/protocol"

// A Frame is one message of the algorithm, or one of the election.
type Frame[M, E any] struct {
	Elects    bool
	Algorithm M // unless Elects
	Election  E // if Elects
}

// Unwrap returns the one message.
func (f Frame[M, E]) Unwrap() any {
	if f.Elects {
		return f.Election
	}
	return f.Algorithm
}

func (w *pair[M, E]) fields(f Frame[M, E], c *protocol.Codec) Frame[M, E] {
	if c.Bool(&f.Elects); f.Elects {
		f.Election = w.election.Visit(f.Election, c)
	} else {
		f.Algorithm = w.alg.Visit(f.Algorithm, c)
	}
	return f
}

// either is what the one or the other says of its message.
func either[M, E, T any](ofAlgorithm func(M) T, ofElection func(E) T) func(Frame[M, E]) T {
	return func(f Frame[M, E]) T {
		if f.Elects {
			return ofElection(f.Election)
		}
		return ofAlgorithm(f.Algorithm)
	}
}
