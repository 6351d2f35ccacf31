// Package ra2 is an algorithm for group mutual exclusion by permission, in which a process
// that has the permission of all, a leader, invites those who wait for the same group, its
// followers: they need no permission any more.
//
// A leader may be out before the followers whom it has invited, and a follower may have given
// its permission away to somebody who wants another group. So processes tell each other in
// a vector which request of each was granted by invitation last, and who has all permissions
// does not lead before those are out again who were invited into another group.
//
// # Model
//
// n processes, reliable FIFO channels, no failures, asynchronous. A user wants one group at a
// time.
//
// # Properties
//
// Group mutual exclusion; no deadlock; starvation freedom: a request is overtaken by those of
// leaders that come before it by (timestamp, id), and of whom these invite while they are
// inside; concurrent entry: where only one group is wanted, nobody waits for anybody to
// leave. The holder of an exclusive group is inside alone, and invites nobody.
//
// The fencing token of an entry is the (timestamp, id) of its leader's request, as one number.
// Leaders of different groups are inside in the order of these: the one that is inside later has replied to the
// other one before, when its own request was the later one, or before it made that, which then has a
// later timestamp because its process knew the other one. No leader of another group is inside between a leader
// and the last of its followers. So the tokens of those that do not share are in order.
//
// FIFO channels are needed for all of that: requests are numbered by counting them, and the
// vector is told by its differences. TestChannels shows what is lost without them.
//
// # Complexity
//
// At most 3(n-1) messages an entry over all entries of a run, and 2(n-1) at low load: n-1
// REQUESTs; about as many REPLYs, because a second one that a follower sends spares another one the
// other way; at most one START from each other process. Waiting two message delays;
// synchronization delay one for a leader, two for a follower; concurrency n. A REQUEST has
// two integers, a REPLY two and a START one, and both what changed of the vector since the
// last message to the same process: up to n entries, of one or of two integers (option
// entry). O(n) integers of state. A START carries the timestamp of the leader, too, which is for
// fencing tokens, and not counted.
//
// # Source
//
// Y.-J. Joung, "The Congenial Talking Philosophers Problem in Computer Networks", Distributed
// Computing 15(3), 2002, doi:10.1007/s004460100069. N. Mittal, P. K. Mohan, "A Priority-Based
// Distributed Group Mutual Exclusion Algorithm when Group Access is Non-Uniform", Journal of
// Parallel and Distributed Computing 67(7), 2007, sections 1.1, 4 and 4.3. M. Singhal,
// A. Kshemkalyani, "An Efficient Implementation of Vector Clocks", Information Processing
// Letters 43(1), 1992.
//
// # Deviations
//
// This is a reconstruction. Joung's paper was not at hand but for its abstract. Leaders,
// followers and invitations, the costs, a vector of size n in messages and its compression are
// what Mittal and Mohan say of it; how they fit together was found here, and checked. In
// particular: what the vector holds (numbers of requests, where the text speaks of
// timestamps), what a REPLY says besides, the second REPLYs, and whom a leader invites
// (option invite). A leader may count as invited, too (option selfgrant): it changes
// nothing but the size of messages.
//
// # Checked
//
// By TestModels, all properties, on FIFO channels, three processes with one entry each: where
// one wants group 1, one 1 or 2, and one 2, and with TEST_LANE=long also where each try is for
// one of two groups, also with invite=entry, or for one of two and an exclusive one; besides,
// with more entries, one that wants 1 and two that want 2, two each, and the first three with
// 2,1,1:
//
//	poundlock-lab check ra2 -n 3 --wants p1=1 --wants 'p2=1|2' --wants p3=2 --property all
//	poundlock-lab check ra2 -n 3 --groups 2 --property all
//	poundlock-lab check ra2 -n 3 --groups 2 --option invite=entry --property all
//	poundlock-lab check ra2 -n 3 --wants '!w|1|2' --property all
//	poundlock-lab check ra2 -n 3 --wants p1=1 --wants p2=2 --wants p3=2 --entries 2 --property all
//	poundlock-lab check ra2 -n 3 --wants p1=1 --wants 'p2=1|2' --wants p3=2 --entries 2,1,1 --property all
//
// Properties of finite runs alone: two processes with unlimited entries, for two groups and an
// exclusive one. Requests there are apart by 3 at most: steps beyond that are cut:
//
//	poundlock-lab check ra2 -n 2 --wants '!w|1|2' --entries unlimited
//
// TestVector compares differences with whole vectors in all states of the first of these
// models, and in simulations of 5 and 30 processes; TestMessages simulates 10, TestConcurrency 20.
package ra2
