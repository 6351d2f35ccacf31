package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/verify/history"
)

// mixes are readers and writers of one name: each acquire is one or the other, by chance. They leave
// at once, which shows what the lock costs, or stay for a while, which shows how many share it.
func mixes() (all []rivalry) {
	for _, m := range []struct {
		users   []load.User
		stay    time.Duration
		claimed float64
	}{
		{load.Rivals(9, 1), 0, 10},
		{load.Rivals(processes, 5), 0, 3}, // who wait for etcd's timer together
		{load.Rivals(9, 1), time.Millisecond, 3},
	} {
		for _, readers := range []int{95, 50} {
			users := slices.Clone(m.users)
			for i := range users {
				users[i].Shared, users[i].Hold = readers, m.stay
			}
			what := fmt.Sprintf("%d clients, %d %% readers", len(users), readers)
			if m.stay > 0 {
				what += fmt.Sprintf(", inside for %v", m.stay)
			}
			all = append(all, rivalry{
				what: what, users: users, count: grants, figure: rate, claims: []claim{{Rival: onDisk, Claimed: m.claimed}},
			})
		}
	}
	return all
}

// A mixed is one load of readers and writers.
type mixed struct {
	Load    string  `json:"load"`
	Systems []sides `json:"systems"`
}

// sides are the two sides of one system: what its median window shows, by acquires.
type sides struct {
	System     string          `json:"system"`
	Readers    float64         `json:"readers_per_s"`
	Writers    float64         `json:"writers_per_s"`
	Ratio      float64         `json:"ratio"` // of its acquires to etcd's
	ReadMS     *load.Quantiles `json:"reader_waits_ms"`
	WriteMS    *load.Quantiles `json:"writer_waits_ms"`
	Bytes      float64         `json:"bytes"`      // of the clients' connections, both ways, an acquire and release
	Together   int             `json:"together"`   // inside, at most, in any window
	Violations uint64          `json:"violations"` // somebody beside a writer, in all windows
}

// shared measures locks of readers and writers.
func (p plan) shared(ctx context.Context, r *result) error {
	systems, stop, err := start(ctx, []contender{
		{ours, startPoundlock(processes), ""},
		{onDisk, startEtcd(etcdReader), p.disk},
		{postgres, startPostgres, p.disk},
		{zookeeper, startZooKeeper, p.disk},
	})
	defer stop()
	if err != nil {
		return err
	}
	for _, l := range mixes() {
		samples, claims, err := p.measure(ctx, systems, l)
		if err != nil {
			return err
		}
		r.Claims = append(r.Claims, claims...)
		x := mixed{Load: l.what}
		rates := medians(samples, rate)
		for _, s := range systems {
			y, err := sidesOf(samples[s.name])
			if err != nil && s.name == ours { // others may: it is counted
				return fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			y.System, y.Ratio = s.name, rates[s.name]/rates[onDisk]
			x.Systems = append(x.Systems, y)
		}
		r.Shared = append(r.Shared, x)
	}
	return nil
}

// sidesOf also returns what is wrong with any of the windows.
func sidesOf(all []sample) (s sides, err error) {
	for _, w := range all {
		j := w.Judge()
		err = cmp.Or(err, j.Err())
		s.Together = max(s.Together, j.Measures.Concurrency.Max)
		for _, v := range j.Verdicts {
			if v.Property == history.Exclusion {
				s.Violations += v.Count
			}
		}
	}
	w := median(all, rate)
	readers, writers := w.Part(true), w.Part(false)
	s.Readers, s.Writers, s.Bytes = readers.Rate(), writers.Rate(), w.Traffic
	s.ReadMS, s.WriteMS = load.Of(readers.Acquires(), time.Millisecond), load.Of(writers.Acquires(), time.Millisecond)
	return s, err
}
