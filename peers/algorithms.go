package peers

import (
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

// hosts are those of the algorithms, by name, and electors those of elections.
var hosts, electors = map[string]node.Host{}, map[string]node.Host{}

func init() {
	recovering(tokengme.Algorithm)
	recovering(tokengme.Several)
	recovering(tokengme.Bounded)
	recovering(ra2.Algorithm)
	recovering(suzukikasami.Algorithm)
	recovering(centralised.Algorithm)
	host(carvalhoroucairol.Algorithm)
	host(centralised.Algorithm)
	host(lamport.Algorithm)
	host(maekawa.Algorithm)
	host(ra1.Algorithm)
	host(ra2.Algorithm)
	host(raymond.Algorithm)
	host(ricartagrawala.Algorithm)
	host(suzukikasami.Algorithm)
	host(suzukikasami.RicartAgrawala)
	host(tokengme.Algorithm)
	host(tokengme.Bounded)
	host(tokengme.Several)
	host(tokenring.Resting)

	add(electors, bully.Algorithm)
	add(electors, ringelection.Algorithm)
}

// add adds an algorithm. Its message type is erased, because a host is compiled once for each type.
func add[M any](to map[string]node.Host, a protocol.Algorithm[M]) {
	h := node.HostOf(protocol.Erase(a))
	to[h.Info().Form()] = h
}

// host adds an algorithm for mutual exclusion.
func host[M any](a protocol.Algorithm[M]) { add(hosts, a) }

// recovering adds an algorithm that survives crashes of its members.
func recovering[M any](a protocol.Algorithm[M]) { host(membership.Wrap(protocol.Erase(a))) }
