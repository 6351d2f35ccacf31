// Package e2e tests clusters of real processes: servers that are killed and
// restarted empty, networks that are cut, and clients that share a counter which
// is right only under the lock, or only with its tokens. What the clients saw is
// judged by package history, from the event files that they write. It has no code
// but its tests.
package e2e
