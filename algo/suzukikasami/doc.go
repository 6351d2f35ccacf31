// Package suzukikasami implements the token algorithm of Suzuki and Kasami: who
// holds the one token may enter, a request goes to everybody because nobody
// else need know where the token is, and the token itself carries the queue.
//
// The variant "ricart-agrawala-token" is what Ricart and Agrawala found at the same time:
// the token carries no queue, only when each process entered last, and goes to the next
// process with an open request after the one that leaves, in the ring of all ids.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous.
// The last member holds the token at first.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom: the queue on the token is
// first come, first served, and each exit looks at all processes in turn; without the
// queue the token passes nobody who waits on its way round the ring.
//
// The order of tries is not kept: whose request reaches the token first is first, even
// if it was made by somebody who knew of the other one.
//
// The fencing token of an entry is how many there were, itself included.
//
// # Complexity
//
// n messages an entry, or 0 when the process already holds the token; waiting
// two message delays, or none; synchronization delay one. REQUEST carries one
// integer, TOKEN up to 2n-2, or n without the queue; O(n) integers of state.
//
// # Source
//
// I. Suzuki, T. Kasami, "A Distributed Mutual Exclusion Algorithm", ACM TOCS
// 3(4), 1985, doi:10.1145/6110.214406. G. Ricart, A. K. Agrawala, "Authors' Response to
// 'On Mutual Exclusion in Computer Networks' by Carvalho and Roucairol", CACM 26(2), 1983.
//
// # Deviations
//
// None in substance. TOKEN carries how many entries there were, too, which the papers have no use for, and which is not counted
// as an integer of it. The papers' procedures wait for the token in their middle;
// here that is two steps. Ricart and Agrawala number requests by a clock of each process
// that nobody else moves: it is the same as counting them. A process that holds the token at first is
// free; it is the process that comes last in a run whose processes come in turn, so that no
// entry of such a run is free by chance.
//
// # Checked
//
// TestConformance explores all states of one process with three entries, of two
// with unlimited entries, and of three with two entries each. "poundlock-lab check
// suzuki-kasami -n 3 --entries unlimited" covers three processes in the states in
// which nobody has more than two requests that somebody else has not heard of.
// TestMutants removes each guard: none survives.
package suzukikasami
