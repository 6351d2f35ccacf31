package withleader

import "github.com/poundlock/poundlock/protocol"

// A Process is a process of an algorithm, and one of an election beside it.
type Process[M, E any] struct {
	w        *pair[M, E]
	alg      protocol.Process[M]
	election protocol.Process[E]
	both     []any

	algOut      protocol.Out[M]
	electionOut protocol.Out[E]
	leads       []protocol.Input // what the election said in this step; empty between steps
}

func (w *pair[M, E]) new(id protocol.ID, c protocol.Config) protocol.Process[Frame[M, E]] {
	p := &Process[M, E]{w: w, alg: w.alg.New(id, c), election: w.election.New(id, c)}
	p.both = []any{p.alg, p.election}
	return p
}

// Unwrap returns both, the algorithm's own process first.
func (p *Process[M, E]) Unwrap() []any { return p.both }

// Show is what both tell.
func (p *Process[M, E]) Show() string {
	text, more := protocol.Show(p.alg), protocol.Show(p.election)
	if text != "" && more != "" {
		text += "; "
	}
	return text + more
}

// Step implements protocol.Process. What concerns both goes to the algorithm first; then it
// hears what the election made of it.
func (p *Process[M, E]) Step(ev protocol.Event[Frame[M, E]], out *protocol.Out[Frame[M, E]]) {
	in := ev.Input
	switch in.Kind {
	case protocol.Start:
		p.toAlgorithm(in, out)
		p.toElection(protocol.Event[E]{Input: in}, out)
	case protocol.Suspect, protocol.Restore:
		if p.w.alg.Detector != protocol.NoDetector {
			p.toAlgorithm(in, out)
		}
		if p.w.election.Detector != protocol.NoDetector {
			p.toElection(protocol.Event[E]{Input: in}, out)
		}
	case protocol.Timeout:
		if in.Timer < firstTimer {
			p.toAlgorithm(in, out)
			return
		}
		in.Timer -= firstTimer
		p.toElection(protocol.Event[E]{Input: in}, out)
	case protocol.Receive:
		if ev.Msg.Elects {
			p.toElection(protocol.Event[E]{Input: in, Msg: ev.Msg.Election}, out)
			return
		}
		p.give(protocol.Event[M]{Input: in, Msg: ev.Msg.Algorithm}, out)
	case protocol.Lead:
		panic("elect: a leader from elsewhere")
	default:
		p.toAlgorithm(in, out)
	}
}

func (p *Process[M, E]) toAlgorithm(in protocol.Input, out *protocol.Out[Frame[M, E]]) {
	p.give(protocol.Event[M]{Input: in}, out)
}

// give steps the algorithm.
func (p *Process[M, E]) give(ev protocol.Event[M], out *protocol.Out[Frame[M, E]]) {
	p.algOut.Reset()
	p.alg.Step(ev, &p.algOut)
	for _, e := range p.algOut.Effects {
		if e.Timer >= firstTimer {
			panic("elect: a timer that is the election's")
		}
		out.Effects = append(out.Effects, protocol.Effect[Frame[M, E]]{Act: e.Act, Msg: Frame[M, E]{Algorithm: e.Msg}})
	}
}

// toElection steps the election, and then the algorithm with what it says of who leads. The
// algorithm has no way to the election, so that this ends.
func (p *Process[M, E]) toElection(ev protocol.Event[E], out *protocol.Out[Frame[M, E]]) {
	p.electionOut.Reset()
	p.election.Step(ev, &p.electionOut)
	p.leads = p.leads[:0]
	for _, e := range p.electionOut.Effects {
		a := e.Act
		switch a.Do {
		case protocol.Leader:
			lead := protocol.NewLead(a.To, a.Arg)
			lead.Now = ev.Now
			p.leads = append(p.leads, lead)
			continue
		case protocol.SetTimer, protocol.StopTimer:
			a.Timer += firstTimer
		case protocol.Send, protocol.Broadcast:
		default:
			panic("elect: the election has a user")
		}
		out.Effects = append(out.Effects, protocol.Effect[Frame[M, E]]{Act: a, Msg: Frame[M, E]{Elects: true, Election: e.Msg}})
	}
	for _, in := range p.leads {
		p.toAlgorithm(in, out)
	}
}

// State implements protocol.Process.
func (p *Process[M, E]) State(c *protocol.Codec) {
	p.alg.State(c)
	p.election.State(c)
}
