// Package ra1 is Ricart and Agrawala's algorithm for groups: a process enters after every
// other process has replied to its request, and those who want the same group reply at
// once. Its process is that of package ricartagrawala.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), no failures, asynchronous. A user wants
// one group at a time.
//
// # Properties
//
// Group mutual exclusion; no deadlock; starvation freedom; concurrent entry: where only one
// group is wanted, nobody waits for anybody to leave. The holder of an exclusive group is
// inside alone. The fencing token of an entry is its (timestamp, id) as one number: entries that do not share
// follow it.
//
// # Complexity
//
// 2(n-1) messages an entry, always; waiting two message delays, synchronization delay one;
// concurrency n at best. Under load with several groups it is next to 1: requests for one
// group do not come together where one for another group has its timestamp between theirs.
// O(n) bits and three integers of state; two integers a REQUEST, none a REPLY.
//
// # Source
//
// Y.-J. Joung, "The Congenial Talking Philosophers Problem in Computer Networks", Distributed
// Computing 15(3), 2002, doi:10.1007/s004460100069. N. Mittal, P. K. Mohan, "A Priority-Based
// Distributed Group Mutual Exclusion Algorithm when Group Access is Non-Uniform", Journal of
// Parallel and Distributed Computing 67(7), 2007, section 1.1.
//
// # Deviations
//
// This is a reconstruction. It was made from the abstract of Joung's paper, which calls the
// algorithm a straightforward adaptation of Ricart and Agrawala's, and from what Mittal and
// Mohan say of its costs; its pseudo-code was not at hand.
//
// # Checked
//
// By TestModels, all properties, on channels that are not FIFO: three processes with one entry
// each, each try for one of two groups, and with TEST_LANE=long also for one of two and an
// exclusive one, for one of three, and of two with entries 2,1,1:
//
//	poundlock-lab check ra1 -n 3 --groups 2 --property all
//	poundlock-lab check ra1 -n 3 --wants '!w|1|2' --property all
//	poundlock-lab check ra1 -n 3 --groups 3 --property all
//	poundlock-lab check ra1 -n 3 --groups 2 --entries 2,1,1 --property all
//
// Properties of finite runs alone, of two groups and an exclusive one: two processes with
// unlimited entries (TestConformance), and three. Timestamps there are apart by 6 at most: steps
// beyond that are cut, so that starvation would be undecided:
//
//	poundlock-lab check ra1 -n 2 --wants '!w|1|2' --entries unlimited
//	poundlock-lab check ra1 -n 3 --wants '!w|1|2' --entries unlimited
//
// TestMessages and TestConcurrency are of simulations, with up to 20 processes.
package ra1
