package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/protocol"
)

// failover measures how long a waiting user waits more where the owner is killed, and what an
// operation takes from when its issuer is suspected by mistake.
func failover(args []string) (*table, error) {
	f := flag.NewFlagSet("failover", flag.ExitOnError)
	delay := f.Duration("delay", 20*time.Millisecond, "of a message, one way: T")
	lease := f.Duration("detector", 500*time.Millisecond, "time-out of the detector: D")
	n := f.Int("n", 5, "members")
	trials := f.Int("trials", 30, "fresh clusters for each figure")
	f.BoolVar(&byRaft, "raft", false, "consensus by raft, not by Paxos")
	f.Parse(args)
	var gone, wrong []time.Duration
	var ejected, outcomes int
	for k := range *trials {
		d, err := ownerKilled(*n, *delay, *lease)
		if err != nil {
			return nil, err
		}
		gone = append(gone, d)
		d, err = suspectedByMistake(*n, *delay, *lease)
		switch {
		case errors.Is(err, replica.ErrEjected):
			ejected++
		case err != nil:
			return nil, fmt.Errorf("trial %d: %w", k, err)
		default:
			outcomes++
		}
		wrong = append(wrong, d)
	}
	name, verdict := "Paxos", 8*float64(*delay)/1e6
	if byRaft {
		name, verdict = "raft", 0 // whose decisions take two delays more
	}
	t := newTable("%d members, T = %v each way, D = %v, consensus by %s, fresh clusters", *n, *delay, *lease, name)
	most := 1.5*float64(*lease)/1e6 + 8*float64(*delay)/1e6
	t.times("owner killed, to the next user inside", gone, time.Millisecond, "ms", 0, most)
	t.times("suspicion by mistake, to the verdict of the owner's operation", wrong, time.Millisecond, "ms", 0, verdict)
	t.value("  of which have an outcome", float64(outcomes), "", 0)
	t.value("  of which were ejected", float64(ejected), "", 0)
	return t, nil
}

// ownerKilled has members that are processes, of which it kills one.
func ownerKilled(n int, delay, lease time.Duration) (time.Duration, error) {
	p, err := startProcesses(n, delay, lease)
	if err != nil {
		return 0, err
	}
	defer p.close()
	order := rand.Perm(n)
	owner, next := p.all[order[0]], p.all[order[1]]
	for _, command := range []string{"enter", "operate"} {
		if _, err := owner.do(command); err != nil {
			return 0, err
		}
	}
	next.tell("enter")
	time.Sleep(5*delay + rand.N(lease/4)) // it waits, and heartbeats come at any time
	began := time.Duration(clock.Now())
	owner.kill()
	at, err := next.hear("enter")
	return at - began, err
}

func suspectedByMistake(n int, delay, lease time.Duration) (d time.Duration, err error) {
	c, err := startCluster(n, delay, lease)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	owner := rand.N(n)
	by := (owner + 1 + rand.N(n-1)) % n
	s, err := c.enter(owner)
	if err != nil {
		return 0, err
	}
	for range 2 {
		if err := do(s, "k"); err != nil {
			return 0, err
		}
	}
	suspected := make(chan time.Time, 1)
	go func() {
		time.Sleep(rand.N(delay)) // a majority's answers cannot be there yet
		suspected <- time.Now()
		c.nodes[by].Suspect(protocol.ID(owner))
	}()
	err = do(s, "k")
	at := time.Now()
	s.Exit()
	return at.Sub(<-suspected), err
}
