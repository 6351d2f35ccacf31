package sections

import (
	"context"

	"github.com/poundlock/poundlock/internal/journal"
	"github.com/poundlock/poundlock/node"
)

// Change has the configuration of the node of a member be changed.
func (c *Config) Change(f func(*node.Config)) { c.change = f }

// On has a member be durable, with its journal on a disk.
func (c *Config) On(disk journal.Disk) { c.disk = disk }

// Node is the node of a member.
func (m *Member) Node() *node.Node { return m.n }

// Start starts a member, and does not wait until it takes part.
var Start = start

// Part is an operation that loads a part of what was saved, of which the title is left out.
func Part(first, last bool, part []byte) []byte {
	op := []byte{load, 0}
	if first {
		op[1] |= firstPart
	}
	if last {
		op[1] |= lastPart
	}
	return append(op, part...)
}

// Execute is Do of an operation in any form.
func (s *Section) Execute(ctx context.Context, op []byte) ([][]byte, error) {
	return s.execute(ctx, op)
}

// UnderWay reports whether an operation has been issued, and has no verdict.
func (s *Section) UnderWay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pipeline.open != nil
}

// Knows reports whether a member has heard of an object.
func (m *Member) Knows(object string) bool {
	_, err := m.object(object)
	return err == nil
}

// Each is an operation that is several in their own forms, and One is one of these. Begin is that of an object that is made later.
func Each(ops ...[]byte) []byte { return appendList([]byte{each}, ops) }
func One(op []byte) []byte      { return encodeOne(op) }
func Begin(name string) []byte  { return append([]byte{begin}, name...) }
