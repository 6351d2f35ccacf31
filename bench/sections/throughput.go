package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/sections"
)

const (
	together = 100 // operations of one DoAll
	underWay = 64  // operations at a time
)

// throughput counts operations in a window, of sections and of two raft libraries with the same delay, all in memory, and then
// all on the same disk.
func throughput(args []string) (*table, error) {
	f := flag.NewFlagSet("throughput", flag.ExitOnError)
	delays := f.String("delays", "0,500us,5ms", "of a message, one way: a list with commas")
	n := f.Int("n", 3, "members")
	window := f.Duration("window", 2*time.Second, "how long each is measured")
	dir := f.String("dir", "", "a directory on the disk to measure (default: the system's for temporary files)")
	f.Parse(args)
	t := newTable("%d members, %v each", *n, *window)
	scratch, err := os.MkdirTemp(*dir, "sections")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	for text := range strings.SplitSeq(*delays, ",") {
		delay, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("--delays: %w", err)
		}
		for k, disk := range []string{"", filepath.Join(scratch, text)} {
			if err := t.throughput(*n, delay, *window, disk); err != nil {
				return nil, fmt.Errorf("T = %v, %s: %w", delay, []string{"in memory", "on disk"}[k], err)
			}
		}
	}
	return t, nil
}

// throughput is that with one delay, in a directory, or in memory where that is empty.
func (t *table) throughput(n int, delay, window time.Duration, dir string) error {
	at := fmt.Sprintf("T = %v", delay)
	if dir != "" {
		at += ", on disk"
	}
	rate := func(who, how string, users, each int, op func() error) (float64, error) {
		v, err := count(window, users, op)
		if err != nil {
			return 0, fmt.Errorf("%s, %s: %w", who, how, err)
		}
		v *= float64(each)
		t.value(fmt.Sprintf("%s: %s, %s", at, who, how), v, "a second", 0, 0)
		return v, nil
	}
	one, many := "one at a time", fmt.Sprint(underWay, " under way")
	op := counters.Add("k")
	var ours, alone, all float64
	err := between(n, delay, dir, func(c *cluster) error {
		s, err := c.enter(1)
		if err != nil {
			return err
		}
		defer s.Exit()
		do := func() error { return do(s, "k") }
		var errs [3]error
		alone, errs[0] = rate("sections", one, 1, 1, do)
		all, errs[1] = rate("sections", fmt.Sprint("DoAll of ", together), 1, together, func() error { return doAll(s, op) })
		ours, errs[2] = rate("sections", many, underWay, 1, do)
		return errors.Join(errs[:]...)
	})
	if err != nil {
		return err
	}
	theirs := map[string]float64{}
	raftOf := func(who string, add func([]byte) error) error {
		_, err := rate(who, one, 1, 1, func() error { return add(op) })
		if err == nil {
			theirs[who], err = rate(who, many, underWay, 1, func() error { return add(op) })
		}
		return err
	}
	const etcd, hashi = "etcd/raft", "hashicorp/raft"
	r, err := startRaft(n, delay, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(raftOf(etcd, r.add), r.close()); err != nil {
		return err
	}
	links, members, err := linked(n, delay)
	if err != nil {
		return err
	}
	h, err := startHashicorp(members, dir)
	if err == nil {
		err = raftOf(hashi, h.add)
	}
	if err := errors.Join(err, h.close(), links.Close()); err != nil {
		return err
	}
	const atLeast = 1e9
	if delay == 500*time.Microsecond && dir == "" {
		t.value(fmt.Sprintf("%s: DoAll of %d by Do", at, together), all/alone, "times", 20, atLeast)
	}
	for _, who := range []string{etcd, hashi} {
		t.value(fmt.Sprintf("%s: sections by %s, %s", at, who, many), ours/theirs[who], "times", 0.5, atLeast)
	}
	return nil
}

// between gives a cluster to f, whose members are durable where there is a directory.
func between(n int, delay time.Duration, dir string, f func(c *cluster) error) error {
	links, members, err := linked(n, delay)
	if err != nil {
		return err
	}
	for i := range members {
		members[i].Dir = under(dir, "sections", i)
	}
	c, err := startMembers(links, members)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.close())
}

// under is the directory of a member of such a system, and empty in memory.
func under(dir, system string, member int) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, fmt.Sprint(system, member+1))
}

func doAll(s *sections.Section, op []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ops := make([][]byte, together)
	for k := range ops {
		ops[k] = op
	}
	_, err := s.DoAll(ctx, ops...)
	return err
}

// count is how often op ends in a second, where so many users call it, each again and again.
func count(window time.Duration, users int, op func() error) (float64, error) {
	if err := op(); err != nil {
		return 0, err
	}
	var ended atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	errs := make([]error, users)
	for k := range users {
		all.Go(func() {
			for errs[k] == nil && time.Since(began) < window {
				if errs[k] = op(); errs[k] == nil {
					ended.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(ended.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}
