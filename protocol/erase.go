package protocol

// Erase returns a with the type of its messages erased: each is boxed, and everything else
// is as in a, to the last byte. One copy of a generic driver is compiled for each type of
// messages, but all that is erased shares one, at the price of a small allocation for each
// message that is sent. Processes of a run inside; Bare returns them.
func Erase[M any](a Algorithm[M]) Algorithm[any] {
	if a, done := any(a).(Algorithm[any]); done {
		return a
	}
	out := Algorithm[any]{
		Info: a.Info,
		New: func(id ID, c Config) Process[any] {
			return &erased[M]{bare: a.New(id, c)}
		},
		Fields: func(m any, c *Codec) any {
			if c.does == appends {
				a.Fields(unbox[M](m), c)
				return m
			}
			return a.Fields(unbox[M](m), c)
		},
		KindOf: func(m any) int { return a.KindOf(unbox[M](m)) },
		Ints:   func(m any) int { return a.Ints(unbox[M](m)) },
		Text:   func(m any) string { return a.Text(unbox[M](m)) },
		Model:  eraseModel(a.Model),
	}
	if a.Fits != nil {
		out.Fits = func(m any, n int, proposed bool) bool { return a.Fits(unbox[M](m), n, proposed) }
	}
	if a.Snapshot != nil {
		out.Snapshot = func(m any) (string, bool) { return a.Snapshot(unbox[M](m)) }
	}
	if a.Unsettled != nil {
		out.Unsettled = func(procs []Process[any]) int { return a.Unsettled(bares[M](procs)) }
	}
	if a.Inspect != nil {
		out.Inspect = func(p Process[any]) Standing { return a.Inspect(Bare[M](p)) }
	}
	if a.Show != nil {
		out.Show = func(p Process[any]) string { return a.Show(Bare[M](p)) }
	}
	if a.Waiting != nil {
		out.Waiting = func(p Process[any]) int { return a.Waiting(Bare[M](p)) }
	}
	return out
}

func eraseModel[M any](a Model[M]) Model[any] {
	out := Model[any]{Interchangeable: a.Interchangeable}
	if a.Idempotent != nil {
		out.Idempotent = func(m any) bool { return a.Idempotent(unbox[M](m)) }
	}
	if a.Stale != nil {
		out.Stale = func(from, to Process[any], ch Channel, m any) bool {
			return a.Stale(Bare[M](from), Bare[M](to), ch, unbox[M](m))
		}
	}
	if a.Moot != nil {
		out.Moot = func(to Process[any], from ID, m any) bool { return a.Moot(Bare[M](to), from, unbox[M](m)) }
	}
	if a.Lasts != nil {
		out.Lasts = func(m any) bool { return a.Lasts(unbox[M](m)) }
	}
	if a.MapState != nil {
		out.MapState = func(p Process[any], f func(Counter, uint64) uint64) { a.MapState(Bare[M](p), f) }
	}
	if a.MapMsg != nil {
		out.MapMsg = func(ch Channel, m *any, f func(Counter, uint64) uint64) {
			v := unbox[M](*m)
			a.MapMsg(ch, &v, f)
			*m = v
		}
	}
	if a.Confluent != nil {
		out.Confluent = func(p Process[any], from ID, m any, again bool) bool {
			return a.Confluent(Bare[M](p), from, unbox[M](m), again)
		}
	}
	if a.Permute != nil {
		out.Permute = func(p Process[any], f func(ID) ID) { a.Permute(Bare[M](p), f) }
	}
	for _, b := range a.Bounds {
		out.Bounds = append(out.Bounds, Bound[any]{
			Name: b.Name, Max: b.Max, Of: func(p Process[any]) uint64 { return b.Of(Bare[M](p)) },
		})
	}
	for _, i := range a.Invariants {
		out.Invariants = append(out.Invariants, Invariant[any]{
			Name: i.Name, Err: func(v *View[any]) error { return i.Err(bareView[M](v)) }, Stable: i.Stable,
		})
	}
	return out
}

// unbox returns the message in m, and the zero one where there is none.
func unbox[M any](m any) M {
	v, _ := m.(M)
	return v
}

// An erased process is one whose messages are boxed.
type erased[M any] struct {
	bare  Process[M]
	out   Out[M]
	state *bareState[M] // scratch, of the first process of those that are looked at together
}

// Step implements Process.
func (p *erased[M]) Step(ev Event[any], out *Out[any]) {
	p.out.Reset()
	p.bare.Step(Event[M]{Input: ev.Input, Msg: unbox[M](ev.Msg)}, &p.out)
	for i := range p.out.Effects {
		e := &p.out.Effects[i]
		boxed := Effect[any]{Act: e.Act}
		if e.Do == Send || e.Do == Broadcast || e.Do == Propose {
			boxed.Msg = e.Msg
		}
		out.Effects = append(out.Effects, boxed)
	}
}

// State implements Process.
func (p *erased[M]) State(c *Codec) { p.bare.State(c) }

// Bare returns the algorithm's own process in one that Erase made; nil where p is nil.
func Bare[M any](p Process[any]) Process[M] {
	if p == nil {
		return nil
	}
	return p.(*erased[M]).bare
}

// A bareState is a global state as the algorithm's own invariants see it. Because they
// see every state that a driver reaches, it is made once and kept.
type bareState[M any] struct {
	view  View[M]
	boxed *View[any] // what is being looked at
}

func newBareState[M any](n int) *bareState[M] {
	s := &bareState[M]{view: View[M]{Procs: make([]Process[M], n)}}
	s.view.InFlight = func(yield func(Channel, M) bool) {
		for ch, m := range s.boxed.InFlight {
			if !yield(ch, unbox[M](m)) {
				return
			}
		}
	}
	return s
}

// bareOf returns the state of these processes. It is valid until the next one.
func bareOf[M any](procs []Process[any]) *bareState[M] {
	var s *bareState[M]
	for _, p := range procs {
		if p != nil {
			first := p.(*erased[M])
			if first.state == nil || len(first.state.view.Procs) != len(procs) {
				first.state = newBareState[M](len(procs))
			}
			s = first.state
			break
		}
	}
	if s == nil {
		return newBareState[M](len(procs))
	}
	for i, p := range procs {
		s.view.Procs[i] = Bare[M](p)
	}
	return s
}

func bares[M any](procs []Process[any]) []Process[M] { return bareOf[M](procs).view.Procs }

func bareView[M any](v *View[any]) *View[M] {
	s := bareOf[M](v.Procs)
	s.boxed = v
	s.view.Config, s.view.Users, s.view.Registers, s.view.Lost = v.Config, v.Users, v.Registers, v.Lost
	return &s.view
}
