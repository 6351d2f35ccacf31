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
	Held   []time.Duration // how long this member has supported each of Standing.Holders, 0 where unknown
	Err    error           // why Standing is unknown: the algorithm panicked
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

// LocksPage returns one page of them. Every loop looks at all its names for it;
// only the processes of the locks on the page are asked.
func (n *Node) LocksPage(p Page) []Lock {
	names := slices.Concat(ask(n.loops, func(l *loop) []string { return l.listed(p) })...)
	slices.Sort(names)
	if p.Limit > 0 {
		names = names[:min(len(names), p.Limit)]
	}
	chosen := map[*loop][]string{}
	for _, name := range names {
		l := n.loop(name)
		chosen[l] = append(chosen[l], name)
	}
	asked := slices.Collect(maps.Keys(chosen))
	all := slices.Concat(ask(asked, func(l *loop) []Lock { return l.locks(chosen[l]) })...)
	slices.SortFunc(all, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lock returns the instance of one name, alone, or nothing if it is idle.
func (n *Node) Lock(name string) []Lock {
	return slices.Concat(ask([]*loop{n.loop(name)}, func(l *loop) []Lock { return l.locks([]string{name}) })...)
}

// locks is what is known about those of some locks that are not idle.
func (l *loop) locks(names []string) []Lock {
	all := make([]Lock, 0, len(names))
	for _, name := range names {
		i := l.instances.Get(name)
		if i == nil {
			continue
		}
		standing, err := i.process.Standing()
		if err != nil {
			l.n.c.Log.Error("no standing", "lock", name, "error", err)
		}
		lock := Lock{Name: name, Kind: i.kind, Standing: standing, Labels: l.labels.of(i, standing), Err: err}
		for _, h := range standing.Holders {
			held := time.Duration(0)
			if o, ok := l.audit.owner(i, h.User); ok {
				held = time.Since(l.n.started) - o.since
			}
			lock.Held = append(lock.Held, held)
		}
		all = append(all, lock)
	}
	return all
}

// listed are the names of a page. Twice as many as it holds are kept at a time, so that it costs little more to find a
// page among very many names than to look at them.
func (l *loop) listed(p Page) []string {
	limit := p.Limit
	if limit == 0 {
		limit = l.instances.Len()
	}
	var names []string
	last := "" // no name after it is on the page; "": none is known
	first := func() {
		slices.Sort(names)
		names = names[:min(len(names), limit)]
	}
	for name := range l.instances.All() {
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
