// Package e2e tests clusters of real processes: servers that are killed and
// restarted empty, and clients that share a file which is right only under the
// lock. It has no code but its tests.
package e2e
