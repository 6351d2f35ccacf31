package sim

// lossy is what a run knows about channels that lose and repeat messages. Its random
// numbers are its own, so that users meet the same workload whatever is lost.
type lossy struct {
	random     stream
	lost       int
	duplicated int
	resent     int // messages that were sent again
}

// isLossy reports whether messages may be lost or repeated.
func (s *simulator[M]) isLossy() bool { return s.cfg.Loss > 0 || s.cfg.Dup > 0 }

// copies draws how many copies arrive of the one in slot.
func (s *simulator[M]) copies(slot uint32) int {
	switch {
	case !s.isLossy():
		return 1
	case s.lossy.random.Float64() < s.cfg.Loss:
		s.lossy.lost++
		s.land(slot)
		return 0
	case s.lossy.random.Float64() < s.cfg.Dup:
		s.lossy.duplicated++
		s.flights[slot].copies++
		return 2
	}
	return 1
}
