// Package hunt looks for runs that violate a property: at random, with all
// monitors on, in systems that are too large to be explored.
//
// # Runs
//
// Run i of seed s is a value: it depends on the algorithm, the Config, s and i,
// and on nothing else, such as how many workers there are. A run draws its size,
// its workload, its faults and how messages overtake each other. It is a swarm:
// each run has a random subset of the kinds of faults, because a fault that is
// always there hides what happens without it.
//
// A third of the runs are timed: package sim takes their steps, with delays,
// clocks, leases and pauses. The others have no time: any step that is possible
// may be next, and a scheduler draws which one. Schedulers are unfair in ways that
// break locks: channels with priorities that change, last in first out, frozen
// processes. Some runs are aimed: as soon as somebody enters, it is frozen, and
// members on which its critical section rests lose their memory. Nothing in this
// knows an algorithm; but it knows what kind of schedule breaks one.
//
// Where memory is shared a step is one access, and a run draws atomic or safe registers. In runs without time users that
// are alone in a group such as !r come down to r now and then, where Info.Shares.
//
// # Faults
//
// A run stays within the faults that the algorithm's model allows, and within
// its budget: with a quorum of m out of n members, which any two users share 2m-n
// of, fewer than that may be unsettled at a time (protocol.Algorithm.Unsettled), or
// lose their memory in one epoch where users make up for no losses; and n-m
// members are silent at most. Config.Break goes beyond the first of these.
//
// Where users share a replicated object, any proposal may be decided, suspicions come in storms, and members that
// crashed come back; history.Weak judges the object, and at the end all copies are alike and everybody gets in once
// more. A member that came back counts as crashed until it takes part again.
//
// # Findings
//
// A violation is minimised. The order in which steps were taken is a run of the
// model of package check too, so that the run becomes a list of its steps; delta
// debugging takes faults away, then users, then steps, as long as the rest, without
// what is then no longer possible, violates the same property. What is left is a
// scenario, and the checker is asked to replay it.
package hunt
