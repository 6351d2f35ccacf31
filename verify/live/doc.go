// Package live runs algorithms on a network: the workload, the judge and the report of package sim, with the nodes of package
// node in place of simulated processes. What sim predicts can so be put beside what a network does.
//
// All processes are nodes in this program, over TCP on the loopback interface. Between any two of them stands a proxy of
// package faultnet, which delays what passes each way by draws from Config.Delay. A stream keeps its order, so
// channels are FIFO; and what a node sends at once takes one draw. An acknowledgement takes one, too, so that
// with delays that vary messages wait a little longer for what went before than in the simulator.
//
// A scenario of faults is carried out: cuts and partitions by the proxies, a crash by a node of which nobody hears any more, and
// what follows a crash by a new node. A suspicion is what a node makes of what it hears.
//
// Users begin when all members have met, which is time 0. One clock has all times of a run, those of a history too. A
// user is inside from when its node says so until it tells the node that it leaves: what is judged lies within
// what is true. Costs depend on the machine; nothing here is repeatable but the workload.
package live
