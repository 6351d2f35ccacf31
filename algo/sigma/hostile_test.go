package sigma

import (
	"math/rand/v2"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// hostile are stories of what clients may not do to each other.
var hostile = []story{
	{"the code of a client that keeps is that client's only", func() {
		w := newWorld(Algorithm, 1, 4)
		c1, c2, c3 := w.client(1), w.client(2), w.client(3)
		code := keeper(c1)
		w.receive(c1, s1, Message{Time: 1, Group: share("x"), Token: code})
		want(w.server(s1).owner == entry{}, "s1 supports %v", w.server(s1).owner)
		w.receive(c1, s1, Message{Time: 1, Group: code})
		want(w.server(s1).supports(request{c1, 1}), "s1 supports %v", w.server(s1).owner)
		for _, m := range []Message{{Group: code}, {Group: share("x"), Token: code}, {Group: share("x"), Token: share("y"), Inc: code}} {
			m.Time = 2
			w.receive(c2, s1, m)
			want(w.server(s1).owned(c2) == nil && w.server(s1).queue.find(c2) < 0, "s1 knows c2 by %s", text(m))
		}
		w.receive(c3, s1, Message{Time: 3})
		w.receive(c3, s1, Message{Kind: Downgrade, Time: 3, Group: code})
		want(w.server(s1).owned(c3) == nil, "s1 supports c3")
		w.receive(c1, s1, Message{Kind: Downgrade, Time: 1, Group: share("r")})
		w.receive(w.client(4), s1, Message{Time: 1, Group: share("r")})
		want(w.server(s1).owned(w.client(4)) != nil, "the keeper cannot come down")
	}},
	{"an owner in a session that asks again for itself alone is told of as that", func() {
		w := newWorld(Algorithm, 1, 1)
		w.receive(w.client(1), s1, Message{Time: 1, Group: share("r")})
		w.receive(w.client(1), s1, Message{Time: 1, Serial: 1})
		want(w.server(s1).group() == 0 && w.owner[s1] == protocol.Act{Do: protocol.Owner, To: w.client(1), Arg: 1}, "told is %v", w.owner[s1])
	}},
	{"whatever clients send, a server supports whom it says, and its state is sound", func() {
		groups := []uint64{0, 0, share("r"), share("s"), share("a long name"), most - 1, 1, keeper(4), keeper(5), keeper(6)}
		for seed := range uint64(300) {
			random := rand.New(rand.NewPCG(seed, 3))
			w := newWorld(Algorithm, 1, 4, option("fence", random.Int64N(2)), option("promise", random.Int64N(2)))
			w.unsound = true
			pick := func() uint64 { return groups[random.IntN(len(groups))] }
			for range 40 {
				c := w.client(1 + random.IntN(4))
				_, e := w.server(s1).stored(c)
				m := Message{Kind: []uint8{Request, Request, Request, Yield, Release, SetToken, Downgrade, Inquiry}[random.IntN(8)]}
				if m.Time = 1 + random.Uint64N(40); random.IntN(4) > 0 {
					m.Time = max(1, e.time)
				}
				switch m.Serial = e.serial + random.Uint64N(3); m.Kind {
				case Request:
					m.Stage, m.Group, m.Token, m.Inc, m.After = Stage(random.IntN(3)), pick(), pick(), pick(), random.Uint64N(9)
				case Yield:
					m.After = random.Uint64N(9)
				case Release:
					m.After, m.Token = random.Uint64N(2), random.Uint64N(50)
				case SetToken:
					m.Token = random.Uint64N(50)
				case Downgrade:
					m.Group = pick()
				}
				read, rest, err := Algorithm.Read(Algorithm.Append(nil, m))
				if err != nil || len(rest) > 0 || !fits(read, 1, false) {
					continue
				}
				w.flights = nil
				w.receive(c, s1, read)
				for _, f := range w.flights {
					_, _, err := Algorithm.Read(Algorithm.Append(nil, f.msg))
					want(err == nil, "after %s it sends %s, which nobody can read", text(m), text(f.msg))
				}
				again := newServer(s1, w.config)
				rest, err = protocol.LoadState(protocol.AppendState(nil, w.server(s1)), again)
				want(err == nil && len(rest) == 0, "after %s its state is none: %v", text(m), err)
			}
		}
	}},
}

func TestHostileClients(t *testing.T) { test(t, hostile) }
