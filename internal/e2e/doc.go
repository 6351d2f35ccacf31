// Package e2e tests clusters of real processes: servers that are killed and
// restarted empty, networks that are cut, and clients that share a counter which
// is right only under the lock, or only with its tokens. It has no code but its
// tests.
package e2e
