package node

import "github.com/poundlock/poundlock/protocol"

// EndLapsed ends the session with a peer as the watcher does when it has seen the
// lease lapse.
func (n *Node) EndLapsed(peer protocol.ID) { n.end(n.lookup(peer), errLapsed, nil) }
