package slots

import "github.com/poundlock/poundlock/node"

// Host makes the processes of exclusive locks.
func Host() node.Host { return nil }
