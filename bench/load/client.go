package load

import (
	"context"
	"time"
)

// A Client is one client of a lock service. Several users call it at once, each
// with a name that no other user of this client has.
type Client interface {
	// Lock waits for the lock called name.
	Lock(ctx context.Context, name string) (Held, error)
	// Traffic is how many bytes the client has sent and received; 0 if unknown.
	Traffic() int64
	Close() error
}

// A Sharer is a Client of locks that can be shared. Users that share need one.
type Sharer interface {
	// RLock waits for the lock called name, and shares it with others that do.
	RLock(ctx context.Context, name string) (Held, error)
}

// Held is a lock that a user has.
type Held struct {
	Token  uint64 // for fencing; 0 if the service has none
	Group  string // that the lock is shared with, "" for none
	Unlock func() error
}

// A User locks and unlocks one name at one client of one process.
type User struct {
	Process int
	Client  int // of the process
	Name    string
	Shared  int           // percent of its locks that it shares with others, drawn each time
	Hold    time.Duration // that it stays inside; 0: it leaves at once
}

// A Record is one critical section, in Now's instants.
type Record struct {
	Called  int64 // Lock was called
	Entered int64 // Lock returned
	Left    int64 // Unlock was called
	Back    int64 // Unlock returned
	Token   uint64
	Group   string // that the user shared the lock with, "" for none
}
