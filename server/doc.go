// Package server is the daemon: one member of a cluster that holds locks in
// memory only. It hosts the servers' half of Sigma for every lock that clients
// use, and answers what it knows about them.
//
// A server that is to end drains first, or hands its table over to the process that
// goes on in its place: then nobody loses anything.
//
// A server keeps nothing on disk. One that crashes may be restarted at once,
// empty, under the same name; clients notice by its incarnation. How many may do
// so while somebody waits for or holds a lock is a property of the size of the
// cluster: one of four, two of seven, three of ten.
package server
