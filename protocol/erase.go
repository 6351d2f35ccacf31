package protocol

// Erase returns a with the type of its messages erased: each is boxed, and everything else
// is as in a, to the last byte. One copy of a generic driver is compiled for each type of
// messages, but all that is erased shares one, at the price of a small allocation for each
// message that is sent. Processes of a run inside; bare returns them.
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

		Unsettled: a.Unsettled,
	}
	if a.Fits != nil {
		out.Fits = func(m any, n int, proposed bool) bool { return a.Fits(unbox[M](m), n, proposed) }
	}
	if a.Snapshot != nil {
		out.Snapshot = func(m any) (string, bool) { return a.Snapshot(unbox[M](m)) }
	}
	return out
}

func eraseModel[M any](a Model[M]) Model[any] {
	out := Model[any]{Interchangeable: a.Interchangeable, Bounds: a.Bounds, Invariants: a.Invariants}
	if a.Idempotent != nil {
		out.Idempotent = func(m any) bool { return a.Idempotent(unbox[M](m)) }
	}
	if a.Stale != nil {
		out.Stale = func(from, to Process[any], ch Channel, m any) bool {
			return a.Stale(bare[M](from), bare[M](to), ch, unbox[M](m))
		}
	}
	if a.Moot != nil {
		out.Moot = func(to Process[any], from ID, m any) bool { return a.Moot(bare[M](to), from, unbox[M](m)) }
	}
	if a.Lasts != nil {
		out.Lasts = func(m any) bool { return a.Lasts(unbox[M](m)) }
	}
	if a.MapState != nil {
		out.MapState = func(p Process[any], f func(Counter, uint64) uint64) { a.MapState(bare[M](p), f) }
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
			return a.Confluent(bare[M](p), from, unbox[M](m), again)
		}
	}
	if a.Permute != nil {
		out.Permute = func(p Process[any], f func(ID) ID) { a.Permute(bare[M](p), f) }
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
	bare Process[M]
	out  Out[M]
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

// Unwrap returns the algorithm's own process.
func (p *erased[M]) Unwrap() any { return p.bare }

// bare returns the algorithm's own process in one that Erase made; nil where p is nil.
func bare[M any](p Process[any]) Process[M] {
	if p == nil {
		return nil
	}
	return p.(*erased[M]).bare
}
