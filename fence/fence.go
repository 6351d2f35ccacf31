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
//
// # Holders that share
//
// Holders of one group are inside together, in any order of their tokens: tokens are ordered
// between groups, not within one. [Checker.CheckGroup] keeps, beside the largest token, the group that
// was let in last and its least token. In SQL, with "" for a holder that shares with nobody:
//
//	UPDATE account SET balance = $1, token = GREATEST(token, $2), grp = $3,
//	  least = CASE WHEN grp = $3 AND $3 <> '' THEN least WHEN grp = '' THEN token ELSE token + 1 END
//	WHERE id = $4
//	  AND $2 >= CASE WHEN grp = $3 AND $3 <> '' THEN least WHEN grp = '' THEN token ELSE token + 1 END
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
// A check and the write that it admits must not be separated by another check of
// the same name: hold the resource's own mutex around both.
//
// It keeps a few numbers for each name. A resource that many locks come and go for,
// such as one lock a job, calls Forget once nobody will use a name again.
type Checker struct {
	mu    sync.Mutex
	names map[string]accepted
}

// accepted is what a checker keeps of the tokens of one name.
type accepted struct {
	largest uint64
	group   string // of the last one, "": it shared with nobody
	least   uint64 // that others of that group may have
}

// Check accepts a token that is at least as large as every token accepted for
// name before: an equal one is the same holder's again. Otherwise it returns a
// *StaleError and changes nothing.
func (c *Checker) Check(name string, token uint64) error { return c.CheckGroup(name, "", token) }

// CheckGroup accepts a token that is larger than every token accepted for name before in another
// group. The order within a group does not matter. "" is no group: its holder is alone, as with Check. Such
// a holder may go on in a group later, with the same token.
//
// Example: the readers 7 and 5 are accepted one after the other, then the writer 9, and then reader 7 no more.
func (c *Checker) CheckGroup(name, group string, token uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.names[name]
	if group == "" || group != s.group {
		if s.least = s.largest; s.group != "" {
			s.least++
		}
	}
	if token < s.least {
		return &StaleError{Name: name, Token: token, Largest: s.largest}
	}
	if c.names == nil {
		c.names = map[string]accepted{}
	}
	c.names[name] = accepted{max(s.largest, token), group, s.least}
	return nil
}

// Largest is the largest token accepted for name, 0 before the first. Store it
// beside the data to give it to Check after a restart. Holders that share and have a
// smaller token are refused from then on.
func (c *Checker) Largest(name string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[name].largest
}

// Forget drops name. A stale holder of it would be accepted afterwards: wait
// until every holder has ended for certain, or until what the lock protected is
// gone.
func (c *Checker) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.names, name)
}
