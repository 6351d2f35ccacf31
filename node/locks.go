package node

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Lock is what a node knows about one lock.
type Lock struct {
	Name     string
	Kind     Kind
	Standing protocol.Standing
	// Labels are those of the users of clients that have one, as FullLabel takes it.
	Labels map[protocol.ID]string
	Held   time.Duration // how long this member has supported its holder; 0 without one
	Err    error         // why Standing is unknown: the algorithm panicked
}

// A Page says which locks are asked for: those whose names begin with Prefix and
// come after After, the first Limit of them. The zero Page asks for all.
type Page struct {
	Prefix, After string
	Limit         int // 0: no limit
}

func (p Page) wants(name string) bool { return name > p.After && strings.HasPrefix(name, p.Prefix) }

// Locks returns the instances that are not idle, by name.
func (n *Node) Locks() []Lock { return n.LocksPage(Page{}) }

// LocksPage returns one page of them. Every shard looks at all its names for it;
// only the processes of the locks on the page are asked.
func (n *Node) LocksPage(p Page) []Lock {
	names := slices.Concat(ask(n.shards, func(s *shard) []string { return s.listed(p) })...)
	slices.Sort(names)
	if p.Limit > 0 {
		names = names[:min(len(names), p.Limit)]
	}
	chosen := map[*shard][]string{}
	for _, name := range names {
		s := n.shard(name)
		chosen[s] = append(chosen[s], name)
	}
	asked := slices.Collect(maps.Keys(chosen))
	all := slices.Concat(ask(asked, func(s *shard) []Lock { return s.locks(chosen[s]) })...)
	slices.SortFunc(all, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lock returns the instance of one name, alone, or nothing if it is idle.
func (n *Node) Lock(name string) []Lock {
	return slices.Concat(ask([]*shard{n.shard(name)}, func(s *shard) []Lock { return s.locks([]string{name}) })...)
}

// locks is what is known about those of some locks that are not idle.
func (s *shard) locks(names []string) []Lock {
	all := make([]Lock, 0, len(names))
	for _, name := range names {
		i := s.instances.Get(name)
		if i == nil {
			continue
		}
		standing, err := i.process.Standing()
		if err != nil {
			s.n.c.Log.Error("no standing", "lock", name, "error", err)
		}
		l := Lock{Name: name, Kind: i.kind, Standing: standing, Labels: s.labels.of(i, standing), Err: err}
		if i.owner.request != 0 {
			l.Held = time.Since(s.n.started) - i.owner.since
		}
		all = append(all, l)
	}
	return all
}

// listed are the names of a page. Twice as many as it holds are kept at a time, so that it costs little more to find a
// page among very many names than to look at them.
func (s *shard) listed(p Page) []string {
	limit := p.Limit
	if limit == 0 {
		limit = s.instances.Len()
	}
	var names []string
	last := "" // no name after it is on the page; "": none is known
	first := func() {
		slices.Sort(names)
		names = names[:min(len(names), limit)]
	}
	for name := range s.instances.All() {
		if !p.wants(name) || last != "" && name > last {
			continue
		}
		if names = append(names, name); len(names) >= 2*limit {
			first()
			last = names[len(names)-1]
		}
	}
	first()
	return names
}
