package main

import (
	"errors"
	"flag"
	"time"

	"github.com/poundlock/poundlock/sections"
)

// A system has one user a member, which enter, operate and leave; each call returns when that is
// done.
type system interface {
	enter(i int) error
	operate(i int) error
	exit(i int) error
}

// A cycle is a cluster as a system.
type cycle struct {
	*cluster
	of []*sections.Section // by member
}

func (s *cycle) enter(i int) (err error) {
	s.of[i], err = s.cluster.enter(i)
	return err
}

func (s *cycle) operate(i int) error { return do(s.of[i], "k") }

// exit needs no answer of anybody. That the next user of this member can enter shows that it is done: see again.
func (s *cycle) exit(i int) error {
	s.of[i].Exit()
	return nil
}

// costs measures both systems, one after the other, with the same delay.
func costs(args []string) (*table, error) {
	f := flag.NewFlagSet("costs", flag.ExitOnError)
	delay := f.Duration("delay", 20*time.Millisecond, "of a message, one way")
	n := f.Int("n", 5, "members")
	rounds := f.Int("rounds", 50, "how often each is measured")
	f.Parse(args)
	t := newTable("%d members, T = %v each way, medians in T", *n, *delay)
	c, err := startCluster(*n, *delay, 10*time.Second)
	if err != nil {
		return nil, err
	}
	ours := &cycle{c, make([]*sections.Section, *n)}
	err = t.measure("sections", ours, *n, *rounds, *delay, []bound{{2, 2.3}, {0, 0.1}, {2, 2.3}, {0, 0.1}, {1, 1.5}})
	if err = errors.Join(err, c.close()); err != nil {
		return nil, err
	}
	r, err := startRaft(*n, *delay, "")
	if err != nil {
		return nil, err
	}
	defer r.close()
	return t, t.measure("raft", r, *n, *rounds, *delay, []bound{{3, 4.5}, {3, 4.5}, {3, 4.5}, {3, 4.5}, {3, 4.5}})
}

// A bound is what is claimed of a median, in T.
type bound struct{ least, most float64 }

// measure measures what members do that are not the first one, which leads raft.
func (t *table) measure(name string, s system, n, rounds int, delay time.Duration, claimed []bound) error {
	whats := []string{"enter, nobody is inside", "enter again, where the last user was", "operation, to its outcome", "exit", "hand-over: exit to enter"}
	took := make([][]time.Duration, len(whats))
	timed := func(k int, f func(int) error, i int) error {
		began := time.Now()
		err := f(i)
		took[k] = append(took[k], time.Since(began))
		return err
	}
	if err := errors.Join(s.enter(n-1), s.exit(n-1)); err != nil {
		return err
	}
	time.Sleep(5 * delay)
	for k := range rounds {
		p := 1 + k%(n-1)
		err := errors.Join(timed(0, s.enter, p), timed(2, s.operate, p), timed(3, s.exit, p), timed(1, s.enter, p), s.operate(p))
		if err != nil {
			return err
		}
		q := 1 + (k+1)%(n-1)
		entered := make(chan error, 1)
		var at time.Time
		go func() {
			err := s.enter(q)
			at = time.Now()
			entered <- err
		}()
		time.Sleep(5 * delay)
		left := time.Now()
		if err := errors.Join(s.exit(p), <-entered); err != nil {
			return err
		}
		took[4] = append(took[4], at.Sub(left))
		time.Sleep(5 * delay)
		if err := s.exit(q); err != nil {
			return err
		}
		// The next round's user is not the last one.
		r := 1 + (k+2)%(n-1)
		if err := errors.Join(s.enter(r), s.exit(r)); err != nil {
			return err
		}
		time.Sleep(5 * delay)
	}
	for k, what := range whats {
		t.times(name+": "+what, took[k], delay, "T", claimed[k].least, claimed[k].most)
	}
	return nil
}
