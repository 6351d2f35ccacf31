package ra1

import (
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
)

// Algorithm is Ricart and Agrawala's algorithm for groups. Its one difference is in their
// onRequest: a request for the same group is answered at once.
var Algorithm = ricartagrawala.ForGroups(protocol.Info{
	Name:   "ra1",
	Title:  "groups: permission from all who want another group",
	Source: "Joung: The Congenial Talking Philosophers Problem in Computer Networks, Distributed Computing 2002",
})
