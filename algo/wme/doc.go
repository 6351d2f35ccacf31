// Package wme is weak mutual exclusion over a replicated object: users enter a critical section
// one after the other, and what they do there are operations on an object of which each process
// has a copy. Suspicions may be wrong: a user that is falsely suspected is ejected, may not know
// it for a while, and all that it does meanwhile is in vain. Of each of its operations it hears
// the truth: an outcome, or that it was not executed and never will be.
//
// In nice runs a token goes from one user to the next, and no consensus is needed. Its owners number
// what they do: an operation, or a grant of the token, is a record, and all processes log them in
// the order of their numbers. An operation is committed when a majority has logged it. An owner
// has one operation open, and passes the token on with none, so that all operations but the last
// one are committed.
//
// When a process suspects the owner the epoch ends: it votes, logs nothing any more in this epoch,
// and the others follow. A process that has the votes of a majority proposes the one with the largest number,
// which has all that was committed, as what the next epoch begins with; consensus decides among
// the proposals. What is in the decision is executed, also an operation of an owner that is
// ejected then; what is not is lost, and nobody has executed it.
//
// # Model
//
// n processes of which a majority is up, asynchronous; channels need not be FIFO; an eventually
// perfect failure detector, which may be wrong for any time; uniform consensus, one instance an
// epoch. A process that comes back has lost everything. It takes part from an epoch on that was
// decided after it came back, and once it has got the object; before, it counts as crashed.
//
// # Properties
//
// What is done to the object, as history.Weak judges it: one-copy, contiguous, precedence, fresh,
// outcome, failed; and that no copy lags, and nobody is ejected for nothing. docs/verification.md has the
// names of the paper, and what judges each. Not that at one instant at most one user believes to be inside. Once nobody is
// suspected by mistake any more: starvation freedom, every exit is answered at once, every
// operation has an outcome.
//
// # Complexity
//
// Without suspicions, in steps and messages: enter 0 and 0 with the token, else 2 and 2(n-1); exit
// 0 and 0, or n-1 if somebody waits; an operation, as WME-1, 2 and n^2-1, and as WME-2, 2 to its
// outcome, 3 to the last copy, and 3(n-1). TestCosts counts them. To end an epoch takes n(n-1)
// votes and one consensus. A vote has O(n) integers and a few operations, however long the run is.
//
// Memory: a process keeps the operations that not all have executed, and of those that it has executed itself
// at most as many as option keep says, and as many bytes as option room. Messages that come before their time
// wait: at most 4096, and at most room; those whose time comes last are dropped, and when it has come
// the others are asked for what was in them. A process that lacks an operation logs keep after it, or room, and
// then no more until it has got it: what it does not log it does not acknowledge, so that it may as well be late. What
// a decision brings, or an answer to what it lacks, is added. Beside that there are n votes and the
// operations of one message, each of which has at most carry+1 of them.
//
// # Source
//
// P. Romano, L. Rodrigues, "An Efficient Weak Mutual Exclusion Algorithm", International Symposium
// on Parallel and Distributed Computing, 2009, sections 3 to 5.
//
// # Deviations
//
// As printed the algorithm is not safe. What is corrected has names in corrections.go, and docs/errata-wme.md has a counterexample
// of each, which TestErrata finds where it is left out. Form "literal" has no correction. Clauses of Figures 1, 2 and 4 are methods in
// figure1.go and figure2.go, with their lines.
//
// Not in the paper: a vote carries the last records only (option carry), because all before
// are committed, and who lacks some asks for them (SYNC, RECORDS, AHEAD, FETCH, STATE); what
// everybody has executed is dropped (option stability); processes come back; a user may give up. The
// log has operations alone, each with the number of the one before: a grant needs no majority, and
// of several ones in a row nobody else may have heard when the epoch ends, so that they could not
// be asked for. A process that has the token, and which requests were granted, is all that is left of them.
//
// # Checked
//
// TestStorm, TestStormConsensus, TestStormSessions and TestStormRaft: random worlds of 2 to 5
// processes with false suspicions, crashes of
// a minority, returns and decisions at any time; with TEST_LANE=long, 200 000 of each form.
//
// TestModels: all states of small models, with messages in any order and decisions of any proposal; with
// TEST_LANE=long two users with three sections and two false suspicions, and three processes with one
// user, two operations and a false suspicion. The figures, and what is out of reach, are in
// docs/verification.md. TestModelsRoom and TestStormRoom: the same where there is room for next to nothing.
//
// TestMutants: each guard broken once, and what notices it; with TEST_LANE=long, all of them.
package wme
