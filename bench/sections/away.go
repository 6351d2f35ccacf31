package main

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/poundlock/poundlock/sections"
)

// heap is how much memory is in use, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / (1 << 20)
}

// three starts three members, and lets a user of the first one enter.
func three() (*cluster, *sections.Section, error) {
	c, err := startCluster(3, 0, time.Second)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.enter(0)
	if err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return c, s, nil
}

// away measures what a member costs that is cut off while others work, and how it comes back.
func away(args []string) (*table, error) {
	f := flag.NewFlagSet("away", flag.ExitOnError)
	operations := f.Int("operations", 1_000_000, "while it is away")
	f.Parse(args)
	c, s, err := three()
	if err != nil {
		return nil, err
	}
	defer c.close()
	const warm = 20_000
	for range warm {
		if err := do(s, "k"); err != nil {
			return nil, err
		}
	}
	before := heap()
	c.isolate(2)
	most, unacked := before, 0
	var longest time.Duration
	began := time.Now()
	for k := range *operations {
		took, err := timed(s, fmt.Sprint("k", k%100))
		if err != nil {
			return nil, err
		}
		longest = max(longest, took)
		if k%(*operations/100+1) == 0 {
			most = max(most, heap())
			unacked = max(unacked, c.opened[0].Stats().Node.Unacked)
		}
	}
	took := time.Since(began)
	after := heap()
	c.net.Heal(nil, nil)
	healed := time.Now()
	want := uint64(warm + *operations)
	if err := await("the member has caught up", func() bool { return c.stores[2].Applied() == want }); err != nil {
		return nil, err
	}
	t := newTable("3 members in one process, one of them cut off for %d operations", *operations)
	t.value("operations a second while it is away", float64(*operations)/took.Seconds(), "", 0, 0)
	t.value("longest operation", longest.Seconds()*1e3, "ms", 0, 0)
	t.value("memory of all members, before", before, "MiB", 0, 0)
	t.value("  at most, while it is away", most, "MiB", 0, 0)
	t.value("  after, with the member away still", after, "MiB", 0, 0)
	t.value("messages that wait for it, at most", float64(unacked)/(1<<20), "MiB", 0, 4.1)
	t.value("from the end of the cut to an equal copy", float64(time.Since(healed).Milliseconds()), "ms", 0, 0)
	t.Rows = append(t.Rows, row{
		What: "copies that it installed", Value: float64(c.stores[2].installed), Least: 1, Most: 3, Times: 1,
	})
	return t, nil
}

// snapshot measures what others feel while a new life gets a large object.
func snapshot(args []string) (*table, error) {
	f := flag.NewFlagSet("snapshot", flag.ExitOnError)
	size := f.Int("mib", 16, "of the object, at most 30")
	f.Parse(args)
	c, s, err := three()
	if err != nil {
		return nil, err
	}
	defer c.close()
	padding := strings.Repeat("x", 64<<10)
	for k := range *size * 16 {
		if err := do(s, fmt.Sprint(padding, k)); err != nil {
			return nil, err
		}
	}
	works := func(until func() bool) (list []time.Duration, err error) {
		for !until() {
			took, err := timed(s, "k")
			if err != nil {
				return nil, err
			}
			list = append(list, took)
		}
		return list, nil
	}
	end := time.Now().Add(time.Second)
	quiet, err := works(func() bool { return time.Now().After(end) })
	if err != nil {
		return nil, err
	}
	c.opened[2].Close()
	c.members[2].Joins = true
	began := time.Now()
	opened := make(chan error, 1)
	go func() { opened <- c.open(2) }()
	// It takes part when it has what everybody has: the section goes on meanwhile.
	over := false
	busy, broken := works(func() bool {
		select {
		case err = <-opened:
			over = true
		default:
		}
		return over
	})
	if !over {
		err = <-opened
	}
	if err := errors.Join(err, broken); err != nil {
		return nil, err
	}
	took := time.Since(began)
	t := newTable("3 members in one process, an object of %d MiB, and a new life that gets it", *size)
	t.times("operation before", quiet, time.Millisecond, "ms", 0, 0)
	t.times("operation meanwhile", busy, time.Millisecond, "ms", 0, 0)
	t.value("longest operation before", quiet[len(quiet)-1].Seconds()*1e3, "ms", 0, 0)
	t.value("longest operation meanwhile", busy[len(busy)-1].Seconds()*1e3, "ms", 0, 0)
	t.value("to make a snapshot, at most", max(c.stores[0].took, c.stores[1].took).Seconds()*1e3, "ms", 0, 0)
	t.value("until the new life takes part", took.Seconds()*1e3, "ms", 0, 0)
	return t, nil
}
