// Package registers lets an algorithm for shared memory run on a network: each process
// answers for the registers that it owns.
//
// The obvious way is one server that holds all registers. It would be a coordinator, with
// which mutual exclusion is easier. Where every register has one writer the memory can be
// shared out instead: a process writes its own registers where it is, without a message,
// and reads those of another one by READ and VALUE. So such a read takes two messages and
// two message delays, and what a register holds is never copied. OverMessages wraps an
// algorithm accordingly; one that has registers with several writers is refused.
//
// An access takes effect when its owner answers, between READ and VALUE, so that the
// registers are atomic. Channels need not be FIFO: a process has one access open to a
// register at a time, and so at most one message about it on its way.
//
// # Waiting
//
// Await is a READ that says which values end the wait. The owner answers when the
// register has one of them: at once, or when it writes one. So an Await takes two messages however
// long it takes, and the answer to it is the message that lets the next one in. In the form
// Polling the owner answers at once and the reader asks again: as one would do it who knows
// registers only, and with a number of messages that grows with the waiting.
//
// An answer says what the register held when it was sent. That the condition does hold
// when the answer arrives is the business of the algorithm, as it is where memory is shared.
package registers
