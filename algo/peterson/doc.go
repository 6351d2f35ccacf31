// Package peterson implements Peterson's lock for two processes: a process that wants to enter says so, and
// then gives way to the other one; it enters if the other one does not want to, or has given way later.
//
// # Model
//
// Two processes that share registers, of which turn has both as writers; no failures, asynchronous.
// Registers are atomic, or safe with an arbiter for turn: see below. One process alone runs too,
// beside a flag that nobody raises.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom. While one tries and has written nothing, the other
// one enters as often as it likes (TestBypass).
//
// All of it with safe registers too, as the checker has them: of two writes of turn that overlap the one
// that ends last stays (TestSafe). A flag is only written to change it, and a wrong value of turn is found
// only while the other process writes, which then gives way itself. That two overlapping writes leave
// one of their values, and not a third one, is more than Lamport's safe registers promise, which have one
// writer.
//
// # Complexity
//
// Without contention 2 writes and a read to enter, and a write to leave. Under contention the one that
// waits reads both registers again and again. Three bits.
//
// # Source
//
// G. L. Peterson, "Myths About the Mutual Exclusion Problem", Information Processing Letters 12(3), 1981,
// doi:10.1016/0020-0190(81)90106-X.
//
// # Deviations
//
// The paper calls the flags Q1 and Q2. Its wait is one condition of two registers; here flag is read
// first, and turn only if flag is true. The generalisation to n processes is left out.
//
// # Checked
//
// All runs of one and two processes with unlimited entries, with both kinds of registers: TestHolds and
// TestSafe. TestMutants removes each guard: none survives.
package peterson
