//go:build unix && !linux

package supervise

import "time"

// now is an instant that every process of this machine agrees on. Only the wall
// clock is known to be shared between processes and to advance in a suspension.
func now() time.Duration {
	return time.Duration(time.Now().UnixNano())
}
