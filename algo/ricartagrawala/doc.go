// Package ricartagrawala implements the permission-based algorithm of Ricart
// and Agrawala: a process enters after every other process has replied to its
// request, and a process that is inside or comes first replies only when it
// leaves.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom. With the clock on REPLY
// entries follow the happened-before order of the requests; as printed they
// only follow (timestamp, id). The fencing token of an entry is that as one number.
//
// # Complexity
//
// 2(n-1) messages an entry; waiting two message delays, synchronization delay
// one; O(n) bits and two integers of state; one integer a message.
//
// # Source
//
// G. Ricart, A. K. Agrawala, "An Optimal Algorithm for Mutual Exclusion in
// Computer Networks", CACM 24(1), 1981, doi:10.1145/358527.358537.
//
// # Deviations
//
// REPLY carries the sender's clock, which the paper's REPLY does not: without
// it a process may learn of another's request only after it made its own with a
// smaller timestamp, and overtake a request that happened before. The variant
// "printed" leaves it out. ForGroups is the printed form for groups: see package ra1.
//
// # Checked
//
// See TestConformance and TestMutants for the bounds.
package ricartagrawala
