// Package maekawa implements the algorithm of Maekawa: each process has a voting set of
// about sqrt(n) processes, any two sets share a member, and who has the votes of all its
// set enters. A member votes for one process at a time.
//
// Algorithm is the form that does not deadlock: a voter asks its vote back for who comes
// first. Basic votes once and lets all others wait, as lectures introduce it; it deadlocks.
//
// # Model
//
// n processes, reliable channels, no failures, asynchronous. Algorithm needs FIFO channels,
// Basic does not. The voting sets are those of package quorum; the option "sets" says which.
//
// # Properties
//
// Mutual exclusion, by any voter that two sets share. Algorithm has no deadlock and no
// starvation: at a voter the earlier request comes first, by (timestamp, id), and each vote
// tells its receiver how late the requests are that wait there, so that its next one is
// later. Entries do not follow the happened-before order of requests.
//
// Basic deadlocks: with V_1 = {1, 2}, V_2 = {2, 3}, V_3 = {3, 1} each of three has its own
// vote and waits for the next one's. PrintedVote, the handler of REQUEST as printed, has
// no mutual exclusion either. Nor do entries follow the order of requests.
//
// # Complexity
//
// K is the size of a voting set: the smallest with K(K-1)+1 >= n, or one more, up to n = 104.
// Without contention 2(K-1) messages to enter and 3(K-1) in all, since a process is in its
// own set; waiting two message delays. Synchronization delay two: RELEASE to a voter, REPLY
// from there; one where the next process has all votes but that of the leaver, or its own.
//
// Under contention Algorithm takes at most 6(K-1). REQUEST, REPLY and RELEASE are 3(K-1). A
// request that finds the vote given leads to one FAILED, to itself or to who came first
// until then, or to one INQUIRE, which leads to at most one YIELD and one more REPLY. The
// own request finds at its own voter only earlier ones, for it is later than all that the
// process has heard of; so its FAILED goes to the process itself. That leaves 3(K-1).
//
// State is O(K) integers. REQUEST carries one integer, REPLY at most one.
//
// # Source
//
// M. Maekawa, "A sqrt(N) Algorithm for Mutual Exclusion in Decentralized Systems", ACM TOCS
// 3(2), 1985, doi:10.1145/214438.214445; B. A. Sanders, "The Information Structure of
// Distributed Mutual Exclusion Algorithms", ACM TOCS 5(3), 1987, doi:10.1145/24068.28052.
// Basic is a simplification that textbooks and lectures have.
//
// # Deviations
//
// LOCKED and RELINQUISH of Maekawa are called REPLY and YIELD. As Sanders found, FAILED must
// also go to a request that came first, when an earlier one arrives; without that there is
// a deadlock of 13 steps with four processes.
//
// A request is later than all that its process has heard of, from REQUESTs and REPLYs, but
// not than its own last one: timestamps grow only where requests meet. With clocks that count
// own requests a process that nobody asks falls behind without bound, and no model with
// unlimited entries has an end. The price is that a process must hear how late the others
// are, from REPLY; without that the checker finds one that starves.
//
// An INQUIRE that finds no vote is one that RELEASE has answered. That conclusion needs FIFO
// channels; timestamps on all messages would do as well.
//
// # Checked
//
// TestConformance and TestProperties decide all properties, with unlimited entries of up to
// three processes and of two out of four, and with one each of three out of four.
// TEST_LANE=long adds one entry each of four processes, unlimited ones of three out of four and
// three out of the lecture's seven. TestMutants and TestBasicMutants remove each guard: none
// survives.
package maekawa
