package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestProtocols: every call in every protocol, on one port.
func TestProtocols(t *testing.T) {
	_, config := startCluster(t)
	d := startDaemon(t, config, api.Limits{})
	var last uint64
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			c, ctx := p.client(t, d), t.Context()
			id := open(t, c, 10*time.Second)
			events, err := c.Watch(ctx, &pb.WatchRequest{SessionId: id})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()

			r, err := c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"b", "a"}, GrantId: "mine"})
			if err != nil {
				t.Fatal(err)
			}
			g := r.Grant
			if fmt.Sprint(g.Names) != "[a b]" || len(g.Tokens) != 2 || g.GrantId != "mine" || g.State != pb.State_STATE_HELD {
				t.Errorf("got %v", g)
			}
			if g.Tokens[0] <= last {
				t.Errorf("token %d of a after %d", g.Tokens[0], last)
			}
			last = g.Tokens[0]
			if g.CertainMs == 0 || g.CertainMs > 10_000 {
				t.Errorf("certain for %d ms", g.CertainMs)
			}
			again, err := c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a", "b"}, GrantId: "mine"})
			if err != nil || again.Grant.Tokens[0] != g.Tokens[0] {
				t.Errorf("repeated: %v, %v", again, err)
			}
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a"}, GrantId: "mine"})
			wantFailure(t, "other names", err, connect.CodeInvalidArgument, pb.Reason_REASON_OTHER_NAMES)

			holder, err := c.Holder(ctx, &pb.HolderRequest{Name: "b"})
			if err != nil || !holder.Held || holder.Group != "" || len(holder.Holders) != 1 || holder.Token != 0 && holder.Token != g.Tokens[1] {
				t.Errorf("holder: %v, %v, want token %d or 0", holder, err, g.Tokens[1])
			}
			other := open(t, c, 10*time.Second)
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: other, Names: []string{"a"}, Try: true})
			wantFailure(t, "try", err, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED)
			wait := uint32(20)
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: other, Names: []string{"a"}, WaitMs: &wait})
			wantFailure(t, "wait", err, connect.CodeDeadlineExceeded, pb.Reason_REASON_NOT_ACQUIRED)

			renewed, err := c.RenewSession(ctx, &pb.RenewSessionRequest{SessionId: id})
			if err != nil || renewed.LeaseMs != 10_000 || renewed.CertainMs == 0 {
				t.Errorf("renew: %v, %v", renewed, err)
			}
			status, err := c.Status(ctx, &pb.StatusRequest{SessionId: id})
			if err != nil || len(status.Grants) != 1 || status.Grants[0].State != pb.State_STATE_HELD || status.Label != "test" {
				t.Errorf("status: %v, %v", status, err)
			}
			holder, err = c.Holder(ctx, &pb.HolderRequest{Name: "nobody's"})
			if err != nil || holder.Held || len(holder.Holders) > 0 {
				t.Errorf("holder of nothing: %v, %v", holder, err)
			}
			for range 2 { // again, as after a network error
				if _, err := c.Release(ctx, &pb.ReleaseRequest{SessionId: id, GrantId: "mine"}); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			_, err = c.Lock(ctx, &pb.LockRequest{SessionId: id, Names: []string{"a", "b"}, GrantId: "mine"})
			wantFailure(t, "an id that is used up", err, connect.CodeFailedPrecondition, pb.Reason_REASON_RELEASED)
			_, err = c.Release(ctx, &pb.ReleaseRequest{SessionId: id, GrantId: "another"})
			wantFailure(t, "release what never was", err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_GRANT)

			if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: other}); err != nil {
				t.Error(err)
			}
			if _, err := c.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: id}); err != nil {
				t.Error(err)
			}
			var states []pb.State
			for events.Receive() {
				if g := events.Msg().Grant; g != nil && (len(states) == 0 || states[len(states)-1] != g.State) {
					states = append(states, g.State)
				}
			}
			if err := events.Err(); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			if n := len(states); n == 0 || states[n-1] != pb.State_STATE_RELEASED {
				t.Errorf("states %v", states)
			}
			_, err = c.Status(ctx, &pb.StatusRequest{SessionId: id})
			wantFailure(t, "a closed session", err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_SESSION)

			healthy := grpchealth.NewClient(httpClient(t, p.h2c), d.url, p.options...)
			h, err := healthy.Check(ctx, &grpchealth.CheckRequest{Service: pb.LockServiceName})
			if err != nil || h.Status != grpchealth.StatusServing {
				t.Errorf("health: %v, %v", h, err)
			}
		})
	}
}

// TestExclusion: clients of two daemons and of the library, one lock.
func TestExclusion(t *testing.T) {
	_, config := startCluster(t)
	one, two := startDaemon(t, config, api.Limits{}), startDaemon(t, config, api.Limits{})
	library, err := poundlock.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	const rounds = 10
	var mu sync.Mutex // guards what follows, and is never contended under the lock
	inside, entries, last := 0, 0, uint64(0)
	section := func(token uint64) {
		mu.Lock()
		defer mu.Unlock()
		if inside++; inside != 1 {
			t.Errorf("%d are inside", inside)
		}
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
		entries++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		inside--
	}
	var all sync.WaitGroup
	for i, d := range []*daemon{one, one, two} {
		c := protocols[i].client(t, d)
		all.Go(func() {
			id := open(t, c, 10*time.Second)
			for range rounds {
				r, err := c.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"counter"}})
				if err != nil {
					t.Error(err)
					return
				}
				section(r.Grant.Tokens[0])
				if _, err := c.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: r.Grant.GrantId}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			err := library.Mutex("counter").Do(t.Context(), func(_ context.Context, g *poundlock.Grant) error {
				section(g.Token())
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if entries != 4*rounds {
		t.Errorf("%d entries, want %d", entries, 4*rounds)
	}
}
