package sim_test

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/workload"
)

// A textbook is Ricart and Agrawala's algorithm in a simulator as one writes it
// from a lecture: events are pointers in a container/heap, messages interfaces,
// processes structs with methods. It makes the same runs as package sim, event by
// event, and keeps less account of them.
type textbook struct {
	now    int64
	seq    uint64
	events events
	peers  []*peer
	random *rand.Rand
	delay  sim.Dist
	hold   time.Duration

	entries, requests, replies int
	handled                    int64
	inside                     *peer
	waited                     int64 // ns, of all entries
}

// An event is a message for a peer, from another one or from its user.
type event struct {
	at   int64
	seq  uint64
	from int
	to   *peer
	msg  any
}

type events []*event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].seq < e[j].seq
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(*event)) }

func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

// What a peer hears.
type (
	try     struct{}
	exit    struct{}
	request struct{ time int }
	reply   struct{ time int }
)

// A peer is one process, and its user, who does not think.
type peer struct {
	net      *textbook
	id       int
	left     int // entries to make
	tried    int64
	trying   bool
	clock    int
	time     int // of the request
	missing  int // replies
	deferred []bool
}

func newTextbook(n, entries int, delay sim.Dist) *textbook {
	t := &textbook{delay: delay, hold: time.Millisecond, random: rand.New(rand.NewPCG(1, 2))}
	for id := range n {
		p := &peer{net: t, id: id, left: entries, deferred: make([]bool, n)}
		t.peers = append(t.peers, p)
		t.after(0, id, p, try{})
	}
	return t
}

func (t *textbook) run() {
	for len(t.events) > 0 {
		e := heap.Pop(&t.events).(*event)
		t.now = e.at
		t.handled++
		e.to.receive(e.from, e.msg)
	}
}

func (t *textbook) after(d int64, from int, to *peer, msg any) {
	t.seq++
	heap.Push(&t.events, &event{t.now + d, t.seq, from, to, msg})
}

func (t *textbook) send(from int, to *peer, msg any) {
	d := int64(t.delay.A)
	if t.delay.Shape == workload.ExponentialShape {
		d = int64(t.random.ExpFloat64() * float64(t.delay.A))
	}
	t.after(d, from, to, msg)
}

func (p *peer) receive(from int, msg any) {
	switch m := msg.(type) {
	case try:
		p.try()
	case exit:
		p.exit()
	case request:
		p.clock = max(p.clock, m.time)
		first := p.time < m.time || p.time == m.time && p.id < from
		if p.net.inside == p || p.trying && first {
			p.deferred[from] = true
			return
		}
		p.reply(from)
	case reply:
		p.clock = max(p.clock, m.time)
		p.missing--
		p.enterIfPermitted()
	}
}

func (p *peer) try() {
	p.clock++
	p.trying, p.tried, p.time, p.missing = true, p.net.now, p.clock, len(p.net.peers)-1
	var m any = request{p.time}
	for _, q := range p.net.peers {
		if q != p {
			p.net.requests++
			p.net.send(p.id, q, m)
		}
	}
	p.enterIfPermitted()
}

func (p *peer) enterIfPermitted() {
	if p.missing > 0 {
		return
	}
	if p.net.inside != nil {
		panic("textbook: two are inside")
	}
	p.net.inside, p.trying = p, false
	p.net.entries++
	p.net.waited += p.net.now - p.tried
	p.left--
	p.net.after(int64(p.net.hold), p.id, p, exit{})
}

func (p *peer) exit() {
	p.net.inside = nil
	if p.left > 0 {
		p.net.after(0, p.id, p, try{})
	}
	for j, yes := range p.deferred {
		if yes {
			p.deferred[j] = false
			p.reply(j)
		}
	}
}

func (p *peer) reply(to int) {
	p.net.replies++
	p.net.send(p.id, p.net.peers[to], reply{p.clock})
}
