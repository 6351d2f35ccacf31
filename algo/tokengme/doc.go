// Package tokengme implements TokenGME, the token algorithm of Mittal and Mohan for group
// mutual exclusion: processes that want the same group are inside together. It is the
// algorithm of Suzuki and Kasami with two kinds of tokens. A process that holds the one primary token
// gives secondary ones of its group to whoever asks for that group; each token lets its
// holder in. When another group is wanted, and the primary token is not in use, it goes to
// one of those who want it, secondary ones go to the others, and all of them enter as soon
// as the secondary tokens of the session before have been given back.
//
// The form Literal is the paper: its actions A1 to A6, beside which literal.go can be read. The
// others send what it sends, where nothing is said to the contrary, and have options, bounded
// numbers and clients. The form Several lets a request name several groups, of which any one will do. Bounded
// resets its numbers, so that they stay bounded. In WithClients the users are clients of the
// members: a member lets any number of its clients in with one token.
//
// A group whose name begins with protocol.Alone is exclusive, in all forms: whoever is
// granted it is alone, so that readers share a group and writers want an exclusive one. With
// the empty group, which is exclusive too, this is the algorithm of Suzuki and Kasami.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous. The process
// with the lowest id holds the primary token at first. A client may give up while it waits. An
// attempt to enter without waiting is taken for one that waits.
//
// # Properties
//
// Group mutual exclusion; no deadlock; starvation freedom; concurrent entry: while all want
// one group nobody waits for somebody else to leave. Requests are served in no order that a
// user could tell.
//
// A client that gives up is out at once. But a request that was made for it stands, and ends
// a session all the same: then those who want the group of that session wait for one more, in
// which maybe nobody is inside, and for those who are inside still. So where clients give up
// there is no concurrent entry. A message that takes a request back would not change that: when
// a token has been given for it the session before is over, though nobody wants the next one
// any more. It would only make that rarer, for 2(n-1) messages or so, since a process must
// hear whether it still gets a token before it asks again.
//
// The fencing token of an entry is a number on the token: it grows with each session, and with
// each entry that is alone in one, so that those who share a session have one. There is none where numbers are bounded, which
// this one cannot be, nor for clients, whose GRANT carries none.
//
// How many sessions may begin between the queuing of a request and the one that serves it
// depends on the option selection and on n alone; see Longest. The queue has one entry of a
// process at most, so with "fifo", which takes the group of the first entry, it is n-1. With
// "largest" it is n+n-1: from an age of n on only the first entry counts, and at most n-1
// others are before this one. With "priority" it is 4n-5. For let an entry wait while X
// sessions begin. When x of them have begun its own group has a priority of at least 1+x, so
// that the batch selected then has one, too: the sum of 1+age over the batch. The batches
// that one process is in count disjoint times, but for the age that its entry had at the
// beginning. Together
//
//	1 + 2 + .. + X  <=  (n-1) X + (n-1) A
//
// where A is the largest of those ages. Let this be the first entry that waits for more than
// 4n-5 sessions: then X = 4n-4 and A <= 4n-5, which contradicts that for n > 1. The source
// has m(n+1)-1 for m groups, which grows with the number of groups.
//
// A process with clients has one request at a time, for the first that waits. Its token lets
// in all clients that wait for its group when it becomes safe, and those who come later, until a
// conflicting request is known, of whomever: so clients who overlap for ever end. While a
// client waits, its process is served at most as often as there are different wishes among its
// own and those before it, each exclusive one for itself, and once more where somebody had
// given up already for whom a request was made; and each of these requests waits in the queue
// for as many sessions as Longest says, at most.
//
// # Complexity
//
// At most 2n-1 messages an entry: n-1 REQUESTs, a TOKEN and n-1 RELEASEs. Without contention
// n, of which the holder of the primary token saves the TOKEN; none for the group of a token
// that is held. Waiting two message delays, synchronization delay one. A secondary TOKEN
// carries n+4 integers, the primary one n+5 and four for each entry of its queue, where that
// wants one group; all others carry one or two, so that it is O(1) a message in the mean. O(n)
// space. A client sends and gets three
// messages more. A reset takes 2(n-1) messages, after smax requests of a process, or smax
// sessions.
//
// # Source
//
// N. Mittal, P. K. Mohan, "A priority-based distributed group mutual exclusion algorithm
// when group access is non-uniform", Journal of Parallel and Distributed Computing 67(7),
// 2007. I. Suzuki, T. Kasami, "A Distributed Mutual Exclusion
// Algorithm", ACM TOCS 3(4), 1985.
//
// # Deviations
//
// The text leaves open whether the holder of the primary token issues secondary ones while
// a conflicting request waits (option admission): "open" is what section 3.2 says, "strict"
// what section 5.1 says of requests for several groups, where it is the only one. The first
// token has a group that nobody can want. Ages grow when a session has been selected; of two
// groups with equal priority the one is next whose first request came first, and of its
// requests the first one gets the primary token. Selection "largest" is not in the paper.
//
// A process that holds a token knows that RELEASEs of sessions before the last one are of no
// use any more, and forgets them. That changes nothing but the number of states.
//
// A TOKEN carries a fencing token, that of the literal form, too. The paper has none, and it is not counted as an integer.
//
// Bounded numbers (section 5.2) need more than the paper says. On channels that are not FIFO
// a process that has heard of no request but the first takes it for a new one as soon as the
// last one before the reset is fulfilled, for the two numbers are successors; and it grants
// it again. So each number says to which of two halves it belongs, a reset goes from one to
// the other, and where request and token differ in that the request is the later one. The
// primary token also says who got a token of its session, of which a second one has to
// wait, or the counters of tokens would have no bound.
//
// With several users at a process (which the paper has not) a secondary token is given back
// before the process asks for another group, so that it never has two. The users who wait
// there wait for those who are inside at the process, and only then does everybody else
// hear of it. A primary token needs no such care, and its holder asks at once.
//
// # Checked
//
// TestConformance and its like decide one process with three entries, two processes with
// two entries each (three with bounded numbers), three with one each, and two with three
// clients, which is two at one of them, that read and write. TestModels adds users that give
// up, a writer beside two readers that come back without end, which needs FIFO channels, and
// with TEST_LANE=long three processes with two, one and one entries under both admissions and
// all selections, two processes with bounded numbers and unlimited entries (all of their
// states), and three of those with three, one and one:
//
//	poundlock-lab check tokengme --variant bounded -n 2 --entries unlimited --property all
//	poundlock-lab check tokengme --variant bounded -n 3 --entries 3,1,1 --property all
//
// TestCombinations decides all properties of all forms and of what the catalogue has not,
// several groups with bounded numbers, clients of either and of both: with each admission two
// processes with two entries each, or three clients of two; with TEST_LANE=long each
// selection too, and three processes with two, one and one entries, or four clients of three
// members, three where numbers are bounded.
//
// TestLiteral runs the literal form and Algorithm side by side, in all states of two processes
// with two entries each and of three with one, and in simulations: they do the same. It sees
// that other forms do not. TestMutantsLiteral breaks the literal form.
//
// TestOverlappingReaders runs 64 readers and a writer at one of 3 to 5 members, and some more
// at the others, for ten minutes; a watch of each member asserts both bounds of waiting.
package tokengme
