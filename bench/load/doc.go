// Package load measures lock services: it loads them from client processes and
// reads one clock, which all processes of a machine share.
//
// A Crew is a number of worker processes, each of them this very program started
// again, with as many clients as its users need. Every user of a load locks and unlocks
// one name, in a loop, and notes four instants: when it called Lock, when Lock returned,
// when it called Unlock, and when Unlock returned. What is printed follows from these
// alone, merged over all processes:
//
//   - an acquire is from the call of Lock to its return, while nobody else wants
//     the name;
//   - a release is from the call of Unlock to its return: how long it keeps its
//     caller;
//   - a hand-over is from the call of Unlock in one process to the return of Lock
//     in another one that had called it before. Of users that share the lock it is
//     from the last of them to leave, to the first that does not share with them.
//
// A Window judges itself with package history, and writes event files for it.
//
// A window opens when every user has had the lock and the warm-up is over, so that
// neither connections being made nor cold processes are measured.
//
// The system under test is behind the interface Client: the same loops and the same
// clock measure different lock services.
package load
