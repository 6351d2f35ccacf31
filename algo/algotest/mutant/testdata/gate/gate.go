// Package gate is a small machine with one mutant of each sort.
package gate

// A Gate lets people in until it is full.
type Gate struct{ inside, most int }

// Enter lets one more in, if there is room for it; staff always enters.
func (g *Gate) Enter(staff, ticket bool) bool {
	room := g.inside < g.most
	if staff || ticket && room {
		g.inside++
		return true
	}
	return false
}

// Leave lets one out. Nobody can leave an empty gate.
func (g *Gate) Leave() {
	switch {
	case g.inside == 0:
		panic("gate: nobody is inside")
	case g.inside > 0:
		g.inside--
	}
}

// Drain counts down, and stops by a condition inside its loop.
func (g *Gate) Drain() (n int) {
	for {
		if g.inside == 0 {
			return n
		}
		g.Leave()
		n++
	}
}

// Depth recurses once for each one inside.
func (g *Gate) Depth(k int) int {
	if k >= g.inside {
		return k
	}
	return g.Depth(k + 1)
}

// Same is a method that the checks use.
func (g *Gate) Same(h Gate) bool { return *g == h }

// Split is outside.
func (g *Gate) Split() {
	halve := func() { g.inside /= 2 }
	halve()
}

// A Sign is another machine, which no check of the gate reads.
type Sign struct{ lit bool }

// Full shows that the gate is.
func (s *Sign) Full(g Gate) { s.lit = g.inside >= g.most }

// Dark reports whether the sign shows nothing.
func (s Sign) Dark() bool { return !s.lit }
