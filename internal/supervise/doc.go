// Package supervise runs a command that must not outlive a lease.
//
// Run is called by a process that holds a lock, the supervisor. The command gets
// its own process group, so that it can be signalled and ended with everything it
// started, and the terminal's foreground when there is one.
//
// The obvious way, a parent that kills its child when the lock is lost, fails when
// the parent is killed or stopped itself: the command then goes on and the lock's
// next holder is not alone. Two more processes close that hole; both are this
// program, started again:
//
//   - The gate is what the supervisor starts. It waits on a pipe and becomes the
//     command only when it is told to, which happens after the watchdog knows its
//     process group. If the supervisor dies in between, the pipe ends and so does
//     the gate.
//   - The watchdog, in a session of its own, reads the process group and the ends
//     of the lease from a pipe. When the pipe ends without a goodbye, or when the
//     last lease end is about to pass, it ends the group. If the supervisor has ended, and all of
//     the group has for certain, it gives up the lock in its place: its program knows how (SetFarewell).
//
// What leaves the process group (setsid, the jobs of an interactive shell) is not
// followed, and a process of another user, such as that of a set-uid program, cannot be
// ended. Where this user may make a control group the command is in one, which the kernel
// ends as a whole; where not, the user is told what cannot be ended. No lease excludes that the whole machine pauses between a check and
// the side effect that it allowed: the fencing token is for that.
package supervise
