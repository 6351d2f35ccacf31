// Package sim runs an algorithm in virtual time: deterministic, at millions of
// events a second, under delays, memory losses, crashes, pauses and partitions.
//
// A run is a value: algorithm, Config and seed. Events happen in strict (time,
// sequence) order, and every purpose of every process and user draws from its
// own stream of random numbers, so that two algorithms meet the same workload
// and two runs of one value give the same log.
//
// Users are a closed loop: think, try, critical section, hold, exit. Their first
// tries are spread evenly over one mean think time.
//
// # Faults
//
// A member that loses its memory starts afresh at once under its old name; its
// timers die and messages on their way to and from that name arrive all the
// same, which is the nastier case. A crashed client never acts again, and a new
// client with a new id takes over its remaining entries. Messages to a crashed
// client or to a member that is down vanish. A paused process handles what
// happens to it when the pause ends. A message between the sides of a partition
// arrives when it ends.
//
// # Registers
//
// An access to a shared memory takes as long as a message, and takes effect at its end. With
// safe registers (protocol.Safe) a write begins when the process asks for it, and a read that ends
// before that write does finds anything, as the stream of the memory has it. An await looks once at its own
// end; from then on it costs nothing, and looks again one delay after a write made its condition true. A
// process that crashes leaves the registers as they are; a safe write that it has begun never ends.
//
// # Leases
//
// With protocol.LeaseDetector each client has a lease at each member. When a
// pause or a partition keeps the two apart for longer than Config.Lease, the
// client is told at the end of the lease, the member one message delay later,
// and the client again one message delay after they meet: only in that order.
// As on a network, the session between the two has then ended: messages of it
// that are still on their way are lost, and so is what either sends before the
// next one.
// Even a paused client is told that its lease lapsed, for the lease is what
// stops a silent holder; what it then sends leaves when the pause ends.
package sim
