package node

import (
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
	Limit         int      // 0: no limit
	names         []string // the locks that a shard is asked about
}

func (p *Page) wants(name string) bool { return name > p.After && strings.HasPrefix(name, p.Prefix) }

// Locks returns the instances that are not idle, by name.
func (n *Node) Locks() []Lock { return n.LocksPage(Page{}) }

// LocksPage returns one page of them. Every shard looks at all its names for it;
// only the processes of the locks on the page are asked.
func (n *Node) LocksPage(p Page) []Lock {
	all := n.ask(event{op: opNames, page: &p})
	slices.SortFunc(all, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	if p.Limit > 0 && len(all) > p.Limit {
		all = all[:p.Limit]
	}
	chosen := map[*shard]*Page{}
	for _, l := range all {
		s := n.shard(l.Name)
		if chosen[s] == nil {
			chosen[s] = &Page{}
		}
		chosen[s].names = append(chosen[s].names, l.Name)
	}
	all = all[:0]
	for s, page := range chosen {
		all = append(all, s.ask(event{op: opLocks, page: page})...)
	}
	slices.SortFunc(all, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lock returns the instance of one name, alone, or nothing if it is idle.
func (n *Node) Lock(name string) []Lock {
	return n.shard(name).ask(event{op: opLocks, page: &Page{names: []string{name}}})
}

// ask posts an event and waits for the answer, which is empty when the shard is
// closed.
func (s *shard) ask(e event) []Lock {
	reply := make(chan []Lock, 1)
	e.locks = reply
	if !s.inbox.post(e) {
		return nil
	}
	return <-reply
}

// locks is what is known about the locks of a page that are not idle.
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

// listed are those of a page, without more about their locks. Twice as many as it
// holds are kept at a time, so that it costs little more to find a page among very
// many names than to look at them.
func (s *shard) listed(p *Page) []Lock {
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
	page := make([]Lock, len(names))
	for i, name := range names {
		page[i].Name = name
	}
	return page
}
