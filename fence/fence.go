// Package fence is what a resource embeds to be safe from holders that lost
// their lock without noticing.
//
// No lease excludes a pause between a client's last look at its lock and the
// write that it protects: a process may sleep at that point for an hour. So the
// write carries the fencing token of its grant, and the resource refuses a token
// smaller than one that it has seen for the same lock.
//
// # Where to keep the largest token
//
// A [Checker] keeps it in memory, which is right for a resource whose data lives
// in the same memory. A resource whose data survives a restart must keep the
// token beside the data and change both in one atomic step, or a restart lets a
// stale holder in. In SQL, for a row that the lock protects:
//
//	UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2
//
// and no row changed means stale. In an object store: read the object with its
// version, compare the token in its metadata, and write with If-Match on that
// version.
package fence

import (
	"errors"
	"fmt"
	"sync"
)

// ErrStale says that a newer holder has used the resource. Whoever presents a
// stale token has lost its lock.
var ErrStale = errors.New("fence: stale token")

// A StaleError is the ErrStale of one call.
type StaleError struct {
	Name    string // of the lock
	Token   uint64 // presented
	Largest uint64 // accepted before
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: lock %q: stale token %d: %d was here", e.Name, e.Token, e.Largest)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// A Checker remembers the largest token of each lock name. Its zero value is
// ready, and its methods may be called at once from several goroutines.
//
// Check and the write that it admits must not be separated by another Check of
// the same name: hold the resource's own mutex around both.
//
// It keeps one number for each name. A resource that many locks come and go for,
// such as one lock a job, calls Forget once nobody will use a name again.
type Checker struct {
	mu      sync.Mutex
	largest map[string]uint64
}

// Check accepts a token that is at least as large as every token accepted for
// name before: an equal one is the same holder's again. Otherwise it returns a
// *StaleError and changes nothing.
func (c *Checker) Check(name string, token uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if largest := c.largest[name]; token < largest {
		return &StaleError{Name: name, Token: token, Largest: largest}
	}
	if c.largest == nil {
		c.largest = map[string]uint64{}
	}
	c.largest[name] = token
	return nil
}

// Largest is the largest token accepted for name, 0 before the first. Store it
// beside the data to give it to Check after a restart.
func (c *Checker) Largest(name string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.largest[name]
}

// Forget drops name. A stale holder of it would be accepted afterwards: wait
// until every holder has ended for certain, or until what the lock protected is
// gone.
func (c *Checker) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.largest, name)
}
