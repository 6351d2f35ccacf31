// Package diagram shows a run to a person: as text, one step a line; as a
// space-time diagram in SVG; and as a log for ShiViz, which draws such diagrams in a
// browser and searches them.
//
// A run is a list of steps with what each of them did, in which processes and
// messages are names and texts. So it does not matter who made it: the checker, the
// simulator, or a person who replays a scenario.
//
// # Which arrow ends where
//
// A step that delivers a message says its text, sender and receiver, and not when
// it was sent. Of equal messages on one channel the oldest arrives first; that is
// the run itself up to an exchange of equal messages. One that arrives although all
// copies have arrived is a repeated delivery of the last one. Those that a fault
// took from the channel come last: the messages to a process that crashed, and
// those between two whose lease lapsed.
package diagram
