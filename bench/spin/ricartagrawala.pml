/* Ricart and Agrawala's algorithm for four processes, with the clock on REPLY:
   the same machine as package algo/ricartagrawala, so that its reachable states are
   those of the checker, one for one, where counters are not shifted.

   A channel is unordered. At most one REQUEST and one REPLY are on their way from
   one process to another, since a process makes its next request only after every
   REPLY to the last one. So the multiset of messages in flight is two arrays of
   bytes, which Spin stores and compares faster than a channel with sorted send (!!)
   and random receive (??).

   Each step of a process is one d_step, as in the checker: no state lies inside a
   step. All four are options of one proctype, since four proctypes have a longer
   vector and take Spin a seventh more time. TRIES says, by bits, which processes
   try, once each. */

#ifndef TRIES
#define TRIES 15
#endif

#define N 4
#define REM 0
#define TRY 1
#define CRIT 2

byte clock[N];       /* the largest timestamp seen or used */
byte section[N];
byte request[N];     /* timestamp of the current request, 0 in the remainder */
byte missing[N];     /* replies not yet received */
byte deferred[N];    /* by bits: who gets a REPLY on exit */
byte left = TRIES;   /* by bits: who has still to try */
byte req[N * N];     /* timestamp of the REQUEST from i to j at N*i+j, 0: none */
byte rep[N * N];     /* 1 + the clock on the REPLY from i to j at N*i+j, 0: none */
byte inside;         /* processes in the critical section */

#define SEE(i, t) clock[i] = (t > clock[i] -> t : clock[i])

/* i answers j, if j is among those deferred */
#define ANSWER(i, j) if :: deferred[i] & (1 << j) -> rep[N * i + j] = 1 + clock[i] :: else fi

/* the REQUEST from j arrives at i */
#define ON_REQUEST(i, j) \
	:: d_step { req[N * j + i] -> \
		SEE(i, req[N * j + i]); \
		if \
		:: section[i] == CRIT || section[i] == TRY && \
			(request[i] < req[N * j + i] || request[i] == req[N * j + i] && i < j) -> \
			deferred[i] = deferred[i] | (1 << j) \
		:: else -> rep[N * i + j] = 1 + clock[i] \
		fi; \
		req[N * j + i] = 0 \
	}

/* the REPLY from j arrives at i */
#define ON_REPLY(i, j) \
	:: d_step { rep[N * j + i] -> \
		SEE(i, rep[N * j + i] - 1); \
		rep[N * j + i] = 0; \
		missing[i]--; \
		if \
		:: missing[i] == 0 -> section[i] = CRIT; inside++; assert(inside == 1) \
		:: else \
		fi \
	}

#define PROCESS(i, a, b, c) \
	:: d_step { section[i] == REM && (left & (1 << i)) -> \
		left = left & ~(1 << i); \
		clock[i]++; \
		section[i] = TRY; request[i] = clock[i]; missing[i] = N - 1; \
		req[N * i + a] = request[i]; req[N * i + b] = request[i]; req[N * i + c] = request[i] \
	} \
	:: d_step { section[i] == CRIT -> \
		section[i] = REM; request[i] = 0; inside--; \
		ANSWER(i, a); ANSWER(i, b); ANSWER(i, c); \
		deferred[i] = 0 \
	} \
	ON_REQUEST(i, a) ON_REQUEST(i, b) ON_REQUEST(i, c) \
	ON_REPLY(i, a) ON_REPLY(i, b) ON_REPLY(i, c)

active proctype all() {
end:	do
	PROCESS(0, 1, 2, 3)
	PROCESS(1, 0, 2, 3)
	PROCESS(2, 0, 1, 3)
	PROCESS(3, 0, 1, 2)
	od
}
