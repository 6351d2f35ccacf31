package load

import "context"

// A Client is one client of a lock service. Several users call it at once, each
// with a name that no other user of this client has.
type Client interface {
	// Lock waits for the lock called name.
	Lock(ctx context.Context, name string) (Held, error)
	// Traffic is how many bytes the client has sent and received; 0 if unknown.
	Traffic() int64
	Close() error
}

// Held is a lock that a user has.
type Held struct {
	Token  uint64 // for fencing; 0 if the service has none
	Unlock func() error
}

// A User locks and unlocks one name at one client of one process.
type User struct {
	Process int
	Client  int // of the process
	Name    string
}

// A Record is one critical section, in Now's instants.
type Record struct {
	Called  int64 // Lock was called
	Entered int64 // Lock returned
	Left    int64 // Unlock was called
	Back    int64 // Unlock returned
	Token   uint64
}
