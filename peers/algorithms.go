package peers

import (
	"sync"

	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/carvalhoroucairol"
	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/lamport"
	"github.com/poundlock/poundlock/algo/maekawa"
	"github.com/poundlock/poundlock/algo/ra1"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/raymond"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/algo/tokenring"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/membership"
)

// Default is the algorithm of a Config that names none.
const Default = "tokengme/" + membership.Variant

// DefaultElection is the algorithm of Elect where the Config names none.
const DefaultElection = "bully"

// A registry has the hosts of algorithms, by name.
type registry map[string]node.Host

// hosts are those of the algorithms for mutual exclusion. They are made where they are asked for: most processes with this
// package, such as those of the command poundlock, are no members.
var hosts = sync.OnceValue(func() registry {
	r := registry{}
	recovering(r, tokengme.Algorithm)
	recovering(r, tokengme.Several)
	recovering(r, tokengme.Bounded)
	recovering(r, ra2.Algorithm)
	recovering(r, suzukikasami.Algorithm)
	recovering(r, centralised.Algorithm)
	add(r, carvalhoroucairol.Algorithm)
	add(r, centralised.Algorithm)
	add(r, lamport.Algorithm)
	add(r, maekawa.Algorithm)
	add(r, ra1.Algorithm)
	add(r, ra2.Algorithm)
	add(r, raymond.Algorithm)
	add(r, ricartagrawala.Algorithm)
	add(r, suzukikasami.Algorithm)
	add(r, suzukikasami.RicartAgrawala)
	add(r, tokengme.Algorithm)
	add(r, tokengme.Bounded)
	add(r, tokengme.Several)
	add(r, tokenring.Resting)
	return r
})

// electors are those of elections.
var electors = sync.OnceValue(func() registry {
	r := registry{}
	add(r, bully.Algorithm)
	add(r, ringelection.Algorithm)
	return r
})

// add adds an algorithm. Its message type is erased, because a host is compiled once for each type.
func add[M any](r registry, a protocol.Algorithm[M]) {
	h := node.HostOf(protocol.Erase(a))
	r[h.Info().Form()] = h
}

// recovering adds an algorithm that survives crashes of its members.
func recovering[M any](r registry, a protocol.Algorithm[M]) {
	add(r, membership.Wrap(protocol.Erase(a)))
}
