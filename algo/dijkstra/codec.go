package dijkstra

import "github.com/poundlock/poundlock/protocol"

var labels = []string{
	rest: "at rest", begins: "Li0: b[i] := false", turn: "Li1: reads k", backs: "Li2: c[i] := true",
	asks: "Li3: reads k", atRest: "Li3: reads b[k]", takes: "Li3: k := i", claims: "Li4: c[i] := false",
	looks: "Li4: reads c[j]", inside: "inside", leaves: "c[i] := true", releases: "b[i] := true",
}

// Show is where the process is in the program of the paper.
func (p *Process) Show() string { return labels[p.at] }

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	protocol.Upto(c, &p.at, releases)
}
