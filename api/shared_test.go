package api_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestShared: clients of two daemons and of the library have one lock together, and nobody else has it meanwhile.
func TestShared(t *testing.T) {
	_, config := startCluster(t)
	one, two := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	library, err := poundlock.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			ctx := t.Context()
			a, b := p.client(t, one), p.client(t, two)
			here, there := open(t, a, 10*time.Second), open(t, b, 10*time.Second)
			events, err := a.Watch(ctx, &pb.WatchRequest{SessionId: here})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()
			book := func(session string, mode pb.Mode, groups ...string) *pb.LockRequest {
				return &pb.LockRequest{SessionId: session, Names: []string{"book"}, Mode: mode, Groups: groups, GrantId: "mine"}
			}
			read, err := a.Lock(ctx, book(here, pb.Mode_MODE_SHARED))
			if err != nil {
				t.Fatal(err)
			}
			also, err := b.Lock(ctx, book(there, pb.Mode_MODE_GROUP, "shared"))
			if err != nil {
				t.Fatal(err)
			}
			any := book(there, pb.Mode_MODE_GROUP, "red", "shared", "blue")
			any.GrantId = "any"
			one, err := b.Lock(ctx, any)
			if err != nil || one.Grant.Group != "shared" {
				t.Fatalf("whoever takes any of three groups has %v, %v", one, err)
			}
			if again, err := b.Lock(ctx, any); err != nil || again.Grant.Group != "shared" {
				t.Errorf("the same again is %v, %v", again, err)
			}
			other := book(there, pb.Mode_MODE_GROUP, "shared")
			other.GrantId = "any"
			_, err = b.Lock(ctx, other)
			wantFailure(t, "another Lock", err, connect.CodeInvalidArgument, pb.Reason_REASON_OTHER_NAMES)
			if _, err := b.Release(ctx, &pb.ReleaseRequest{SessionId: there, GrantId: "any"}); err != nil {
				t.Fatal(err)
			}
			g, err := library.RWMutex("book").RLock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, shared := range []*pb.Grant{read.Grant, also.Grant} {
				if shared.State != pb.State_STATE_HELD || shared.Group != "shared" || len(shared.Tokens) != 1 {
					t.Errorf("a reader has %v", shared)
				}
			}
			// Who does not share gets in nowhere.
			writer, err := poundlock.Dial(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if w, err := writer.RWMutex("book").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
				t.Errorf("a writer beside readers: %v, %v", w, err)
			}
			alone := startDaemon(t, config, api.Limits{})
			c := p.client(t, alone)
			elsewhere := open(t, c, 10*time.Second)
			for _, r := range []*pb.LockRequest{
				book(elsewhere, pb.Mode_MODE_EXCLUSIVE), book(elsewhere, pb.Mode_MODE_GROUP, "red"),
			} {
				r.Try = true
				_, err := c.Lock(ctx, r)
				wantFailure(t, fmt.Sprint(r), err, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED)
			}
			// The same Lock again is the same grant, and with another group it is none.
			again, err := a.Lock(ctx, book(here, pb.Mode_MODE_GROUP, "shared"))
			if err != nil || again.Grant.Tokens[0] != read.Grant.Tokens[0] {
				t.Errorf("repeated: %v, %v", again, err)
			}
			_, err = a.Lock(ctx, book(here, pb.Mode_MODE_EXCLUSIVE))
			wantFailure(t, "another mode", err, connect.CodeInvalidArgument, pb.Reason_REASON_OTHER_NAMES)
			status, err := a.Status(ctx, &pb.StatusRequest{SessionId: here})
			if err != nil || len(status.Grants) != 1 || status.Grants[0].Group != "shared" {
				t.Errorf("status: %v, %v", status, err)
			}

			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
			for session, c := range map[string]pb.LockServiceClient{here: a, there: b} {
				if _, err := c.Release(ctx, &pb.ReleaseRequest{SessionId: session, GrantId: "mine"}); err != nil {
					t.Error(err)
				}
			}
			r := book(elsewhere, pb.Mode_MODE_EXCLUSIVE)
			r.GrantId = "written"
			written, err := c.Lock(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			last := max(read.Grant.Tokens[0], also.Grant.Tokens[0], g.Token())
			if w := written.Grant; w.Group != "" || w.Tokens[0] <= last {
				t.Errorf("the writer has %v after token %d", w, last)
			}
			if r, err := library.RWMutex("book").TryRLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
				t.Errorf("a reader beside a writer: %v, %v", r, err)
			}
			// It reads on, and others beside it.
			down, err := c.Downgrade(ctx, &pb.DowngradeRequest{SessionId: elsewhere, GrantId: "written", Mode: pb.Mode_MODE_SHARED})
			if err != nil {
				t.Fatal(err)
			}
			if w := down.Grant; w.Group != "shared" || w.State != pb.State_STATE_HELD || w.Tokens[0] != written.Grant.Tokens[0] || w.CertainMs == 0 {
				t.Errorf("it came down to %v", w)
			}
			beside, err := library.RWMutex("book").RLock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if beside.Token() <= written.Grant.Tokens[0] {
				t.Errorf("token %d beside %v", beside.Token(), down.Grant)
			}
			if err := beside.Unlock(); err != nil {
				t.Error(err)
			}
			if _, err := a.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: here}); err != nil {
				t.Error(err)
			}
			seen := ""
			for events.Receive() {
				if g := events.Msg().Grant; g != nil && g.State == pb.State_STATE_HELD {
					seen = g.Group
				}
			}
			if seen != "shared" {
				t.Errorf("the stream says group %q", seen)
			}
			for session, c := range map[string]pb.LockServiceClient{there: b, elsewhere: c} {
				if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: session}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
