// Package carvalhoroucairol implements the algorithm of Carvalho and Roucairol: that of
// Ricart and Agrawala, in which a permission once given stays given until who gave it asks
// for permission itself.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom. Entries do not follow the
// happened-before order of the requests: who keeps all permissions enters again without a
// word, while a REQUEST that it has heard of from others is on its way to it (TestOrder).
//
// # Complexity
//
// 0 to 2(n-1) messages an entry: two for each process that has asked since. That is 0 for
// who comes again at once, 2(n-1) where all come in turn or under load, and n-1 on average
// where the next one is drawn evenly. Waiting no or two message delays, synchronization
// delay one. O(n) bits and two integers of state; one integer in a REQUEST.
//
// # Source
//
// O. S. F. Carvalho, G. Roucairol, "On Mutual Exclusion in Computer Networks", CACM 26(2),
// 1983, doi:10.1145/358024.358057.
//
// # Deviations
//
// At the beginning nobody has anybody's permission. A process that has all of them takes no timestamp,
// because whatever arrives inside is deferred; so that the clock of a process that enters
// again and again does not run away from the others.
//
// A REPLY and a REQUEST of one process may overtake each other. A process that gets the REQUEST first
// is still waiting for the REPLY, with a request that the other one knows and that is
// therefore the earlier one: it defers the answer, as it would later. A process that gets the REPLY first
// enters, and the late REQUEST waits for its exit or is answered at once.
//
// # Checked
//
// See TestConformance, TestLiveness and TestMutants for the bounds. With three processes
// and unlimited entries two of them may leave the clock of the third behind without end:
// there the checker does not go beyond clocks of 6.
package carvalhoroucairol
