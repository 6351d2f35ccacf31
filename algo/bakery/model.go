package bakery

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// maxTicket keeps the checker finite where entries are unlimited: tickets grow as long as
// the bakery is never empty.
const maxTicket = 12

var model = protocol.Model[struct{}]{
	Bounds:     []protocol.Bound{protocol.NewBound("num", maxTicket, func(p *Process) uint64 { return p.num })},
	Invariants: []protocol.Invariant{{Name: "smallest", Err: smallest}},
}

// smallest: nobody in the bakery has a smaller ticket than who is inside. Lamport 1974,
// assertion 2.
func smallest(v *protocol.View) error {
	for i, p := range protocol.Procs[*Process](v) {
		if p.at != inside {
			continue
		}
		for j, o := range protocol.Procs[*Process](v) {
			if i != j && (o.at == waits || o.at == inside) && before(o, p) {
				return fmt.Errorf("#%d waits with a smaller ticket than that of #%d, who is inside", j, i)
			}
		}
	}
	return nil
}

// before is the order of tickets, ties broken by id.
func before(p, q *Process) bool { return p.num < q.num || p.num == q.num && p.id < q.id }
