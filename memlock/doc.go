// Package memlock holds two locks of the first papers on mutual exclusion, which need
// no instruction but to read and to write a word: those of Dijkstra (1965) and
// Lamport's bakery (1974). They are for reading, for teaching and for comparison: in a
// program take sync.Mutex, which is faster everywhere and needs no slots.
//
// # Slots
//
// A lock is made for n participants. Each has a slot, 0..n-1, which it names in Lock and
// Unlock, and which at most one goroutine uses at a time: a slot is what the papers call
// a process. A goroutine that waits yields its processor after each look.
//
// # Properties
//
// Both exclude. The bakery is fair: who took its ticket before another participant came
// enters before it. With Dijkstra's lock somebody always enters, but one may wait for ever
// while others enter again and again. Packages algo/bakery and algo/dijkstra hold the same
// algorithms as processes of the model checker, which decides this; a test here drives lock
// and process through the same schedules, and each makes the accesses of the other.
//
// # Memory
//
// Each register of the papers is one word that is loaded and stored with sync/atomic, so
// that all accesses of all goroutines have one order (the Go memory model: they behave as
// sequentially consistent), as both proofs assume of Dijkstra's lock and the bakery needs
// at least in part. With plain words both would break: a processor may read another's
// register before its own write is seen. What one holder wrote before Unlock the next
// one sees after Lock.
//
// Each register fills a cache line of 64 bytes, so that who spins on one is not disturbed by
// writes to another: 2n lines for a bakery, 2n+1 for Dijkstra's lock.
//
// # Costs
//
// Without contention an entry and exit of the bakery takes 3(n-1) loads and 4 stores, and of
// Dijkstra's lock n+3 loads and 6 stores, or n and 4 if k already names the slot: time grows
// with n, not with how many want the lock.
//
// # Bounds
//
// Tickets of the bakery grow while it is never empty, and begin again with 1 when it is.
// They have 64 bits: at 10^9 entries a second without any pause they last for 584 years.
//
// # Source
//
// E. W. Dijkstra, "Solution of a Problem in Concurrent Programming Control", CACM 8(9),
// 1965, doi:10.1145/365559.365617.
//
// L. Lamport, "A New Solution of Dijkstra's Concurrent Programming Problem", CACM 17(8),
// 1974, doi:10.1145/361082.361093.
package memlock
