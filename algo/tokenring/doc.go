// Package tokenring implements the token on a logical ring: a process that holds the token may
// enter, and passes it on to the next process. It is a ring of messages only; it has
// nothing to do with how the machines are connected.
//
// There are three forms without failures. In the default form the token never rests: a process that gets it and does
// not want to enter passes it on at once. In the form "resting" it stays with who used it
// last until somebody asks: a REQUEST goes from process to process against the direction
// of the token until it meets it or somebody who waits as well, and the token comes back
// the same way. In the form "bidirectional" it may go either way: a process that has used it sends it
// back to where it came from, and everybody else lets it go on.
//
// Regenerating is the first form where processes crash: the ring closes over the dead, and
// a leader makes a lost token anew; NoEpoch shows why tokens then have numbers.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous. Each
// process knows its two neighbours. The last member has the token at first. Regenerating
// has crashes, a perfect detector, and an election beside it.
//
// # Properties
//
// Mutual exclusion; no deadlock; on a ring of one direction starvation freedom: between
// two entries of one process the token comes to everybody who waits. In both directions
// this is lost: two processes send each other the token for ever, and whoever is not
// between them starves.
//
// The order of tries is not kept where anybody can know it: in the resting form a process
// that hands on a REQUEST may try afterwards and be the first to get the token. In the
// other forms nobody can know: a process that tries sends nothing until it has entered, so that no
// try happened before another one that is served first, and the property order holds of
// them without meaning anything. The time of tries is not the order of entries, of course.
//
// # Complexity
//
// Let d be how many places a process stands after the holder, 0 to n-1. Nothing but the
// bidirectional token carries an integer, and a process has O(1) bits of state.
//
//   - The token that never rests: up to n-1 messages are sent while a process waits, and
//     up to n message delays pass: the slides say n-1, but it may just have left.
//     While nobody enters, one message a delay is sent for ever: from 1 to any number of
//     messages an entry. Synchronization delay d of who is next, 1 to n-1; under full load
//     1, with 1 message an entry.
//   - The token that rests: d requests and d times the token, 2d messages and 2d delays, 0 to
//     2(n-1) and n-1 on average over d; none while nobody tries. Synchronization delay d, 1 to
//     n-1; under full load 1, with 2 messages an entry.
//   - The token that turns round: as the first one when one process tries at a time. Under
//     load 1 to n messages an entry, and a synchronization delay of 1 to n-1.
//
// # Source
//
// G. Le Lann, "Distributed Systems - Towards a Formal Approach", IFIP Congress 1977. For
// requests that go to meet the token: A. J. Martin, "Distributed Mutual Exclusion on a Ring
// of Processes", Science of Computer Programming 5(3), 1985.
//
// # Deviations
//
// That a ring of two directions starves somebody depends on who decides on the direction,
// which textbooks leave open. The rule here is the simplest that leaves it to those who
// enter. A token that turns round at two ends, for example, would starve nobody.
//
// A single process keeps the token: it has nobody to send it to.
//
// # Checked
//
// TestConformance decides all properties of the forms of one direction, for one to five
// processes with unlimited entries; TestStarvation finds the loop of the bidirectional
// form, TestOrder what the resting form does with the order of tries.
//
// Regenerating, with a ring election beside it: TestRegenerating decides all properties for
// three processes with one crash and two, and two with a bully election. TEST_LANE=long adds two
// entries each with two crashes and four processes with one. NoEpoch loses exclusion in eight
// steps (TestNoEpoch), and in the small models nothing else (TestNoEpochConformance).
//
// TestMutants and TestRegeneratingMutants remove each guard: none survives.
package tokenring
