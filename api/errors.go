package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// codes are the standard codes of what can go wrong. docs/api.md has this table.
var codes = map[pb.Reason]connect.Code{
	pb.Reason_REASON_INVALID:         connect.CodeInvalidArgument,
	pb.Reason_REASON_UNKNOWN_SESSION: connect.CodeNotFound,
	pb.Reason_REASON_UNKNOWN_GRANT:   connect.CodeNotFound,
	pb.Reason_REASON_NOT_ACQUIRED:    connect.CodeFailedPrecondition, // or deadline_exceeded: see clusterError
	pb.Reason_REASON_NO_QUORUM:       connect.CodeUnavailable,
	pb.Reason_REASON_LOST:            connect.CodeAborted,
	pb.Reason_REASON_RELEASED:        connect.CodeFailedPrecondition,
	pb.Reason_REASON_OTHER_NAMES:     connect.CodeInvalidArgument,
	pb.Reason_REASON_LIMIT:           connect.CodeResourceExhausted,
	pb.Reason_REASON_SHUTTING_DOWN:   connect.CodeUnavailable,
}

// failf is an error with its reason as a detail.
func failf(reason pb.Reason, format string, args ...any) *connect.Error {
	return failure(codes[reason], reason, fmt.Errorf(format, args...))
}

func failure(code connect.Code, reason pb.Reason, err error) *connect.Error {
	failed := connect.NewError(code, err)
	if detail, err := connect.NewErrorDetail(&pb.Failure{Reason: reason}); err == nil {
		failed.AddDetail(detail)
	}
	return failed
}

// clusterError says why the cluster did not do what was asked for.
func clusterError(err error) *connect.Error {
	text := errors.New(plain(err))
	switch {
	case errors.Is(err, poundlock.ErrNoQuorum):
		return failure(connect.CodeUnavailable, pb.Reason_REASON_NO_QUORUM, text)
	case errors.Is(err, poundlock.ErrClosed):
		return failure(connect.CodeUnavailable, pb.Reason_REASON_SHUTTING_DOWN, text)
	case errors.Is(err, context.DeadlineExceeded):
		return failure(connect.CodeDeadlineExceeded, pb.Reason_REASON_NOT_ACQUIRED, text)
	case errors.Is(err, context.Canceled):
		return failure(connect.CodeCanceled, pb.Reason_REASON_NOT_ACQUIRED, text)
	}
	return failure(connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED, text)
}

// plain is the text of an error without the name of the Go package: clients know none.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "poundlock: ") }

// tooLate is why a wait of that length has ended.
type tooLate time.Duration

func (e tooLate) Error() string { return fmt.Sprintf("not within %v", time.Duration(e)) }
func (e tooLate) Unwrap() error { return context.DeadlineExceeded }

// leaving is why a call ends before it is done: its client has gone, or its place was given up.
func leaving(ctx context.Context) error {
	var why *connect.Error
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	return clusterError(ctx.Err())
}

func unknownSession() *connect.Error {
	return failf(pb.Reason_REASON_UNKNOWN_SESSION,
		"no such session: it was closed, its lease ran out, or another process opened it; open a new one")
}

func unknownGrant(id string) *connect.Error {
	return failf(pb.Reason_REASON_UNKNOWN_GRANT, "the session has no grant %q", id)
}

func lostError(g *pb.Grant) *connect.Error {
	return failf(pb.Reason_REASON_LOST, "grant %q: %s", g.GrantId, g.Reason)
}

func shuttingDown() *connect.Error {
	return failf(pb.Reason_REASON_SHUTTING_DOWN, "this service is about to end: connect to another one")
}
