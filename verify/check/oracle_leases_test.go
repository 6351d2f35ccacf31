package check_test

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A leasing is what an oracle knows of the leases of members at each other.
type leasing struct {
	lives []uint64
	// stands is, for each member and each other one, how it stands. broken is true of
	// two members where a session breaks, or broke.
	stands [][]tie
	broken [][]bool
}

// A tie is what a member was last told of another one.
type tie byte

const (
	restored tie = iota
	lapsed
	ended
)

// newLeasing is that of members which have not begun.
func newLeasing(n int) *leasing {
	l := &leasing{}
	for p := range n {
		l.lives = append(l.lives, 1)
		l.stands, l.broken = append(l.stands, slices.Repeat([]tie{ended}, n)), append(l.broken, make([]bool, n))
		l.stands[p][p] = restored
	}
	return l
}

func (l *leasing) clone() *leasing {
	if l == nil {
		return nil
	}
	c := &leasing{lives: slices.Clone(l.lives)}
	for p := range l.lives {
		c.stands, c.broken = append(c.stands, slices.Clone(l.stands[p])), append(c.broken, slices.Clone(l.broken[p]))
	}
	return c
}

// normal forgets which sessions broke that are over at both ends.
func (l *leasing) normal() *leasing {
	l = l.clone()
	for p := 0; l != nil && p < len(l.lives); p++ {
		for q := range l.lives {
			l.broken[p][q] = l.broken[p][q] && (l.stands[p][q] == restored || l.stands[q][p] == restored)
		}
	}
	return l
}

func (l *leasing) append(b []byte) []byte {
	if l == nil {
		return b
	}
	for p := range l.lives {
		b = append(b, byte(l.lives[p]))
		for q := range l.lives {
			b = protocol.AppendBool(append(b, byte(l.stands[p][q])), l.broken[p][q])
		}
	}
	return b
}

func (l *leasing) setBroken(p, q int, is bool) { l.broken[p][q], l.broken[q][p] = is, is }

// revoke breaks the session of p with q, and reports whether there is one.
func (l *leasing) revoke(p, q int) bool {
	if l.stands[p][q] == restored {
		l.setBroken(p, q, true)
	}
	return l.stands[p][q] == restored
}

// carries reports whether what p sends to q now gets on its way: not while one of the two
// has no session, but who has Ended may be restored to that of p.
func (l *leasing) carries(p, q int) bool {
	return l == nil || l.stands[p][q] == restored && l.stands[q][p] != lapsed
}

// takes reports whether what is on its way from q may reach p.
func (l *leasing) takes(p, q int) bool { return l == nil || l.stands[p][q] == restored }

func (l *leasing) crash(p int) {
	if l == nil {
		return
	}
	for q := range l.lives {
		l.stands[p][q] = lapsed
		l.setBroken(p, q, true)
	}
}

// reborn begins a life of p, and returns its number.
func (l *leasing) reborn(p int) uint64 {
	l.lives[p]++
	return l.lives[p]
}

// beginLeases restores all agents to each other.
func (o *oracle) beginLeases(w world) world {
	for p := range w.agents {
		for q := range w.agents {
			if w.leases != nil && p != q {
				w, _ = o.restore(w, p, q)
			}
		}
	}
	return w
}

// restore begins a session at p, or lets it join that of q.
func (o *oracle) restore(w world, p, q int) (world, []int) {
	w = w.copy()
	if w.leases.stands[q][p] == ended {
		w.leases.setBroken(p, q, false)
	}
	w.leases.stands[p][q] = restored
	return o.step(w, p, news(protocol.Restore, q, w.leases.lives[q]))
}

func news(kind protocol.Kind, of int, arg uint64) protocol.Event[uint64] {
	return protocol.Event[uint64]{Input: protocol.Input{Kind: kind, From: protocol.ID(of), Arg: arg}}
}

// leaseClass is the class of news of q for p.
func leaseClass(what tie, p, q int) int { return 1000 + 100*int(what) + 10*p + q }

// lease lists what p may be told of its leases.
func (o *oracle) lease(w world, p int) (list []arc) {
	l := w.leases
	if l == nil {
		return nil
	}
	tell := func(next world, set []int, class int) {
		list = append(list, arc{o.add(next), class, append(set, class)})
	}
	for q := range w.agents {
		switch other := l.stands[q][p]; {
		case p == q:
		case l.stands[p][q] == restored && (l.broken[p][q] || w.suspect > 0):
			k, class := w.copy(), leaseClass(lapsed, p, q)
			if !l.broken[p][q] {
				k.suspect--
				class = 0
			}
			k.leases.setBroken(p, q, true)
			k.leases.stands[p][q] = lapsed
			k.mail = slices.DeleteFunc(k.mail, func(m parcel) bool {
				return m.from == q && m.to == p || m.from == p && m.to == q && other != restored
			})
			next, set := o.step(k, p, news(protocol.Suspect, q, protocol.Lapsed))
			tell(next, set, class)
		case l.stands[p][q] == lapsed && other != restored:
			k := w.copy()
			k.leases.stands[p][q] = ended
			next, set := o.step(k, p, news(protocol.Suspect, q, protocol.Ended))
			tell(next, set, leaseClass(ended, p, q))
		case l.stands[p][q] == ended && !w.gone[q] && other != lapsed:
			next, set := o.restore(w, p, q)
			tell(next, set, leaseClass(restored, p, q))
		}
	}
	return list
}
