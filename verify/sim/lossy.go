package sim

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// lossy is what a run knows about channels that lose and repeat messages. Its random
// numbers are its own, so that users meet the same workload whatever is lost.
type lossy struct {
	random     stream
	lost       int
	duplicated int
	resent     int // messages that were sent again
}

// checkChannels refuses what the algorithm's model of channels excludes.
func (c *Config) checkChannels(i protocol.Info) error {
	for _, p := range []struct {
		name  string
		value float64
		fault protocol.Faults
	}{{"loss", c.Loss, protocol.Loss}, {"dup", c.Dup, protocol.Duplication}} {
		switch {
		case !(p.value >= 0 && p.value < 1):
			return fmt.Errorf("%s %v: want a probability of at least 0 and below 1", p.name, p.value)
		case p.value > 0 && i.Tolerates&p.fault == 0:
			return fmt.Errorf("%s %v: %w", p.name, p.value, protocol.ErrReliable)
		}
	}
	return nil
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
