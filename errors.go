package poundlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/node"
)

// What callers branch on. A failed call returns an error that is one of them,
// or one about its arguments. Its text names the lock first, then what happened to it,
// and then why, each once.
var (
	ErrNotAcquired = errors.New("poundlock: not acquired")
	ErrLost        = errors.New("poundlock: lock lost")
	ErrNoQuorum    = errors.New("poundlock: no quorum of servers")
	ErrClosed      = errors.New("poundlock: client closed")
	ErrUnlocked    = errors.New("poundlock: unlocked already")             // of a second Unlock or Resign
	ErrMaxHold     = errors.New("poundlock: held for longer than allowed") // only with ErrLost
)

// A failure is one of the errors above for one lock, permit or election, as in
//
//	poundlock: lock "deploy" lost: leases at s1, s2 lapsed
type failure struct {
	kind error // the one of the above
	what subject
	why  error // nil: no more is known
}

// Error is one sentence: an error of this package within another one does not name the
// package again.
func (f *failure) Error() string {
	kind := plain(f.kind)
	switch {
	case f.what.noun == "":
	case f.kind == ErrLost:
		kind = f.what.String() + " lost"
	case f.kind == ErrNotAcquired:
		kind = f.what.String() + " " + kind
	default:
		kind = f.what.String() + ": " + kind
	}
	if f.why == nil {
		return prefix + kind
	}
	return prefix + kind + ": " + plain(f.why)
}

func (f *failure) Unwrap() []error {
	if f.why == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.why}
}

const prefix = "poundlock: "

// plain is the text of an error without the name of the package.
func plain(err error) string { return strings.TrimPrefix(err.Error(), prefix) }

// failed names the lock in an error; what is no sentinel yet is ErrNotAcquired.
func failed(name string, err error) error {
	f, isFailure := err.(*failure)
	isFailure = isFailure && f.kind != ErrLost
	if isFailure && f.what.noun != "" {
		return f
	}
	x := &struct { // in one piece
		failure
		name [1]string
	}{name: [1]string{name}}
	x.what = locks(x.name[:]...)
	switch {
	case err == ErrNotAcquired, err == ErrNoQuorum, err == ErrClosed:
		x.kind = err
	case isFailure:
		x.kind, x.why = f.kind, f.why
	default:
		x.kind, x.why = ErrNotAcquired, err
	}
	return &x.failure
}

// A subject is what an error is about, such as: lock "a". Its text is made when it is read: in an overload there are many errors,
// and nobody reads most of them.
type subject struct {
	noun  string // "": nothing in particular
	names []string
}

// locks is "lock "a"" or "locks "a", "b"".
func locks(names ...string) subject { return subject{"lock", names} }

func (s subject) String() string {
	quoted := make([]string, len(s.names))
	for i, name := range s.names {
		quoted[i] = strconv.Quote(name)
	}
	if len(s.names) == 1 {
		return s.noun + " " + quoted[0]
	}
	return s.noun + "s " + strings.Join(quoted, ", ")
}

// after is why with err, which ended the wait. The end of a context is not in its text: whoever set that bound
// knows it, and says it in better words.
func after(err, why error) error {
	if err == context.DeadlineExceeded || err == context.Canceled {
		return &silent{err, why}
	}
	return fmt.Errorf("%w: %w", err, why)
}

type silent struct{ ended, why error }

func (e *silent) Error() string   { return e.why.Error() }
func (e *silent) Unwrap() []error { return []error{e.ended, e.why} }

// ended is why ctx has ended: a cause of its own, where that is ctx.Err too.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ctx.Err()) {
		return cause
	}
	return ctx.Err()
}

// errUnsupported is why a lock was lost where no session has ended.
var errUnsupported = errors.New("too few support its holder")

// departed says what became of the sessions with servers that supported a holder, by
// the causes of their ends; nil without any.
func departed(servers map[node.Cause][]string) error {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(servers)) {
		slices.Sort(servers[cause])
		names := strings.Join(servers[cause], ", ")
		its, the, s := "their ", "", "s"
		if len(servers[cause]) == 1 {
			its, the, s = "its ", "the ", ""
		}
		switch cause {
		case node.CauseLapsed:
			parts = append(parts, the+"lease"+s+" at "+names+" lapsed")
		case node.CauseRestarted, node.CauseReplaced:
			parts = append(parts, names+" lost "+its+"memory")
		case node.CauseBye, node.CauseClosed:
			parts = append(parts, names+" ended "+its+"session"+s)
		default:
			parts = append(parts, the+"session"+s+" with "+names+" ended ("+cause.String()+")")
		}
	}
	if parts == nil {
		return nil
	}
	return errors.New(strings.Join(parts, ", and "))
}
