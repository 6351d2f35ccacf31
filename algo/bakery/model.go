package bakery

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// maxTicket keeps the checker finite where entries are unlimited: tickets grow as long as
// the bakery is never empty.
const maxTicket = 12

var model = protocol.Model[struct{}]{
	Bounds: []protocol.Bound[struct{}]{{
		Name: "num", Max: maxTicket,
		Of: func(p protocol.Process[struct{}]) uint64 { return p.(*Process).num },
	}},
	Invariants: []protocol.Invariant[struct{}]{{Name: "smallest", Err: smallest}},
}

// smallest: nobody in the bakery has a smaller ticket than who is inside. Lamport 1974,
// assertion 2.
func smallest(v *protocol.View[struct{}]) error {
	for i, q := range v.Procs {
		if q.(*Process).at != inside {
			continue
		}
		for j, other := range v.Procs {
			if o := other.(*Process); i != j && (o.at == waits || o.at == inside) && before(o, q.(*Process)) {
				return fmt.Errorf("#%d waits with a smaller ticket than that of #%d, who is inside", j, i)
			}
		}
	}
	return nil
}

// before is the order of tickets, ties broken by id.
func before(p, q *Process) bool { return p.num < q.num || p.num == q.num && p.id < q.id }
