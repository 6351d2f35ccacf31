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

func (w *pair[M, E]) append(b []byte, f Frame[M, E]) []byte {
	b = protocol.AppendBool(b, f.Elects)
	if f.Elects {
		return w.election.Append(b, f.Election)
	}
	return w.alg.Append(b, f.Algorithm)
}

func (w *pair[M, E]) read(b []byte) (f Frame[M, E], rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	f.Elects = r.Bool()
	switch {
	case r.Err != nil:
		return f, nil, r.Err
	case f.Elects:
		f.Election, rest, err = w.election.Read(r.Rest)
	default:
		f.Algorithm, rest, err = w.alg.Read(r.Rest)
	}
	return f, rest, err
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
