package withleader

import "github.com/poundlock/poundlock/protocol"

// algView is a global state as the algorithm's own properties see it.
func algView[M, E any](o *protocol.View[Frame[M, E]]) *protocol.View[M] {
	v := &protocol.View[M]{Config: o.Config, Users: o.Users, Lost: o.Lost}
	for _, p := range o.Procs {
		v.Procs = append(v.Procs, Algorithm(p))
	}
	v.InFlight = func(yield func(protocol.Channel, M) bool) {
		for ch, f := range o.InFlight {
			if !f.Elects && !yield(ch, f.Algorithm) {
				return
			}
		}
	}
	return v
}

// electionView is one as those of the election see it.
func electionView[M, E any](o *protocol.View[Frame[M, E]]) *protocol.View[E] {
	v := &protocol.View[E]{Config: o.Config, Users: o.Users, Lost: o.Lost}
	for _, p := range o.Procs {
		var q protocol.Process[E]
		if p != nil {
			q = p.(*Process[M, E]).election
		}
		v.Procs = append(v.Procs, q)
	}
	v.InFlight = func(yield func(protocol.Channel, E) bool) {
		for ch, f := range o.InFlight {
			if f.Elects && !yield(ch, f.Election) {
				return
			}
		}
	}
	return v
}

// show is what both tell, the algorithm first.
func (w *pair[M, E]) show(q protocol.Process[Frame[M, E]]) (text string) {
	p := q.(*Process[M, E])
	if w.alg.Show != nil {
		text = w.alg.Show(p.alg)
	}
	if w.election.Show != nil {
		if text != "" {
			text += "; "
		}
		text += w.election.Show(p.election)
	}
	return text
}
