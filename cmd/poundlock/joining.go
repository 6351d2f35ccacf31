package main

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock/node"
)

// A joining process waits for the others, and takes part later: what is asked of it before is answered so, or done then.
type joining struct {
	f *peerFlags

	mu     sync.Mutex
	member prometheus.Collector // nil: it waits
	health func() error
	set    func(epoch uint64, table []node.Peer) error
	hungUp bool // while it waited
}

// joined has it take part from now on.
func (j *joining) joined(member prometheus.Collector, health func() error, set func(epoch uint64, table []node.Peer) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.member, j.health, j.set = member, health, set
	if j.hungUp {
		j.f.reload(j.f.readTable, set)
	}
}

// reload is what a SIGHUP asks for.
func (j *joining) reload() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hungUp = j.set == nil; j.hungUp {
		j.f.log.Info("the slot table is read again once this process takes part")
		return
	}
	j.f.reload(j.f.readTable, j.set)
}

// healthy says what /healthz does.
func (j *joining) healthy() error {
	j.mu.Lock()
	health := j.health
	j.mu.Unlock()
	if health == nil {
		return errors.New("it waits for the others")
	}
	return health()
}

// Describe implements prometheus.Collector. Nothing is said before there is something to collect.
func (j *joining) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (j *joining) Collect(to chan<- prometheus.Metric) {
	j.mu.Lock()
	member := j.member
	j.mu.Unlock()
	if member != nil {
		member.Collect(to)
	}
}
