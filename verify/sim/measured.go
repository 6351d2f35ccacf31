package sim

import (
	"maps"
	"time"

	"github.com/poundlock/poundlock/verify/history"
)

// Discarded is what measures leave out, because Config says so, at the ends of a run.
type Discarded struct {
	Warmup   uint64  `json:"warmup_entries"`
	Cooldown uint64  `json:"cooldown_entries"`
	FromS    float64 `json:"from_s"` // virtual time of the last entry of the warm-up, from which measures are
	UntilS   float64 `json:"until_s"`
}

// measured is the part of a run that is measured.
type measured struct {
	from   int64   // its begin
	warm   uint64  // entries before it
	result *Result // at its end, nil before that
}

// counts are those since the begin of what is measured.
type counts struct {
	Counts
	byKind   []int // messages
	integers int
	toEnter  int // messages that are no overhead, sent between a try and its crit, whoever sent them
	slow     int // FencedEntries that took one more round
	outcomes history.Histogram
}

// passed is called at entry k.
func (s *engine) passed(k int) {
	if s.cfg.Warmup > 0 && k == s.cfg.Warmup {
		s.discard()
	}
	if s.cfg.Cooldown > 0 && k == s.total-s.cfg.Cooldown {
		r := s.measure(s.monitor.MeasuresUntil(s.now))
		s.measured.result = &r
	}
}

// discard forgets what was measured so far.
func (s *engine) discard() {
	s.measured.from, s.measured.warm = s.now, s.monitor.Entries()
	s.monitor.Discard(s.now)
	clear(s.byKind)
	s.counts = counts{byKind: s.byKind}
}

// measures ends what is measured. A run that ends within its warm-up has none.
func (s *engine) measures() Result {
	if s.measured.warm < uint64(s.cfg.Warmup) {
		s.discard()
	}
	var r Result
	if s.measured.result != nil {
		r = *s.measured.result
	} else {
		r = s.measure(s.monitor.Measures())
	}
	if s.cfg.Warmup+s.cfg.Cooldown > 0 {
		r.Throughput90 = 0 // it is another way to leave the end out
		r.Discarded = Discarded{
			Warmup:   s.measured.warm,
			Cooldown: s.monitor.Entries() - s.measured.warm - r.Entries,
			FromS:    time.Duration(s.measured.from).Seconds(),
			UntilS:   r.VirtualSeconds,
		}
	}
	r.VirtualSeconds = time.Duration(s.now).Seconds()
	return r
}

// measure is what counts from the end of the warm-up until now.
func (s *engine) measure(m history.Measures) Result {
	r := Result{
		Measures:       m,
		Counts:         s.Counts,
		OutcomeMS:      s.outcomes.Summary(),
		SlowPathShare:  ratio(s.slow, s.FencedEntries),
		VirtualSeconds: time.Duration(s.now).Seconds(),
	}
	r.GaveUpReasons = maps.Clone(s.GaveUpReasons)
	if s.Grouped && s.ninety > 0 {
		r.Throughput90 = float64(s.total-s.total/10) / time.Duration(s.ninety).Seconds()
	}
	r.Count(s.Info.Messages, s.byKind)
	r.MessagesToEnter = ratio(s.toEnter, int(r.Entries))
	r.AccessesPerEntry = ratio(r.Accesses, int(r.Entries))
	r.IntegersPerMessage = ratio(s.integers, r.Messages)
	return r
}

// ratio is a/b, and 0 where there is nothing to divide by.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
