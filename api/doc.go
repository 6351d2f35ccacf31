// Package api serves locks to clients in any language, over gRPC, gRPC-Web and
// HTTP with JSON on one port. The schema is poundlock.v1.LockService.
//
// # Sessions
//
// A Service holds the locks of all its clients with one poundlock.Client. What
// tells its clients apart are sessions, each with a lease of its own: a session
// lives while a call or a stream of it is in progress, and for one lease after the
// last of them has ended. Then its locks are released.
//
// # What a client may rely on
//
// A client cannot see when its session ends, nor that the process of the service
// has died with all sessions. So every answer says how long a grant is certain to
// be held, from before the client sent its request: the lesser of the session's
// lease and of what the servers of the cluster have promised this process. The
// Service keeps such a promise when it shuts down and when it loses a lock: it
// leaves a critical section only when the last promise is over, or the client says
// that it has left. As everywhere, a client that is stopped between its last look
// at the time and its write does not notice: only the fencing token protects the
// resource then.
//
// All use of the connect library is in this package and in poundlockv1, which is
// generated.
package api
