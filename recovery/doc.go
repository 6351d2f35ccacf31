// Package recovery makes an algorithm for mutual exclusion, or for groups, tolerate crashes of
// its processes, new lives of them and partitions: it runs the algorithm in instances, and
// begins a new one with those who are there.
//
// # Model
//
// n processes, at most 64, which are the users; channels as the algorithm needs them; and
// protocol.LeaseDetector among members. Processes crash and come back empty, and sessions
// break at any time. Incarnation 1 is the first life: those of all members begin as one
// instance. A later life begins alone.
//
// # Properties
//
// Exclusion, of groups where the algorithm has them, whatever happens. While a majority of
// all processes have sessions with each other, and have had for long enough, each of their
// users gets in, as far as the algorithm promises it. A process without a majority is in no
// instance: who is inside is ejected, and who tries waits, or is told NoMajority (TryOnce,
// and option tell). When it has sessions again it joins.
//
// An instance has an epoch, a round and a coordinator, which each process joins in growing
// order. A process is in an instance only while it has had sessions, without a break since it
// joined, with a majority of all processes, all of them members. It joins another one only
// when everybody whom that leaves out, and who may count on a session with it, has lost that
// session and knows it (else it revokes the session and waits). Two instances have a member s
// in common on which p counts in the older and q in the newer one. s joined the newer one
// after the older one, and p was then a member of the newer one, which has not begun before p
// joined it too, or p had lost s. So nobody is in the older one when the newer one begins.
//
// That argument needs that p's session with s is the one that s had when it joined. So a
// coordinator says to each member which statement of its sessions a RESTART is based on, and
// one whose sessions have changed since does not answer; who was in no instance answers before
// the others are asked, and each of them must have had its JOIN in the present session.
//
// The tag of a process, its epoch and whether it runs, never decreases while it is in
// instances, does not change while its user is inside, and is the same for all that are inside
// (invariant recovery/tags).
//
// A session that broke carries nothing of its instance any more even when it is restored: to
// the algorithm the messages of its end are under way for ever.
//
// # Complexity
//
// At most 5(n-1) messages a crash: NOTIFY, RESTART, DONE, START and RESUME, n-2 each. At most
// 5(n-1) a join: JOIN in place of NOTIFY, n-1 each. LEAVEs take the place of the messages that
// an old request has sent in vain: at most n-1 each. Both bounds are for one fault at a time
// and n-1 sessions that begin at once; faults that overlap share restarts, or repeat them.
// NOTIFY and DONE carry n integers, the others up to five, a message of the algorithm one more.
//
// # Source
//
// N. Mittal, P. K. Mohan, "A priority-based distributed group mutual exclusion algorithm when
// group access is non-uniform", J. Parallel Distrib. Comput. 67(7), 2007,
// doi:10.1016/j.jpdc.2007.02.007, section 5.3.
//
// # Deviations
//
// The paper has a perfect detector and no joins, so that the number of crashes names an
// instance. Here it is the epoch. The coordinator is that of the present instance as long as
// it is in reach, and without it the least of its members, those that joined last after the
// others; it does not wait for NOTIFYs that agree: who is told to go on without somebody
// revokes its lease. START goes to every group of old requests, with how many LEAVEs it waits
// for and to whom its own go. A process that exits while a RESTART waits for it does not tell
// the old instance. Without RESUME (option phases = 2), or without old requests either (1), the
// coordinator's own process waits in place of all others, which is enough because an algorithm
// lets nobody in at first without a message of the process that may enter alone, or of all.
//
// Where sessions are not transitive for long, a majority may have to wait: a coordinator whose
// sessions are with too few stays one for those who have one with it. Of four processes or
// more, after several faults that overlap two coordinators may each wait for the other, until
// the next fault: 3 of 3000 worlds of TestStorm. Nobody is inside wrongly meanwhile.
//
// # Checked
//
// TestModels explores Suzuki-Kasami, TestStorm runs it, RA2 and TokenGME in worlds in which
// every message, session, user and fault comes at random, and judges each step; and TestCosts
// counts messages by kind. TestMutants breaks the wrapper in 28 named ways; the four that survive have
// their reasons there, and three of these are that no world met the case.
package recovery
