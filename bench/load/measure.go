package load

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Quantiles are the median and the 99th percentile.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Of returns the quantiles of some times, in multiples of unit.
func Of(times []time.Duration, unit time.Duration) *Quantiles {
	if len(times) == 0 || unit <= 0 {
		return nil
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		k := int(math.Ceil(q*float64(len(times)))) - 1
		return float64(times[max(0, k)]) / float64(unit)
	}
	return &Quantiles{P50: at(0.5), P99: at(0.99)}
}

// Grants is how many critical sections began in the window.
func (w *Window) Grants() (k int) {
	for _, r := range w.Records {
		k += len(r)
	}
	return k
}

// Rate is how many critical sections began in a second.
func (w *Window) Rate() float64 { return float64(w.Grants()) / w.Length.Seconds() }

// Acquires are the times from the call of Lock to its return.
func (w *Window) Acquires() []time.Duration {
	return w.times(func(r Record) int64 { return r.Entered - r.Called })
}

// Releases are the times from the call of Unlock to its return.
func (w *Window) Releases() []time.Duration {
	return w.times(func(r Record) int64 { return r.Back - r.Left })
}

func (w *Window) times(of func(Record) int64) (all []time.Duration) {
	for _, records := range w.Records {
		for _, r := range records {
			all = append(all, time.Duration(of(r)))
		}
	}
	return all
}

// Part is the part of the window that users shared, or the part that they did not. Its traffic
// and processor time are unknown.
func (w *Window) Part(shared bool) *Window {
	part := &Window{Length: w.Length, Users: w.Users}
	for _, records := range w.Records {
		var some []Record
		for _, r := range records {
			if (r.Group != "") == shared {
				some = append(some, r)
			}
		}
		part.Records = append(part.Records, some)
	}
	return part
}

// Handovers are the times from the call of Unlock by one user to the return of Lock
// at the next one, where that one had called it before. Users that follow each other in one
// group hand nothing over: the last of them to leave does.
func (w *Window) Handovers() (times []time.Duration) {
	type section struct {
		Record
		user int
	}
	byName := map[string][]section{}
	for i, records := range w.Records {
		for _, r := range records {
			name := w.Users[i].Name
			byName[name] = append(byName[name], section{r, i})
		}
	}
	for _, all := range byName {
		slices.SortFunc(all, func(a, b section) int { return cmp.Compare(a.Entered, b.Entered) })
		from := all[0]
		for _, to := range all[1:] {
			if to.Group != "" && to.Group == from.Group {
				if to.Left > from.Left {
					from = to
				}
				continue
			}
			if to.user != from.user && to.Called <= from.Left {
				times = append(times, time.Duration(to.Entered-from.Left))
			}
			from = to
		}
	}
	return times
}

// Jain is Jain's fairness index of the users' numbers of grants: 1 when all have
// the same, 1/users when one has them all.
func (w *Window) Jain() float64 {
	var sum, squares float64
	for _, r := range w.Records {
		k := float64(len(r))
		sum += k
		squares += k * k
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(w.Records)) * squares)
}
