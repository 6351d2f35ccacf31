// Package reliable makes channels reliable that are not: what is not acknowledged is sent
// again, and what arrives twice is dropped.
//
// It does so in two places with one mechanism, the Window. A node has a Window for each
// session, on connections that keep the order and break. Wrap puts one at each end of
// each channel of an algorithm, on channels that lose messages, repeat them and deliver
// them in any order, for the simulator and the checker: an algorithm whose model has
// reliable channels becomes one that bears such channels.
//
// # Model
//
// Channels are fair-lossy: of a message that is sent again and again some copy arrives.
// They may repeat a message any number of times, and order does not matter. Members may
// lose their memory where the algorithm bears that, if each life has an incarnation that
// is larger than those before it (Start.Arg). Processes that crash and leases that lapse
// are as in the algorithm's own model.
//
// # Properties
//
// Between one life of a process and one life of another, as long as both go on: each
// message is given to the algorithm once, and in the order of sending if it needs FIFO
// channels. No life takes what was sent to or by another one, and no message crosses
// from one lease into the next. What is not acknowledged when an end forgets, crashes or
// loses its lease may be lost, as channels of the algorithms here may lose it too.
//
// A frame names the lives at both ends. A client hears of a new life of a member from
// Restore. Where there are no leases, and so no Restore, a member refuses a frame that is
// not for its present life by saying which that is; the first frame to a member is then
// always in vain. Whoever sent it takes notice if it still waits for that frame to be
// acknowledged: late copies of what has arrived tell nobody anything. In a new lease a client speaks first: what a member sends to it before
// is lost, as on a network whose clients connect.
//
// An incarnation of 0 means that the member never forgets; that it did so all the same
// is noticed at the latest when more is acknowledged than was sent, and panics. Where
// the algorithm's own model knows no incarnations (Sigma as published), the wrapper asks
// the driver for them (Info.Incarnations), and the algorithm does not see them.
//
// # Complexity
//
// One ACK for each message, and one more integer in it, or three where members may
// forget. A channel holds what is unacknowledged, and the numbers that came out of order.
// The older half of what is unacknowledged is sent again together, so that what gets
// through grows with what waits: a flow of r messages in a resend interval leaves in the
// order of r log r of them unacknowledged, however many are lost. A channel is given up, as
// if the other end had crashed, when 65 536 messages or 4 MiB are unacknowledged.
//
// # Source
//
// The abstractions are those of C. Cachin, R. Guerraoui, L. Rodrigues, "Introduction to
// Reliable and Secure Distributed Programming", 2011, chapter 2: fair-loss and perfect
// links.
//
// # Deviations
//
// A link of the book sends everything again for ever, and remembers every message that
// it has delivered. Here an acknowledgement ends the one, and numbers shorten the other:
// one for each channel, and those that came before their time.
//
// # Checked
//
// TestModels explores every algorithm of this repository behind the wrapper, with lost
// and repeated messages, crashes, losses of memory and lapsed leases; what each model is
// stands in docs/verification.md. TestStale shows that what the checker forgets hides
// nothing. TestMutants breaks the wrapper in 25 named ways; the one that survives only sends
// something later.
package reliable
