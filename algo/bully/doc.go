// Package bully implements the election of Garcia-Molina: who notices that the leader has
// crashed asks all processes with higher ids, and leads if none of them answers. So the live
// process with the highest id bullies its way to the lead.
//
// # Model
//
// n processes, reliable channels (FIFO not needed). Processes crash and come back empty, as
// a new incarnation. The time-out exceeds a round trip, with what both ends take: the model
// is synchronous. The failure detector may be wrong, but tells of each crash and of each
// mistake in the end. At first the highest id leads, and all know.
//
// # Properties
//
// In the end all live processes follow the live one with the highest id, whoever elected and
// however many did at once. The epochs of one process never decrease, and no two processes
// lead one epoch, also where the time-out is too short, or a partition separates them: then
// there may be two leaders for a while, and whoever needs safety must refuse the older epoch.
//
// # Complexity
//
// When the leader has crashed, the second highest process notices, and no other: one
// ELECTION to the dead leader and n-2 COORDINATORs. When the lowest process does, or all do
// at once: n(n-1)/2 ELECTIONs with those to the dead leader, (n-1)(n-2)/2 OKs and n-2
// COORDINATORs, so O(n^2). One round trip until the time-out, and one delay. Two integers a
// message; O(n) bits of state.
//
// # Source
//
// H. Garcia-Molina, "Elections in a Distributed Computing System", IEEE Transactions on
// Computers C-31(1), 1982, doi:10.1109/TC.1982.1675885.
//
// # Deviations
//
// Messages carry an epoch, a pair of round and leader, which the paper's have not: each new
// leader chooses a round that is larger than all that it has heard of. COORDINATOR goes to
// the lower processes that are not suspected; of the higher ones none answered. Who leads
// answers an ELECTION with OK and its COORDINATOR, in place of another election of the same
// epoch, and tells who was suspected when it no longer is. A leader that is behind, because
// it was cut off or has recovered, hears of the newer epoch by an ELECTION, and begins one
// that is newer still. A process that recovers asks all others, not only the higher ones, since it has
// forgotten the epochs that it led. A process that waits for COORDINATOR asks again after the second
// time-out only if the detector suspects who said OK: without a detector it would be always.
//
// # Checked
//
// TestHolds explores three processes with two crashes, with two crashes and a recovery, with
// a crash and a mistaken suspicion, and with two of these, and four processes with two
// crashes: all properties hold, and every election ends. TEST_LANE=long adds a crash, a
// recovery and a mistake together, and two crashes and two recoveries. TestTwoLeaders finds
// two leaders in five steps where time-outs are too short. TestBestCase and TestWorstCase
// count messages for 3 to 20 processes. TestMutants removes each guard: none survives.
package bully
