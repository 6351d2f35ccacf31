package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/sections"
)

// failover measures how long a waiting user waits more where the owner is killed, and what an
// operation takes from when its issuer is suspected by mistake: by one member while it waits for the
// outcome, and by all others at once just before it issues.
func failover(args []string) (*table, error) {
	f := flag.NewFlagSet("failover", flag.ExitOnError)
	delay := f.Duration("delay", 20*time.Millisecond, "of a message, one way: T")
	lease := f.Duration("detector", 500*time.Millisecond, "time-out of the detector: D")
	n := f.Int("n", 5, "members")
	trials := f.Int("trials", 30, "fresh clusters for each figure")
	f.BoolVar(&byRaft, "raft", false, "consensus by raft, not by Paxos")
	f.Parse(args)
	if *n < 3 {
		return nil, fmt.Errorf("--n %d: want at least 3, so that a majority goes on without the owner", *n)
	}
	var gone []time.Duration
	var one, all verdicts
	for k := range *trials {
		d, err := ownerKilled(*n, *delay, *lease)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", k, err)
		}
		gone = append(gone, d)
		if err := errors.Join(one.add(suspectedByOne(*n, *delay, *lease)), all.add(suspectedByAll(*n, *delay, *lease))); err != nil {
			return nil, fmt.Errorf("trial %d: %w", k, err)
		}
	}
	name, delays := "Paxos", 7 // a vote, those of the others, and five to decide
	if byRaft {
		name, delays = "raft", 9 // seven to decide: an election comes first
	}
	in := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	limit := in(time.Duration(delays+1) * *delay) // one more for what is not delay
	t := newTable("%d members, T = %v each way, D = %v, consensus by %s, fresh clusters", *n, *delay, *lease, name)
	t.times("owner killed, to the next user inside", gone, time.Millisecond, "ms", 0, 1.5*in(*lease)+limit)
	t.times("suspicion by mistake, to the verdict of the owner's operation", append(one.executed, one.ejected...),
		time.Millisecond, "ms", 0, limit)
	t.value("  of which have an outcome", float64(len(one.executed)), "", 0, 0)
	t.value("  of which were ejected", float64(len(one.ejected)), "", 0, 0)
	t.ejections(all, limit)
	return t, nil
}

// Verdicts are how long each took, of operations that were executed, and of those whose user was ejected.
type verdicts struct{ executed, ejected []time.Duration }

// add adds a verdict. It returns any other error: then there is none.
func (v *verdicts) add(d time.Duration, err error) error {
	switch {
	case err == nil:
		v.executed = append(v.executed, d)
	case errors.Is(err, sections.ErrEjected):
		v.ejected = append(v.ejected, d)
	default:
		return err
	}
	return nil
}

// ejections adds the trials in which all others suspect the owner, most of which must eject it.
func (t *table) ejections(v verdicts, limit float64) {
	if len(v.ejected) > 0 {
		t.times("suspicion by all others, to ErrEjected", v.ejected, time.Millisecond, "ms", 0, limit)
	}
	if len(v.executed) > 0 {
		t.times("suspicion by all others, to the outcome", v.executed, time.Millisecond, "ms", 0, limit)
	}
	trials := len(v.ejected) + len(v.executed)
	t.value("trials of these in which the owner was ejected", float64(len(v.ejected)), "", float64(trials/2+1), float64(trials))
}

func ownerKilled(n int, delay, lease time.Duration) (time.Duration, error) {
	p, err := startProcesses(n, delay, lease)
	if err != nil {
		return 0, err
	}
	defer p.close()
	order := rand.Perm(n)
	owner, next := order[0], order[1]
	for _, command := range []string{"enter", "operate"} {
		p.tell(owner, command)
		if _, err := p.hear(command); err != nil {
			return 0, err
		}
	}
	p.tell(next, "enter")
	time.Sleep(5*delay + rand.N(lease/4)) // it waits, and heartbeats come at any time
	began := time.Duration(clock.Now())
	p.kill(owner)
	at, err := p.hear("enter")
	return at - began, err
}

// suspectedByOne has one member suspect the owner while that waits for an outcome.
func suspectedByOne(n int, delay, lease time.Duration) (d time.Duration, err error) {
	return suspected(n, 1, delay, lease, func(suspect func()) {
		go func() {
			time.Sleep(rand.N(delay)) // a majority's answers cannot be there yet
			suspect()
		}()
	})
}

// suspectedByAll has all others suspect the owner at once, which issues before it can have heard of
// that, but so late that they have voted when they hear of the operation. So it is ejected, but where it
// coordinates consensus itself, and proposes its own vote.
func suspectedByAll(n int, delay, lease time.Duration) (d time.Duration, err error) {
	return suspected(n, n-1, delay, lease, func(suspect func()) {
		suspect()
		time.Sleep(delay/4 + rand.N(delay/4))
	})
}

// suspected has so many members suspect the owner, when that is about to issue an operation. It returns
// what the verdict takes from then on, and the error that it is.
func suspected(n, many int, delay, lease time.Duration, before func(suspect func())) (d time.Duration, err error) {
	c, err := startCluster(n, delay, lease)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	order := rand.Perm(n)
	owner, by := order[0], order[1:1+many]
	s, err := c.enter(owner)
	if err != nil {
		return 0, err
	}
	for range 2 {
		if err := do(s, "k"); err != nil {
			return 0, err
		}
	}
	at := make(chan time.Time, 1)
	before(func() {
		at <- time.Now()
		for _, m := range by {
			_ = c.opened[m].Suspect(c.members[owner].Name) // who is a member
		}
	})
	err = do(s, "k")
	over := time.Now()
	s.Exit()
	return over.Sub(<-at), err
}
