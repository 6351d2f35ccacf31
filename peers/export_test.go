package peers

import "github.com/poundlock/poundlock/node"

// Change has the configuration of the node of a member be changed.
func (c *Config) Change(f func(*node.Config)) { c.change = f }
