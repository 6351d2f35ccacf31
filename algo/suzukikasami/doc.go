// Package suzukikasami implements the token algorithm of Suzuki and Kasami: who
// holds the one token may enter, a request goes to everybody because nobody
// else need know where the token is, and the token itself carries the queue.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous.
// The last member holds the token at first.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom: the queue on the token is
// first come, first served, and each exit looks at all processes in turn.
//
// # Complexity
//
// n messages an entry, or 0 when the process already holds the token; waiting
// two message delays, or none; synchronization delay one. REQUEST carries one
// integer, TOKEN up to 2n-2; O(n) integers of state.
//
// # Source
//
// I. Suzuki, T. Kasami, "A Distributed Mutual Exclusion Algorithm", ACM TOCS
// 3(4), 1985, doi:10.1145/6110.214406.
//
// # Deviations
//
// None in substance. The paper's procedure waits for the token in its middle;
// here that is two steps. Who holds the token at first is free; it is the process
// that comes last in a run whose processes come in turn, so that no entry of such
// a run is free by chance.
//
// # Checked
//
// TestConformance explores all states of one process with three entries, of two
// with unlimited entries, and of three with two entries each. "poundlock check
// suzuki-kasami -n 3 --entries unlimited" covers three processes in the 718 242
// states in which nobody has more than two requests that somebody else has not
// heard of. TestMutants removes each guard: none survives.
package suzukikasami
