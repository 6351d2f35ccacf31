// Package workload is what the users of a run do, whatever carries out their requests: when they try, what they want, and how
// long they stay. Each quantity of each user has a stream of random numbers of its own, so that equal configurations are equal
// workloads, in virtual time and on a network.
package workload
