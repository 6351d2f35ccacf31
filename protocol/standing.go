package protocol

// A Section is where a user is.
type Section uint8

// The sections of a user, in their cyclic order. A user whose critical section
// was lost is in Lost until it exits. A user that called exit and has not been
// told rem yet is in Exit, and one inside with an operation open in Issue.
const (
	InRem Section = iota
	InTry
	InCrit
	InLost
	InExit
	InIssue
)

// Standing is what a process knows about one lock: a member about its users, a
// user that is inside about the members.
type Standing struct {
	Holders  []Request // whom the member supports or knows inside: several share
	Waiters  []Request // in the order of service
	Supports []ID      // the members that the user's critical section counts on
	Since    int64     // the time of the request that got it, 0 where unknown
}

// A Request is a user and the time of its request.
type Request struct {
	User  ID
	Since int64  // ns of the user's clock, 0 where unknown
	Token uint64 // the fencing token recorded for it here, 0 where unknown
	Group string // for people: the group that it shares with others or wants to, or a mark that equal groups share; "" is alone
}

// What a process may tell besides: drivers ask for these by As.
type (
	// An Inspector tells of a member what it knows about who is inside and who waits, and of a
	// user what its critical section rests on.
	Inspector interface{ Inspect() Standing }
	// A Queuer tells how many requests wait in the queue of a member, 0 at a user. It is asked
	// after each step.
	Queuer interface{ Waiting() int }
	// A Shower tells a person about its state, on one line, with processes written as in
	// Algorithm.Text.
	Shower interface{ Show() string }
)

// Show is what p tells a person, "" where it tells nothing.
func Show(p any) string {
	if s, ok := As[Shower](p); ok {
		return s.Show()
	}
	return ""
}

// As returns the T that p is or wraps, p being a process, a message or nil. What wraps another one
// says so by a method Unwrap() any, or Unwrap() []any where these are several, of which the first
// one counts that is a T: so a wrapper forwards nothing that it does not change.
func As[T any](p any) (t T, ok bool) {
	for p != nil {
		if t, ok = p.(T); ok {
			return t, true
		}
		one, several := inner(p)
		for _, q := range several {
			if t, ok = As[T](q); ok {
				return t, true
			}
		}
		p = one
	}
	return t, false
}

// inner is what p wraps. It is no part of As because a type switch in a function that has type parameters is slow.
func inner(p any) (one any, several []any) {
	switch w := p.(type) {
	case interface{ Unwrap() any }:
		return w.Unwrap(), nil
	case interface{ Unwrap() []any }:
		return nil, w.Unwrap()
	}
	return nil, nil
}

// Owner is the effect that tells whom alone a member supports from now on: To, whose request has the
// time Arg; To 0 and Arg 0: nobody. Joined tells that it supports To, too, from now on, in the group that Data is for
// people, and Parted that it does not any more. Joined of one that it supports alone tells that it shares. What a step
// gives back and takes again has not changed. They are for those who watch, and change nothing.
const (
	Owner  Do = 8
	Joined Do = 21
	Parted Do = 22
)

// Owner tells that this member supports the request that user c made at time, and no other; 0
// and 0: nobody.
func (o *Out[M]) Owner(c ID, time uint64) {
	e := o.effect(Owner)
	e.To, e.Arg = c, time
}

// Joined tells that this member supports the request that user c made at time, too.
func (o *Out[M]) Joined(c ID, time uint64, group string) {
	e := o.effect(Joined)
	e.To, e.Arg, e.Data = c, time, group
}

// Parted tells that this member does not support that request any more.
func (o *Out[M]) Parted(c ID, time uint64) {
	e := o.effect(Parted)
	e.To, e.Arg = c, time
}
