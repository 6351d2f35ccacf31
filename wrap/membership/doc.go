// Package membership makes an algorithm for mutual exclusion, or for groups, tolerate
// crashes of its processes, new lives of them and partitions: it runs the algorithm in
// instances, and begins a new one with those who are there.
//
// # Model
//
// n processes, which are the users; channels as the algorithm needs them; and
// protocol.LeaseDetector among members. Processes crash and come back empty, and sessions
// break at any time. Incarnation 1 is the first life: those of all members begin as one
// instance. A later life begins alone.
//
// # Properties
//
// Exclusion, of groups where the algorithm has them, whatever happens. Once faults are
// over and a majority of all processes have sessions, each with each other and with nobody
// else, each of their users gets in, as far as the algorithm promises it. Entries stay concurrent while it restarts: who is inside stays
// there, and others of its group come in beside it. There are two exceptions: who wants the group of the last old requests, and comes when
// another group was before them; and faults that overlap so that two are in instances that do not have both, of
// which one has to leave its own, when its user is outside. A process without a
// majority is in no instance: a process that is inside is ejected, and who tries waits, or is told
// protocol.NoMajority (TryOnce, and option tell). When it has sessions again it joins.
//
// An instance has an epoch, a round and a coordinator, which each process joins in growing
// order. A process is in an instance only while it has had sessions, without a break since
// it joined, with a majority of all processes, all of them members. It joins another one
// only when everybody whom that leaves out, and who may count on a session with it, has
// lost that session and knows it (else it revokes the session and waits). Two instances
// have a member s in common on which p counts in the older and q in the newer one. s
// joined the newer one after the older one, and p was then a member of the newer one,
// which has not begun before p joined it too, or p had lost s. So nobody is in the older
// one when the newer one begins.
//
// That argument needs that p's session with s is the one that s had when it joined. So a
// coordinator says to each member which statement of its sessions a RESTART is based on,
// and one whose sessions have changed since does not answer; a process that was in no instance
// answers before the others are asked, and each of them must have had its JOIN in the
// present session.
//
// A user who is inside when its process joins stays there, and is an old request of the first group: whoever is in another
// one waits for its LEAVE, and so does RESUME. Nobody of the older instance meets it: to that one it is a
// process that never leaves. But before the newer one begins some of its members may not have joined, and owe
// this process nothing: so until START, which comes when all have, its user counts on those alone with which it has had sessions since it
// entered. Each of these joins no instance without it while that session lasts, so that it is ejected before another
// majority begins without it.
//
// The tag of a process, its epoch and whether it runs, never decreases while it is in
// instances, does not change while its user is inside but for such a join, and is the same for all that are
// inside (invariant recovery/tags), where START has come to them.
//
// Fencing tokens, where the algorithm has them: that of an entry is larger than those of all that ended before it
// and that it does not share with. It is made of the epoch, and of what the algorithm says in its instance. Old requests
// have tokens between two instances, in the order of their groups. Where a majority are new lives they may not have heard of
// a round: but a round is at least the clock of its coordinator, in milliseconds. So tokens grow over a restart of all members as
// long as clocks do. See token.go for how many there are.
//
// An instance begins with first states of the algorithm, in the old lives and the new ones, and takes no message of an
// older one. So what an algorithm counts, such as the bounded numbers of TokenGME, starts again with each instance, wherever a reset
// of these numbers had got to. Only epochs grow without a bound, with the restarts.
//
// Progress: who decides is the least process in reach, and a process answers its RESTARTs
// only. So when faults are over, those of the majority C have one coordinator, its least
// process c, without a message. Each has told c where it is, or will: a process that is in an
// instance sends NOTIFY when its coordinator changes, and then at each change of the
// instance or of a session with a member; a process that is in none has said JOIN to all in reach, in
// each session, unless it was its own coordinator, which it is no more. c waits until
// everybody in reach, whom it knows to be a member of something, has said something. Where
// two are in instances that do not have both, neither tells the changes of their session:
// c asks the one with more such strangers to leave, until there is none. Then whatever c
// knows of sessions of C becomes true, and it begins an instance of all of C, unless it
// leads one that is whole. All answer it: they have sessions with each other, nobody
// outside C has one with them any more when leases have run out, users leave, each has the
// JOINs of the others, and who has joined a newer epoch says so, to which c answers with a
// newer one. Each has joined finitely many that are not of c, so that one instance of c is
// the last. In it START, LEAVE and RESUME arrive.
//
// A session that broke carries nothing of its instance any more even when it is restored:
// to the algorithm the messages of its end are under way for ever.
//
// # Complexity
//
// At most 5(n-1) messages a crash: NOTIFY, RESTART, DONE, START and RESUME, n-2 each. At
// most 5(n-1) a join, n-1 of each kind: in place of NOTIFYs there are JOINs, but where the
// least process joins, whose NOTIFYs are those of all others. A process asked to leave
// says JOIN once more, which takes faults that overlap. LEAVEs take the place of the
// messages that an old request has sent in vain: at most n-1 each. Both bounds are for one
// fault at a time and n-1 sessions that begin at once; faults that overlap share restarts,
// or repeat them. A user that tries while old requests are served costs a WANT and a START, in place of REQUESTs; and the first
// one that does not fit up to n-1 WANTs more, to tell those who are inside. NOTIFY and DONE carry up to n+4 integers, the others up to four, a
// message of the algorithm one more.
//
// # Source
//
// N. Mittal, P. K. Mohan, "A priority-based distributed group mutual exclusion algorithm
// when group access is non-uniform", J. Parallel Distrib. Comput. 67(7), 2007,
// doi:10.1016/j.jpdc.2007.02.007, section 5.3.
//
// # Deviations
//
// The paper has a perfect detector and no joins, so that the number of crashes names an
// instance. Here it is the epoch. The coordinator is the least process in reach, which
// need not have been in the instance before; it does not wait for NOTIFYs that agree: who
// is told to go on without somebody revokes its lease. START goes to every group of old
// requests, with how many LEAVEs it waits for and to whom its own go. In the paper a RESTART waits until the user is
// outside; here it goes on inside, as an old request that has been served, and WANT lets others of its group in (with three phases). A process
// that exits while a RESTART waits for it does not tell the old instance. Without RESUME (option
// phases = 2), or without old requests either (1), the coordinator's own process waits in
// place of all others, which is enough because an algorithm lets nobody in at first
// without a message of the process that may enter alone, or of all.
//
// Where sessions are not transitive for long, a majority may have to wait. Who lacks one with
// a member cannot join: it holds up its coordinator until the instance breaks that was there
// before, and is then left out of the next one, if the coordinator is the same and is in an
// instance. And the least process in reach is the coordinator even of those who could have
// a majority without it, and not with it.
//
// # Checked
//
// TestModels explores three processes. With Suzuki-Kasami, with each number of phases: a
// crash; a crash and a join; and a session that breaks. With TokenGME and RA2 a crash, with
// each number of phases, and the others with three, with fewer behind TEST_LANE=long. Those of TokenGME's several form have a
// process that wants either of two groups, and those of the bounded form restart in the middle of resets.
// TestModelsOfPartitions breaks both sessions of one process before anything else happens: it
// is cut off, comes back and joins. Where each of the two breaks at any moment, models with one
// entry at most, and with channels that keep their order, are decided for finite runs.
//
// Concurrent entry is decided in these models, too, where restarts have three phases and serve one group; TestConcurrentEntry sees
// that fewer phases lack it.
//
// TestStorm runs all of these in worlds of up to five processes in which every message,
// session, user and fault comes at random, with each number of phases, judges each step, and
// then ends all faults: everybody gets in, twice. It judges the fencing tokens of all entries, in half of the worlds until somebody crashes, and
// in the others, where clocks run, throughout; so does TestRestartOfAll, which sees where clocks stand still.
// TestFencing decides it for small models. TestBill and TestCosts count messages by
// kind. In TestOverlap, where up to a crash and a join come every 40 ms, a fault costs at most
// 0.63, 0.71 and 0.76 of 5(n-1) messages with three, five and nine processes. TestParted and
// TestPartition cut five processes in two, in one direction or both. TestCutForGood cuts two
// from each other for ever. TestMutants removes each guard once, and forgets each step that
// the argument above needs.
package membership
