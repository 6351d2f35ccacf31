package api

import (
	"log/slog"
	"time"

	"github.com/poundlock/poundlock"
)

// Config describes a Service. Client is required.
type Config struct {
	// Client holds the locks; it stays the caller's to close. Others act under them, so its poundlock.Config is Outlived, and
	// without EndWithConnection.
	Client *poundlock.Client
	Limits Limits
	// Addr is the address as it was configured, such as a name in /etc/hosts: a port on
	// loopback without TLS is asked for by that name, as localhost, or by a loopback address.
	Addr string
	Log  *slog.Logger // nil: discarded
}

// Limits bound what clients can make a Service keep. A zero means the default.
type Limits struct {
	Sessions int // default 10 000
	Locks    int // held or waited for, by all sessions. Default 60 000; servers drop a client beyond 65 536
	Grants   int // held, lost or waited for, of one session. Default 1 000
	Waits    int // Lock calls in progress, of one session. Default 100
	Streams  int // open at once, of one session. Default 4
	// Of the following ones a remote address may have all while nobody else wants one. When
	// they are used up, the address that has the most gives one up for an address that has fewer.
	Calls      int           // in progress, streams among them, of all clients. Default 20 000
	Bodies     int           // being read at once, each up to 64 KiB. Default 1 000
	Conns      int           // connections. Default 10 000
	SlowClient time.Duration // for a client to send a header or a body, and to read what is written. Default 10s
}

// What a client may ask for, whatever the Limits.
const (
	defaultLease = 10 * time.Second
	minLease     = 200 * time.Millisecond
	maxLease     = 10 * time.Minute
	defaultWait  = 30 * time.Second
	maxWait      = 10 * time.Minute
	maxAhead     = time.Minute // that of package poundlock
	maxNames     = 16          // of one grant
	maxGrantID   = 64
	maxLabel     = 256
	maxBody      = 64 << 10
	maxAsking    = 8 // calls of Holder that the servers are asked for at once; others wait
	// maxReleased is how many of the grants that a session has released it still
	// knows, so that a Release can be repeated.
	maxReleased = 128
)

func (l Limits) withDefaults() Limits {
	for _, x := range []struct {
		value *int
		zero  int
	}{
		{&l.Sessions, 10_000},
		{&l.Locks, 60_000},
		{&l.Grants, 1000},
		{&l.Waits, 100},
		{&l.Streams, 4},
		{&l.Calls, 20_000},
		{&l.Bodies, 1000},
		{&l.Conns, 10_000},
	} {
		if *x.value <= 0 {
			*x.value = x.zero
		}
	}
	if l.SlowClient <= 0 {
		l.SlowClient = 10 * time.Second
	}
	return l
}
