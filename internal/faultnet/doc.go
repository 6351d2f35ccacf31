// Package faultnet is a bad network for tests and benchmarks: proxies between
// clients and servers that delay, cut and break what passes.
//
// A Proxy stands between any number of clients and one server. A Net is one
// Proxy for each pair of a client and a server, all with names, so that a test
// can cut {c1, c2} from {s3, s4}. Each client is given a slot table with the
// names of the servers and the addresses of its own proxies; the servers keep
// the table with their real addresses.
//
// What passes are byte streams, which a network never reorders and of which it
// loses nothing but the end: TCP repeats what was lost. So a cut does not take
// bytes out of a stream. It holds everything, the news of a closed connection
// too, and what is held arrives late when the cut heals. A new connection is
// accepted at once, by the kernel, but nobody answers on it. Messages overtake
// each other between connections, by jitter, and never within one.
package faultnet
