package peterson

import "github.com/poundlock/poundlock/protocol"

var labels = []string{
	rest: "at rest", wants: "flag[i] := true", gives: "turn := i", looks: "reads flag[j]", looksOn: "reads turn",
	inside: "inside", releases: "flag[i] := false",
}

// Show is where the process is in its program.
func (p *Process) Show() string { return labels[p.at] }

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { protocol.Upto(c, &p.at, releases) }
