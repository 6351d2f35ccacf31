// Package quorum has the sizes of quorums and what they can stand, and the voting
// sets of Maekawa's algorithm.
package quorum

// TwoThirds is the smallest m such that two sets of m out of n members still
// share one after fewer than n/3 members lost their memory: ceil(2n/3).
func TwoThirds(n int) int { return (2*n + 2) / 3 }

// Majority is the smallest m such that two sets of m out of n members share one.
func Majority(n int) int { return n/2 + 1 }

// MemoryLosses is how many members may lose their memory while two sets of m out
// of n still share one that remembers: 2m-n-1.
func MemoryLosses(n, m int) int { return 2*m - n - 1 }

// Silent is how many members may be silent while m out of n still answer.
func Silent(n, m int) int { return n - m }
