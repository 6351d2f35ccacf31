package protocol

import (
	"fmt"
	"iter"
)

// A Model is what an algorithm says of itself to the model checker: the properties
// of its own, and claims that keep its states few. Every field is optional. A claim
// is tested by algotest, and again by the checker on steps that it takes.
type Model[M any] struct {
	// Idempotent says that receiving m twice is like receiving it once. The
	// checker then keeps one copy of equal messages in flight, and lets a
	// delivery either consume it or leave it: an over-approximation that keeps
	// periodic senders finite.
	Idempotent func(m M) bool
	// Stale says that a message on its way can do nothing any more: whenever it
	// arrives from now on, its receiver stays as it is and sends at most what is stale
	// too. That holds for later lives of both as well: a message stays stale. from and to are the processes at its ends, nil where absent. The checker
	// forgets stale messages at once and, in return, lets an idempotent one stay until
	// it is stale.
	Stale func(from, to Process[M], ch Channel, m M) bool
	// Moot says that m, on its way from a process to another one, can do nothing any more: whenever
	// it arrives from now on, to stays as it is and does nothing. The checker forgets it. Only a
	// later life of to might take notice of it, which never gets it.
	Moot func(to Process[M], from ID, m M) bool
	// Lasts says that m, once sent, is sent again for as long as it may change more than
	// to receive it once did: its receiver asks for it again and again, by messages that
	// Option.InCheck turns off. For properties of infinite runs, where such an option is
	// not given and channels are not FIFO, the checker therefore lets m arrive any number
	// of times, and for ever. Messages that last are idempotent.
	Lasts func(m M) bool
	// MapState and MapMsg replace each value v of a counter by f(counter, v), in
	// a state and in a message on a channel. They claim that Step commutes with
	// adding a constant to all values of one counter, wherever they are, and let
	// the checker move the smallest one down to Counter.Least. Invariants, Unsettled
	// and Stale see distances only, too. A value that means "none" is not passed to f.
	MapState func(p Process[M], f func(Counter, uint64) uint64)
	MapMsg   func(ch Channel, m *M, f func(Counter, uint64) uint64)
	// Confluent claims that p may as well receive m, which is on its way to it, at
	// once. In no run does it matter what else happens to p before it receives m: in
	// the end p is in the same state, and has sent the same, event by event, as if m had
	// come first. To receive m sends nothing, stops no timer, exceeds no bound and at
	// most lets the user in. Losses of memory and Cancel do not count as what happens to
	// p. again says whether its user may still try, so that a Try counts.
	Confluent func(p Process[M], from ID, m M, again bool) bool
	// Interchangeable claims that in a configuration the ids of members break no ties:
	// New and Step commute with any permutation of these ids. Permute turns a state of
	// p into that of the process that p is when each member j is called f(j); other ids
	// f leaves as they are. Messages hold no ids of members.
	Interchangeable func(c Config) bool
	Permute         func(p Process[M], f func(ID) ID)
	// Bounds are counters that would make the state space infinite: the checker
	// does not go beyond them, and says so.
	Bounds []Bound
	// Invariants are the algorithm's own properties, checked in every state.
	Invariants []Invariant
}

// A Counter names numbers that matter only relative to each other, such as the
// logical clocks of all processes (the zero ID and Time), or what one member
// counts for one request. The values of different counters are never compared.
type Counter struct {
	Member, User ID
	Time         uint64
	Least        uint64 // where the smallest value is moved to
}

// A Bound keeps the checker finite: states in which Of exceeds Max for some
// process are not explored.
type Bound struct {
	Name string
	Max  uint64
	Of   func(p Stateful) uint64
}

// NewBound is a bound on what of says of each process that is a T, or wraps one.
func NewBound[T any](name string, most uint64, of func(p T) uint64) Bound {
	return Bound{name, most, func(p Stateful) uint64 {
		if t, ok := As[T](p); ok {
			return of(t)
		}
		return 0
	}}
}

// An Invariant is a property of one algorithm. Err returns what is wrong in a
// state, or nil, with processes written as in Algorithm.Text.
type Invariant struct {
	Name string
	Err  func(v *View) error
	// Stable claims that to receive a message which is confluent mends nothing: where
	// Err is not nil before, it is not nil after. See Model.Confluent.
	Stable bool
}

// OneToken is the invariant that there is one token: a process has it, or a message carries it.
func OneToken[P, M any](name string, has func(P) bool, carries func(M) bool) Invariant {
	return Invariant{Name: name, Err: func(v *View) error {
		tokens := 0
		for _, p := range v.Procs {
			if p, ok := As[P](p); ok && has(p) {
				tokens++
			}
		}
		v.InFlight(func(_ Channel, m any) bool {
			if m, ok := As[M](m); ok && carries(m) {
				tokens++
			}
			return true
		})
		if tokens != 1 {
			return fmt.Errorf("%s: there are %d tokens", name, tokens)
		}
		return nil
	}}
}

// A View is one global state.
type View struct {
	Config Config
	Procs  []Stateful // by id; nil where crashed or never up. As gives typed access, and so does Procs
	Users  []Section  // by id
	// Registers are the values of the shared memory, by number.
	Registers []uint64
	// Lost[i] says that member i lost its memory while some live user that is
	// not in its remainder section was already trying; such a member is faulty
	// in that user's epoch.
	Lost [][]bool // Lost[user][member]
	// InFlight yields each message on its way, as often as it may arrive. See InFlight.
	InFlight iter.Seq2[Channel, any]
}

// States are processes as a View has them.
func States[M any](procs []Process[M]) []Stateful {
	list := make([]Stateful, len(procs))
	for i, p := range procs {
		list[i] = p
	}
	return list
}

// Procs yields the processes of v that are a T, or wrap one, in the order of their ids.
func Procs[T any](v *View) iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		for id, p := range v.Procs {
			if t, ok := As[T](p); ok && !yield(ID(id), t) {
				return
			}
		}
	}
}

// InFlight yields the messages of v that are an M, or wrap one. A loop over v.InFlight here would
// allocate more, in each state that the checker looks at.
func InFlight[M any](v *View) iter.Seq2[Channel, M] {
	return func(yield func(Channel, M) bool) {
		v.InFlight(func(ch Channel, m any) bool {
			own, ok := As[M](m)
			return !ok || yield(ch, own)
		})
	}
}

// A Channel is an ordered pair of processes.
type Channel struct{ From, To ID }
