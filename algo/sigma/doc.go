// Package sigma implements Sigma, a lock for any number of clients on n servers
// that keep everything in memory and may crash and come back empty at any time.
// A client asks every server and enters when m of them support it; a server
// supports one request at a time and queues the others.
//
// # Model
//
// n servers with fixed names, clients that are not known beforehand. A server
// that crashes loses its memory and may be back at once; nobody has to be told.
// A client that crashes never returns; a restarted one is a new client. Channels
// are asynchronous, not FIFO, and quasi-reliable: messages around a crash of
// either end may be lost, and a recovered server may receive old ones. Clients
// are watched by a perfect failure detector (Literal) or hold leases (Algorithm).
//
// With m = ceil(2n/3), in one epoch of one client (its wait and its critical
// section) fewer than 2m-n servers may lose their memory and at most n-m may be
// silent: at n=4 one and one, at n=3 none and one. Algorithm needs the first bound
// not for an epoch, but until clients have made up for a loss: see Refresh.
//
// # Properties
//
// Mutual exclusion and progress within that budget; lockout freedom when new
// timestamps eventually exceed every given one, and by a minute where there are head starts, which clocks ensure. With
// fencing on, the token of a grant exceeds that of every grant that ended before
// it began, also beyond the budget, as long as no clock is further than eps from
// real time.
//
// # Complexity
//
// Without contention 3n messages an entry (3m where it is thrifty) and two message delays to enter. With
// contention at most 4.5n messages, however long holders stay, and a synchronization
// delay of two (with promises 5n, and below two where delays vary; told directly 6n+1, and at most one); Literal floods, see Deviations. O(1) integers a message; a server holds one request a
// waiting client, and nothing for an idle lock.
//
// # Source
//
// W. Chen, S. Lin, Q. Lian, Z. Zhang, "Sigma: A Fault-Tolerant Mutual Exclusion
// Algorithm in Dynamic Distributed Systems Subject to Process Crashes and Memory
// Losses", PRDC 2005. Comments give the line numbers of its Figure 1.
//
// # Deviations
//
// Literal is Figure 1 line by line; only, a server that suspects a client drops
// its request from the queue too, and not just when it comes up. Algorithm differs
// in this:
//
//   - Deferral. Figure 1 polls all servers again as soon as m have answered, so
//     each waiting client floods them for as long as somebody is inside; the
//     paper's 5n messages under load do not hold. Here only a client that has a
//     support polls, and only when the answers prove that nobody has a quorum and
//     still do after a pause, which grows from T to 8T. Otherwise it rests, and polls
//     after 400T, 800T and so on. Resting gives nothing away. While nobody is inside, each server supports a client that
//     will poll, so that others need not.
//   - Numbered supports. Each support of a request at a server has a number. A
//     YIELD is obeyed only for the number given out last; a client counts no
//     number that it gave back, and tells it with each REQUEST, so that a server
//     that has forgotten it numbers on from there. Repeated and late messages
//     are thereby harmless, and a server may repeat a RESPONSE.
//   - One REQUEST a life. A poll is an INQUIRY, also where Figure 1 repeats the REQUEST
//     (line 16): one that the RELEASE of its own client overtakes leaves a support for
//     nobody behind, until the next CHECK.
//   - Re-request. RESPONSE carries the server's incarnation. A waiting client
//     that learns of a new one drops what the dead one said and asks again;
//     Figure 1 starves when more than n-m servers restart while it waits.
//   - Refresh. So does a holder, with the mark that it is inside, and counts the
//     support when the answer comes. A server whose owner is somebody else queues
//     it before all who wait and recalls the support, which a waiter gives back.
//     Servers refuse old timestamps in the first REQUEST of an epoch only.
//   - Groups. A server supports several owners at a time that share one group, and whoever does not
//     share closes the session to those behind it. A mutex is the case in which nobody shares. A client that
//     is inside alone comes down to a group by DOWNGRADE, and nobody else gets in between. A request may name several
//     groups, any one of which will do: the client needs a quorum of one, and where it would give supports of two back it
//     chooses one first, and tells the servers by DOWNGRADE. Then it may wait for that one while another one is inside.
//   - Head starts. A request may count as made up to a minute earlier, which its REQUESTs and YIELDs say. All servers order
//     requests by that; their timestamps stay what names them, and their tokens.
//   - Thrift. A try may ask a quorum first. It asks the others as soon as one of the quorum does not support it at once, and
//     after 16T in any case. If it has left before, they never hear of it.
//   - Drain. A server that is about to stop keeps its owner until that one leaves,
//     and tells the others that it will support nobody. A client believes it for the
//     rest of its epoch.
//   - Promises, as an option, which is on in the product. A server tells the first one that waits that it is next, and binds
//     itself, whatever the owner does. The first server that hears of the RELEASE of a holder tells the next one that this
//     request has ended, which then counts what other servers promised it after that request: until it gives that back,
//     for one that comes first, nobody else gets it. With the option direct, for simulations, servers tell the owner who is
//     next, and a holder tells that client itself that it has left.
//   - Leases. A client drops a server at which its lease may have lapsed. A
//     holder stays inside while n-m+1 of its supports are live, for then at most
//     m-1 servers can support somebody else, and is ejected below that.
//   - Timestamps come from the client's clock, and from that of a server that
//     refused it: a time more than 2 eps ahead is refused from everybody, and one of
//     more than an hour ago in the first REQUEST of an epoch. A clock may be set back,
//     and timestamps with it; so line 29 is not for a RELEASE, which may answer a CHECK
//     of an epoch with a larger one. Without a clock (in the checker) they follow
//     Lamport's rule.
//   - In the remainder section a client has no timestamp at all, instead of an
//     unused fresh one; both disown the last epoch when a CHECK comes.
//   - Fencing. A server remembers the largest token that it recorded and reports
//     it with its support. A timestamp larger than all reports is the token;
//     otherwise the client has a larger one recorded by m servers before it
//     enters. A restarted server starts from its clock. What is recorded stays; what
//     a clock showed does not, and a recorded token that no clock within eps of real
//     time can have allowed is passed over.
//
// # Checked
//
// TestConformance and TestConformanceLiteral explore, with two clients of one
// entry each, one and two servers completely: without faults, with a crash and a
// lapsed lease (Algorithm), with a crash and a cancelled try (Literal). Timers fire
// at any moment there, and no CHECK is sent; at n=4 and 7 both forms are simulated
// with all faults of their models.
//
// TestTheorem4 finds two holders beyond the budget, after 2(2m+1) steps and one for
// each loss: 11 at n=3 after one loss, 16 at n=4 after two.
//
// TestSpacedLosses begins with four servers, a holder that stays inside and a
// waiter, and explores two losses one after the other completely, as long as no
// timer fires (three with TEST_LANE=long): the holder is never ejected, and every
// loss is made up for. Two losses at once, or no refresh, eject it and let two in.
// TestLongHolds simulates the same at n=4, 7 and 10 with up to 2m-n-1 losses at a
// time, more than a thousand in each hold. TestDrainExplored explores a server that
// drains (timers at any moment with TEST_LANE=long). TestRefreshMutants lets the model find
// eight ways to refresh wrongly.
//
// TestNobodyStarves decides, for two clients and three of four servers, that nobody
// starves: with FIFO channels without CHECKs, else as RELEASEs are sent again, which
// CHECKs are there for (TestAsked). TestWithoutChecks shows the loop in which somebody
// does without them.
//
// TestPromisesExplored decides models of promises, with losses, drains, lapsed leases and tokens, and progress and starvation
// where channels are in order; TestPromiseMutants breaks them, and TestHandOver and TestHandOverOfForgetful measure them.
//
// TestHeadStartsExplored decides models in which one client has a head start, and TestPassedByHeadStart simulates how far it reaches.
//
// TestThriftExplored decides models in which each client asks all servers but one first.
//
// TestStories tells the claims of the paper and of each extension above, message by
// message, with the lines of Figure 1 in their names; where Figure 1 fails and
// Algorithm does not, it shows both.
//
// TestMutantsLiteral and TestMutants break the two forms, each
// guard and what was worth a name, against small models with CHECKs, crashes,
// cancelled tries, lapsed leases and tokens, the stories, and simulations. Four of
// each survive, with their arguments; TestReleaseToSupporters has one more. How
// many messages deferral saves is a claim, and measured by the conformance suite.
//
// TestFencing of package sim judges tokens while servers restart all the time.
package sigma
