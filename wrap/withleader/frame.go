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

// kindOf counts the kinds of the election after those of the algorithm.
func (w *pair[M, E]) kindOf(f Frame[M, E]) int {
	if f.Elects {
		return len(w.alg.Messages) + w.election.KindOf(f.Election)
	}
	return w.alg.KindOf(f.Algorithm)
}

func (w *pair[M, E]) ints(f Frame[M, E]) int {
	if f.Elects {
		return w.election.Ints(f.Election)
	}
	return w.alg.Ints(f.Algorithm)
}

// text is that of the one message: no name is that of both.
func (w *pair[M, E]) text(f Frame[M, E]) string {
	if f.Elects {
		return w.election.Text(f.Election)
	}
	return w.alg.Text(f.Algorithm)
}
